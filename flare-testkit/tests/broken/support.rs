//! Takes a suite and a broken port; gives the numbers of the clauses that notice.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use flare_testkit::{Clause, Fixture};

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The numbers of the clauses that fail, such as `q7`.
pub(crate) fn failing<F: Fixture>(
    clauses: &[Clause<F::Port>],
    fixture: impl Fn() -> F,
) -> BTreeSet<&'static str> {
    let failing = |clause: &&Clause<F::Port>| {
        quietly(|| flare_testkit::run(fixture(), |subject| (clause.run)(subject))).is_err()
    };
    clauses.iter().filter(failing).map(|clause| number(clause.name)).collect()
}

/// A clause's number: its name up to the first underscore.
fn number(name: &'static str) -> &'static str {
    name.split('_').next().expect("a first part")
}

/// Runs something that may well panic, without showing it.
fn quietly(work: impl FnOnce()) -> std::thread::Result<()> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let shown = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                shown(info);
            }
        }));
    });
    QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(false);
    result
}

/// One test per fault: which clauses does `noticed` say notice it?
macro_rules! faults {
    ($($test:ident: $fault:ident => [$($clause:literal),*];)*) => {
        $(
            #[test]
            fn $test() {
                assert_eq!(noticed(Fault::$fault), <[&str]>::to_vec(&[$($clause),*]));
            }
        )*
    };
}
pub(crate) use faults;
