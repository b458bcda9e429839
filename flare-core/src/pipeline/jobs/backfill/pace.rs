//! How many rows of a backfill may be pending: what the client took lately. Pure: it is told the time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::model::Timestamp;

/// The most rows of one job that are pending at a time.
pub(super) const MOST: usize = 1_000;
/// What was taken this long ago says how much can be taken in as long from now on.
const LATELY: Duration = Duration::from_millis(200);

/// What a client took of a backfill, and when.
#[derive(Debug, Default)]
pub(super) struct BackfillPace {
    taken: VecDeque<(Timestamp, usize)>,
}

impl BackfillPace {
    /// So many rows are not pending any more.
    pub(super) fn took(&mut self, count: usize, now: Timestamp) {
        if count > 0 {
            self.taken.push_back((now, count));
        }
    }

    /// How many may be pending now: what the client took lately, at least as many as keep it busy, and never
    /// more than a live change can be asked to wait for.
    pub(super) fn allowed(&mut self, now: Timestamp, at_least: usize) -> usize {
        while self.taken.front().is_some_and(|(at, _)| *at + LATELY < now) {
            self.taken.pop_front();
        }
        let lately: usize = self.taken.iter().map(|(_, count)| count).sum();
        lately.max(at_least).min(MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(millis)
    }

    #[test]
    fn a_client_that_takes_nothing_has_what_it_can_have_in_flight() {
        let mut pace = BackfillPace::default();
        assert_eq!(pace.allowed(at(0), 10), 10);
        pace.took(0, at(50));
        assert_eq!(pace.allowed(at(10_000), 10), 10);
        assert_eq!(pace.allowed(at(10_000), 5_000), MOST);
    }

    #[test]
    fn what_is_taken_at_once_lets_it_grow_and_what_was_long_ago_does_not() {
        let mut pace = BackfillPace::default();
        let mut now = 0;
        let mut allowed = Vec::new();
        for _ in 0..8 {
            let pending = pace.allowed(at(now), 10);
            allowed.push(pending);
            now += 50;
            pace.took(pending, at(now));
        }
        assert_eq!(allowed, [10, 10, 20, 40, 80, 160, 310, 610]);
        assert_eq!(pace.allowed(at(now), 10), MOST);
        assert_eq!(pace.allowed(at(now + 201), 10), 10);
    }
}
