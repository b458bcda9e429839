//! How often a change is announced that stays undispatched, whatever waits at the stages, and how
//! soon one is found that is lost.

use proptest::prelude::*;

use super::*;
use crate::model::{
    Document, DocumentKey, DocumentUrl, PartitionId, ResourceId, Revision, Version,
};

const EVERY: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_unix_seconds(1_700_000_000) + Duration::from_secs(seconds)
}

fn change(stored: u64, open: bool) -> Undispatched {
    let url = DocumentUrl::parse("http://a.example/users/1").unwrap();
    let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
    let mut document = Document::new(key, Version::live(Revision::new(1)), at(stored));
    document.open = open.then(|| vec![PartitionId::new(1)]);
    Undispatched::of(&document)
}

const IDLE: Waiting =
    Waiting { partition: QueueDepth::exact(0, 0, 0), spread: QueueDepth::exact(0, 0, 0) };
const BUSY: Waiting =
    Waiting { partition: QueueDepth::exact(1, 0, 0), spread: QueueDepth::exact(0, 0, 1) };

/// At which ages a change that stays undispatched is announced, by looks at these times.
fn announced(looks: impl IntoIterator<Item = (u64, Waiting)>, change: &Undispatched) -> Vec<u64> {
    let mut known = Looks::since(at(0));
    known.looked(&IDLE, at(0));
    let mut ages = Vec::new();
    for (time, waiting) in looks {
        let now = at(time);
        if change.updated_at > known.until(now, EVERY) || !known.is_worth_it(&waiting, now, EVERY) {
            continue;
        }
        if known.finds_lost(change, &waiting, now, EVERY) {
            ages.push((now - change.updated_at).as_secs());
        }
        known.looked(&waiting, now);
    }
    ages
}

fn regular(seconds: u64, waiting: Waiting) -> impl Iterator<Item = (u64, Waiting)> {
    (1..seconds / 5).map(move |number| (number * 5, waiting))
}

#[test]
fn what_no_task_is_about_is_announced_ever_more_rarely() {
    for open in [false, true] {
        let ages = announced(regular(2_500, IDLE), &change(3, open));
        assert_eq!(ages, [7, 12, 22, 42, 82, 162, 322, 642, 1_282, 1_922]);
    }
}

#[test]
fn what_may_be_waiting_is_given_time_and_found_all_the_same() {
    for open in [false, true] {
        let ages = announced(regular(2_500, BUSY), &change(3, open));
        assert_eq!(ages, [77, 117, 197, 357, 677, 1_317]);
    }
}

#[test]
fn each_change_looks_at_the_stage_its_task_is_at() {
    let behind = |partition, spread| Waiting {
        partition: QueueDepth::exact(partition, 0, 0),
        spread: QueueDepth::exact(spread, 0, 0),
    };
    let first = |waiting, open| announced(regular(100, waiting), &change(3, open))[0];
    assert_eq!(first(behind(9, 0), true), 7);
    assert_eq!(first(behind(0, 9), false), 7);
    assert!(first(behind(9, 0), false) >= 40);
    assert!(first(behind(0, 9), true) >= 40);
    // The partition stage has opened it, and has the tasks to spread it still to send.
    let sending = Waiting { partition: QueueDepth::exact(0, 0, 1), ..IDLE };
    assert!(first(sending, true) >= 40);
}

#[test]
fn a_node_that_begins_takes_all_for_lost_that_no_task_is_about() {
    let looks = Looks::since(at(100));
    assert_eq!(looks.until(at(100), EVERY), Timestamp::MAX);
    for (waiting, stored, lost) in [(IDLE, 100, true), (IDLE, 10, true), (BUSY, 10, false)] {
        assert_eq!(looks.finds_lost(&change(stored, false), &waiting, at(101), EVERY), lost);
    }
}

#[test]
fn settings_at_their_ends_do_no_harm() {
    for every in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let mut looks = Looks::since(at(0));
        for waiting in [IDLE, BUSY, IDLE] {
            looks.finds_lost(&change(3, false), &waiting, at(9), every);
            looks.is_worth_it(&waiting, at(9), every);
            looks.until(at(9), every);
            looks.looked(&waiting, at(9));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever waits, and whenever was looked: few announcements, none of a young change, and none
    /// that is missing for long.
    #[test]
    fn changes_are_announced_seldom_and_certainly(
        looks in prop::collection::vec((1..=6_u64, prop::bool::ANY), 1..600),
        stored in 0..50_u64,
        open: bool,
    ) {
        let mut time = 0;
        let looks: Vec<(u64, Waiting)> = looks.into_iter().map(|(pause, busy)| {
            time += pause;
            (time, if busy { BUSY } else { IDLE })
        }).collect();
        let stored = stored.min(time);
        let ages = announced(looks, &change(stored, open));
        prop_assert!(ages.iter().all(|age| *age >= 5), "{ages:?}");
        let age = Duration::from_secs(time - stored);
        let most = announcements(age, EVERY) + announcements(age, EVERY * BUSY_TIMES);
        prop_assert!(ages.len() as u128 <= most, "{ages:?} within {age:?}");
        // From one to the next the age at most doubles, but for the time between two looks.
        let mut before = 0;
        for age in ages.into_iter().chain([time - stored]) {
            prop_assert!(age <= (2 * before).max(40) + 52, "{age} after {before}");
            before = age;
        }
    }

    #[test]
    fn older_changes_have_been_announced_more_often(age in 0..u64::MAX / 4, first in 0..1_000_u64) {
        let count = |age| announcements(Duration::from_nanos(age), Duration::from_nanos(first));
        prop_assert!(count(age) <= count(age + 1));
        prop_assert!(count(age * 2) <= count(age) + 1 || count(age) >= u128::from(DOUBLINGS));
    }
}
