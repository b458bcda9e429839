//! What is to be read from the stores, and what is next. Changes and sweeps take turns, so neither keeps
//! the other waiting. Pure: it is told the time.

use std::collections::BTreeSet;

use crate::model::{SubscriptionId, Timestamp};
use crate::ownership::Slots;

/// What is to be read from the stores.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    sweep: Sweep,
    /// Subscriptions to read again, and when.
    later: Option<(Timestamp, BTreeSet<SubscriptionId>)>,
    /// Those whose time has come.
    due: BTreeSet<SubscriptionId>,
}

/// Readings of the subscriptions of slots, page by page.
#[derive(Debug, Default)]
struct Sweep {
    /// What is being read, and how far that has come.
    round: Option<(Slots, Option<SubscriptionId>)>,
    /// Slots to read once that is done: what is known of them may be old.
    next: BTreeSet<u32>,
    /// When a page may be read again.
    not_before: Option<Timestamp>,
    /// When all that is held is read again, if nothing else makes it so.
    all_at: Option<Timestamp>,
    /// A page was the last thing that was read.
    had_turn: bool,
}

impl Sweep {
    /// When the next page is read; never, if nothing is held.
    fn at(&self) -> Option<Timestamp> {
        let begun = self.round.is_some() || !self.next.is_empty();
        let at_once = Timestamp::from_unix_nanos(i64::MIN);
        if begun { Some(self.not_before.unwrap_or(at_once)) } else { self.all_at }
    }
}

impl Agenda {
    /// The subscriptions of these slots are to be read from now on.
    pub(super) fn sweep_at_once(&mut self, slots: impl IntoIterator<Item = u32>) {
        self.sweep.next.extend(slots);
        self.sweep.not_before = None;
    }

    /// Nothing is held: nothing has to be known.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Which slots' subscriptions are read, and after which of them, if a page is due before anything
    /// else, or with nothing else to read. A round that comes by itself is one of all that is held.
    pub(super) fn page(
        &mut self,
        now: Timestamp,
        idle: bool,
        held: impl FnOnce() -> Slots,
    ) -> Option<(Slots, Option<SubscriptionId>)> {
        let sweep = &mut self.sweep;
        let due = sweep.at().is_some_and(|at| at <= now);
        sweep.had_turn = due && (idle || !sweep.had_turn);
        if !sweep.had_turn {
            return None;
        }
        let round = sweep.round.get_or_insert_with(|| {
            let next = std::mem::take(&mut sweep.next);
            if next.is_empty() {
                sweep.all_at = None;
                return (held(), None);
            }
            (next.into_iter().collect(), None)
        });
        Some(round.clone())
    }

    /// A page was read that ends at `after`, the last one of its round at nothing. All that is held is
    /// read again at `again`, unless that was to be sooner.
    pub(super) fn page_read(&mut self, after: Option<SubscriptionId>, again: Timestamp) {
        // Unless everything was given up while it was read.
        if let Some(round) = &mut self.sweep.round {
            round.1 = after;
            if after.is_none() {
                self.sweep.round = None;
                self.sweep.all_at.get_or_insert(again);
            }
        }
    }

    /// A page could be read up to `after`; the rest is tried again at `at`.
    pub(super) fn page_failed(&mut self, after: Option<SubscriptionId>, at: Timestamp) {
        if let Some(round) = &mut self.sweep.round {
            round.1 = after;
            self.sweep.not_before = Some(at);
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
        [self.sweep.at(), later].into_iter().flatten().min()
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

    fn slots(slots: &[u32]) -> Slots {
        slots.iter().copied().collect()
    }

    /// The next page with nothing else to read, where slots 1, 2 and 3 are held.
    fn page(agenda: &mut Agenda, second: i64) -> Option<(Slots, Option<SubscriptionId>)> {
        agenda.page(at(second), true, || slots(&[1, 2, 3]))
    }

    #[test]
    fn a_round_goes_page_by_page_and_comes_again_with_all_that_is_held() {
        let mut agenda = Agenda::default();
        assert_eq!(page(&mut agenda, 1), None, "nothing is held");
        agenda.sweep_at_once([1]);
        assert_eq!(page(&mut agenda, 1), Some((slots(&[1]), None)));
        agenda.page_read(Some(id(5)), at(300));
        assert_eq!(page(&mut agenda, 1), Some((slots(&[1]), Some(id(5)))));
        agenda.page_read(None, at(300));
        assert_eq!((page(&mut agenda, 299), agenda.next_at()), (None, Some(at(300))));
        assert_eq!(page(&mut agenda, 300), Some((slots(&[1, 2, 3]), None)));
        agenda.page_read(None, at(600));
        assert_eq!((page(&mut agenda, 599), agenda.next_at()), (None, Some(at(600))));
    }

    #[test]
    fn slots_that_come_half_way_are_seen_by_a_round_of_their_own() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once([1]);
        assert_eq!(page(&mut agenda, 1), Some((slots(&[1]), None)));
        agenda.sweep_at_once([2]);
        agenda.page_read(Some(id(5)), at(300));
        agenda.sweep_at_once([1, 3]);
        assert_eq!(page(&mut agenda, 2), Some((slots(&[1]), Some(id(5)))), "it is not begun anew");
        agenda.page_read(None, at(300));
        assert_eq!(page(&mut agenda, 2), Some((slots(&[1, 2, 3]), None)));
        agenda.page_read(None, at(300));
        assert_eq!(page(&mut agenda, 2), None);
    }

    #[test]
    fn slots_that_keep_coming_do_not_put_off_the_others() {
        let mut agenda = Agenda::default();
        for second in 1..10 {
            agenda.sweep_at_once([1]);
            assert_eq!(page(&mut agenda, second), Some((slots(&[1]), None)));
            agenda.page_read(None, at(second + 5));
        }
        assert_eq!(page(&mut agenda, 10), Some((slots(&[1, 2, 3]), None)));
    }

    #[test]
    fn a_page_that_was_begun_before_slots_came_does_not_count_for_them() {
        for given_up in [false, true] {
            let mut agenda = Agenda::default();
            agenda.sweep_at_once([1]);
            assert_eq!(page(&mut agenda, 1), Some((slots(&[1]), None)));
            if given_up {
                agenda.clear();
            }
            agenda.sweep_at_once([1]);
            agenda.page_read(None, at(300));
            assert_eq!(page(&mut agenda, 2), Some((slots(&[1]), None)));
            agenda.page_read(None, at(300));
            assert_eq!(page(&mut agenda, 2), None);
        }
    }

    #[test]
    fn a_page_that_failed_goes_on_from_where_it_came() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once([1]);
        assert_eq!(page(&mut agenda, 1), Some((slots(&[1]), None)));
        agenda.page_failed(Some(id(3)), at(2));
        assert_eq!((page(&mut agenda, 1), agenda.next_at()), (None, Some(at(2))));
        assert_eq!(page(&mut agenda, 2), Some((slots(&[1]), Some(id(3)))));
    }

    #[test]
    fn news_and_pages_take_turns() {
        let mut agenda = Agenda::default();
        agenda.sweep_at_once([1]);
        let mut page = |idle| agenda.page(at(1), idle, Slots::default).is_some();
        assert!(page(false));
        assert!(!page(false), "a change has its turn");
        assert!(page(false));
        assert!(page(true), "nothing changed");
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
        agenda.sweep_at_once([1]);
        assert!(page(&mut agenda, 1).is_some());
        agenda.later([id(1)], at(1));
        agenda.clear();
        agenda.page_read(Some(id(5)), at(1));
        assert_eq!((page(&mut agenda, 9), agenda.due(at(9))), (None, None));
    }
}
