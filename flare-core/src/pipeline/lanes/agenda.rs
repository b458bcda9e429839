//! Takes what is to be read and when; gives what is next. News and sweeps take turns, so neither
//! keeps the other waiting. Pure: it is told the time.

use std::collections::BTreeSet;

use crate::model::{SubscriptionId, Timestamp};

/// What is to be read from the stores.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    sweep: Sweep,
    /// Subscriptions to read again, and when.
    later: Option<(Timestamp, BTreeSet<SubscriptionId>)>,
    /// Those whose time has come.
    due: BTreeSet<SubscriptionId>,
}

/// A reading of all subscriptions, page by page.
#[derive(Debug, Default)]
struct Sweep {
    /// When the next page is read; never, if nothing is held.
    at: Option<Timestamp>,
    after: Option<SubscriptionId>,
    /// Slots came meanwhile whose subscriptions it may have passed.
    again: bool,
    /// A page is being read.
    reading: bool,
    /// A page was the last thing that was read.
    had_turn: bool,
}

impl Agenda {
    /// All subscriptions are to be read from now on.
    pub(super) fn sweep_at_once(&mut self, now: Timestamp) {
        self.sweep.again |= self.sweep.reading || self.sweep.after.is_some();
        self.sweep.at = Some(now);
    }

    /// Nothing is held: nobody has to know.
    pub(super) fn clear(&mut self) {
        let reading = self.sweep.reading;
        *self = Self::default();
        self.sweep.reading = reading;
    }

    /// Where a page begins that is due before anything else, or with nothing else to read.
    pub(super) fn page(&mut self, now: Timestamp, idle: bool) -> Option<Option<SubscriptionId>> {
        let due = self.sweep.at.is_some_and(|at| at <= now);
        let turn = due && (idle || !self.sweep.had_turn);
        (self.sweep.had_turn, self.sweep.reading) = (turn, turn);
        turn.then_some(self.sweep.after)
    }

    /// A page was read that ends at `after`, the last one at nothing: then the next round begins at
    /// `next_round`.
    pub(super) fn page_read(&mut self, after: Option<SubscriptionId>, next_round: Timestamp) {
        self.sweep.reading = false;
        // Not if everything was given up while it was read.
        if let Some(at) = &mut self.sweep.at {
            self.sweep.after = after;
            if after.is_none() && !std::mem::take(&mut self.sweep.again) {
                *at = next_round;
            }
        }
    }

    /// A page could be read up to `after`; the rest is tried again at `at`.
    pub(super) fn page_failed(&mut self, after: Option<SubscriptionId>, at: Timestamp) {
        self.sweep.reading = false;
        if self.sweep.at.is_some() {
            (self.sweep.after, self.sweep.at) = (after, Some(at));
        }
    }

    /// Reads subscriptions again, not before `at`.
    pub(super) fn later(&mut self, ids: impl IntoIterator<Item = SubscriptionId>, at: Timestamp) {
        self.later.get_or_insert((at, BTreeSet::new())).1.extend(ids);
    }

    /// Reads a subscription as soon as nothing else is being read.
    pub(super) fn at_once(&mut self, id: SubscriptionId) {
        self.due.insert(id);
    }

    /// A subscription whose time has come.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<SubscriptionId> {
        if let Some((_, ids)) = self.later.take_if(|(at, _)| *at <= now) {
            self.due.extend(ids);
        }
        self.due.pop_first()
    }

    /// When there is something to read, if nothing comes before.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let later = self.later.as_ref().map(|(at, _)| *at);
        [self.sweep.at, later].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_unix_seconds(second)
    }

    fn id(number: u8) -> SubscriptionId {
        SubscriptionId::from_bytes([number; 16])
    }

    #[test]
    fn a_round_goes_page_by_page_and_comes_again() {
        let mut agenda = Agenda::default();
        assert_eq!(agenda.page(at(1), true), None, "nothing is held");
        agenda.sweep_at_once(at(1));
        assert_eq!(agenda.page(at(1), true), Some(None));
        agenda.page_read(Some(id(5)), at(300));
        assert_eq!(agenda.page(at(1), true), Some(Some(id(5))));
        agenda.page_read(None, at(300));
        assert_eq!((agenda.page(at(299), true), agenda.next_at()), (None, Some(at(300))));
        assert_eq!(agenda.page(at(300), true), Some(None));
    }

    #[test]
    fn slots_that_come_half_way_are_seen_by_a_round_of_their_own() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once(at(1));
        assert_eq!(agenda.page(at(1), true), Some(None));
        agenda.page_read(Some(id(5)), at(300));
        agenda.sweep_at_once(at(2));
        assert_eq!(agenda.page(at(2), true), Some(Some(id(5))), "it is not begun anew");
        agenda.page_read(None, at(300));
        assert_eq!(agenda.page(at(2), true), Some(None), "but comes again at once");
        agenda.page_read(None, at(300));
        assert_eq!(agenda.page(at(2), true), None);
    }

    #[test]
    fn a_page_that_was_begun_before_slots_came_does_not_count_for_them() {
        for given_up in [false, true] {
            let mut agenda = Agenda::default();
            agenda.sweep_at_once(at(1));
            assert_eq!(agenda.page(at(1), true), Some(None));
            if given_up {
                agenda.clear();
            }
            agenda.sweep_at_once(at(2));
            agenda.page_read(None, at(300));
            assert_eq!(agenda.page(at(2), true), Some(None));
            agenda.page_read(None, at(300));
            assert_eq!(agenda.page(at(2), true), None);
        }
    }

    #[test]
    fn a_page_that_failed_goes_on_from_where_it_came() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once(at(1));
        assert_eq!(agenda.page(at(1), true), Some(None));
        agenda.page_failed(Some(id(3)), at(2));
        assert_eq!(agenda.page(at(1), true), None);
        assert_eq!(agenda.page(at(2), true), Some(Some(id(3))));
    }

    #[test]
    fn news_and_pages_take_turns() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once(at(1));
        assert!(agenda.page(at(1), false).is_some());
        assert!(agenda.page(at(1), false).is_none(), "news have their turn");
        assert!(agenda.page(at(1), false).is_some());
        assert!(agenda.page(at(1), true).is_some(), "there are no news");
    }

    #[test]
    fn what_could_not_be_read_is_due_later_once() {
        let mut agenda = Agenda::default();
        agenda.later([id(2), id(1)], at(10));
        agenda.later([id(1)], at(20));
        assert_eq!((agenda.due(at(9)), agenda.next_at()), (None, Some(at(10))));
        assert_eq!([agenda.due(at(10)), agenda.due(at(10))], [Some(id(1)), Some(id(2))]);
        assert_eq!((agenda.due(at(30)), agenda.next_at()), (None, None));
    }

    #[test]
    fn what_is_given_up_need_not_be_read() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once(at(1));
        assert!(agenda.page(at(1), true).is_some());
        agenda.later([id(1)], at(1));
        agenda.clear();
        agenda.page_read(Some(id(5)), at(1));
        assert_eq!((agenda.page(at(9), true), agenda.due(at(9))), (None, None));
    }
}
