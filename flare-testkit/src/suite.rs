//! Takes clauses and a fixture; gives one test per clause, each with a fresh port and a limit.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::{Fixture, Subject};

/// Longer than any clause takes on the slowest service beside everything else that is tested; a clause that hangs fails.
const LIMIT: Duration = Duration::from_secs(300);

/// One clause of a port's contract, as a trial.
#[non_exhaustive]
pub struct Clause<P: ?Sized + 'static> {
    /// The clause's number and gist, as the test is called.
    pub name: &'static str,
    /// Panics if the port breaks the clause.
    pub run: fn(Subject<P>) -> BoxFuture<'static, ()>,
}

impl<P: ?Sized + 'static> Clause<P> {
    #[doc(hidden)]
    pub const fn new(name: &'static str, run: fn(Subject<P>) -> BoxFuture<'static, ()>) -> Self {
        Self { name, run }
    }
}

impl<P: ?Sized> std::fmt::Debug for Clause<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Tries one clause on a fresh port; panics if it is broken or hangs.
#[allow(clippy::disallowed_methods, reason = "a hung clause must fail in real time")]
pub fn run<F: Fixture, R>(fixture: F, clause: impl FnOnce(Subject<F::Port>) -> R)
where
    R: Future<Output = ()>,
{
    block_on(async {
        let (subject, _guard) = Subject::open(fixture).await;
        tokio::time::timeout(LIMIT, clause(subject)).await.expect("the clause ends in time");
    });
}

/// Tries the clause of that name; how a suite's tests run it.
#[doc(hidden)]
pub fn try_clause<F: Fixture>(fixture: F, clauses: &[Clause<F::Port>], name: &str) {
    let clause = clauses.iter().find(|clause| clause.name == name).expect("a clause of the suite");
    run(fixture, |subject| (clause.run)(subject));
}

/// Runs a test to its end.
pub(crate) fn block_on(test: impl Future<Output = ()>) {
    // Several threads, so that writers that race in a test really do.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be started");
    runtime.block_on(test);
}

/// Makes a suite out of clauses: the macro that turns them into tests, and the list of them.
macro_rules! suite {
    ($d:tt $(#[$doc:meta])* $name:ident for $port:ty, $module:ident, [$($clause:ident),* $(,)?]) => {
        $(#[$doc])*
        #[macro_export]
        macro_rules! $name {
            ($d fixture:expr) => {
                $(
                    #[test]
                    fn $clause() {
                        $crate::try_clause($d fixture, $crate::$module::CLAUSES, stringify!($clause));
                    }
                )*
            };
        }

        /// All clauses of the suite, in the order of their numbers. A static and not a constant, so
        /// that they are compiled here, once, and not by every test that runs them.
        pub static CLAUSES: &[$crate::Clause<$port>] = &[
            $($crate::Clause::new(stringify!($clause), |subject| Box::pin($clause(subject)))),*
        ];
    };
}
pub(crate) use suite;
