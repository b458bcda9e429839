//! What several rooms need and none owns: locks that outlive a panic, one future that may not be there,
//! waits that grow with failures, setters of settings.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;

/// Locks. A thread that panicked while it held the lock left what it guards whole: nothing here is
/// changed in steps that a panic could fall between.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The answer of a future, which is then taken; for ever nothing if there is none.
pub(crate) async fn taken<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    let answer = match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    };
    *future = None;
    answer
}

/// How long to wait after this many failures in a row: `first`, doubled with each, at most `longest`.
pub(crate) fn doubled(first: Duration, failures: u32, longest: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(10);
    (first * 2_u32.pow(doublings)).min(longest)
}

/// Gives a type of settings a method for each field, named like it, that takes the settings and gives them back
/// with another value: as the stores' settings have them.
macro_rules! setters {
    ($settings:ident { $($field:ident: $given:ty,)* }) => {
        impl $settings {
            $(
                #[doc = concat!(
                    "The same with another [`", stringify!($field), "`](#structfield.",
                    stringify!($field), ")."
                )]
                #[must_use]
                pub fn $field(mut self, $field: $given) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
}

pub(crate) use setters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = [0, 1, 2, 3, 5, 6, 99].map(|failures| {
            let (first, longest) = (Duration::from_millis(100), Duration::from_secs(2));
            doubled(first, failures, longest).as_millis()
        });
        assert_eq!(pauses, [100, 100, 200, 400, 1_600, 2_000, 2_000]);
    }
}
