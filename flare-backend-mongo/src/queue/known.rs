//! Takes which queues were seen, when, and what the server's clock said; gives whether one is to be
//! looked for again, and what that clock says by now.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::server_clock::{ServerTime, Sight};

/// How long a queue that was seen is taken to be there. What is sent within this time of its
/// deletion by another process is lost with it, as if it had been sent before.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// How long a queue that was seen is taken to be there by those who only wait: a poll that still
/// gets through tells them sooner.
const LATELY: Duration = Duration::from_secs(5);
/// More queues than this are not remembered.
const MOST: usize = 10_000;

/// The queues that were there lately, so that sends need not ask each time.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<String, Sight>>);

impl Known {
    /// The server's time, if the queue was there so lately that it still is.
    pub(super) fn server_time(&self, queue: &str, now: Duration) -> Option<ServerTime> {
        let sight = self.lock().get(queue).copied().filter(|it| is_fresh(it, now));
        sight.map(|it| it.server_time(now))
    }

    /// Whether the queue was there so lately that whoever waited in vain need not look.
    pub(super) fn was_seen(&self, queue: &str, now: Duration) -> bool {
        let sight = self.lock().get(queue).copied();
        sight.is_some_and(|it| now.saturating_sub(it.asked) < LATELY)
    }

    pub(super) fn saw(&self, queue: &str, sight: Sight) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.retain(|_, it| is_fresh(it, sight.asked));
        }
        if known.len() < MOST {
            known.insert(queue.to_owned(), sight);
        }
    }

    pub(super) fn forget(&self, queue: &str) {
        self.lock().remove(queue);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Sight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(sight: &Sight, now: Duration) -> bool {
    now.saturating_sub(sight.asked) < TRUSTED_FOR
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = "slot-1";
    const MILLI: Duration = Duration::from_millis(1);
    const START: Duration = Duration::from_secs(100);

    fn sight() -> Sight {
        Sight { asked: START, answered: START + 2 * MILLI, server: 5_000_000_000 }
    }

    #[test]
    fn a_queue_is_trusted_for_a_while_after_it_was_seen() {
        let known = Known::default();
        assert_eq!(known.server_time(QUEUE, START), None);
        known.saw(QUEUE, sight());
        assert!(known.server_time(QUEUE, START + MILLI).is_some());
        assert_eq!(known.server_time(QUEUE, START + TRUSTED_FOR), None);
    }

    #[test]
    fn a_queue_that_was_deleted_here_is_not_trusted() {
        let known = Known::default();
        known.saw(QUEUE, sight());
        known.forget(QUEUE);
        assert_eq!(known.server_time(QUEUE, START), None);
    }

    #[test]
    fn no_more_than_the_most_are_remembered() {
        let known = Known::default();
        for slot in 0..=u32::try_from(MOST).unwrap() {
            known.saw(&format!("slot-{slot}"), sight());
        }
        assert_eq!(known.lock().len(), MOST);
        // The stale make room.
        known.saw(QUEUE, Sight { asked: START + TRUSTED_FOR, ..sight() });
        assert_eq!(known.lock().len(), 1);
    }
}
