//! What a row does, sentence by sentence of its rules; and that no sequence of effects breaks
//! what every row promises.

use proptest::prelude::*;

use super::*;
use crate::model::{ResourceId, Revision};

fn live(r: i64) -> Version {
    Version::live(Revision::new(r))
}

fn gone(r: i64) -> Version {
    Version::gone(Revision::new(r))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

fn wants(wanted: Version) -> Spread {
    let url = DocumentUrl::parse("http://a.example/users/1").unwrap();
    Spread::new(
        SubscriptionId::from_bytes([1; 16]),
        Generation::new(1),
        DocumentKey::new(ResourceId::from_bytes([2; 16]), url),
        wanted,
    )
}

fn row(wanted: Version) -> Row {
    Row::new(&wants(wanted), at(100))
}

fn settle(version: Version) -> RowEffect {
    RowEffect::Settle { version, present: Present::Yes, not_before: None }
}

fn retry(version: Version, attempts: u32, due: Timestamp) -> RowEffect {
    let first_failure = Some(at(150));
    RowEffect::Retry { version, present: Present::Maybe, attempts, due, first_failure }
}

fn give_up(version: Version) -> RowEffect {
    let id = DeadLetterId::from_bytes([3; 16]);
    let dead = DeadLetter::new(id, Action::Create, DeathReason::Exhausted, at(160));
    RowEffect::GiveUp { version, present: Present::No, dead }
}

const MINE: Epoch = Epoch::new(5);

#[test]
fn a_new_row_is_pending_and_due_at_once() {
    let row = row(live(1));
    assert!(row.is_pending());
    assert_eq!(
        (row.since, row.due, row.epoch, row.present),
        (at(100), at(100), Epoch::ZERO, Present::No)
    );
}

#[test]
fn spread_raises_wanted_and_generation_and_never_lowers_them() {
    let mut row = row(live(5));
    row.spread(&Spread { generation: Generation::new(3), ..wants(gone(5)) }, at(200));
    assert_eq!((row.wanted, row.generation), (gone(5), Generation::new(3)));
    row.spread(&wants(live(4)), at(300));
    assert_eq!((row.wanted, row.generation), (gone(5), Generation::new(3)));
}

#[test]
fn spread_leaves_a_pending_row_s_clock_alone() {
    let mut row = row(live(1));
    assert_eq!(row.apply(MINE, Round::ZERO, retry(live(1), 3, at(900))), Applied::Done);
    row.spread(&wants(live(2)), at(200));
    assert_eq!((row.due, row.since, row.attempts), (at(900), at(100), 3));
}

#[test]
fn spread_starts_a_settled_row_afresh() {
    let mut row = row(live(1));
    row.apply(MINE, Round::ZERO, settle(live(1)));
    assert!(!row.is_pending());
    row.spread(&wants(live(1)), at(200));
    assert!(!row.is_pending(), "the same version again changes nothing");
    row.spread(&wants(live(2)), at(200));
    assert!(row.is_pending());
    assert_eq!((row.due, row.since, row.attempts, row.first_failure), (at(200), at(200), 0, None));
    assert_eq!((row.settled, row.present, row.epoch), (Some(live(1)), Present::Yes, MINE));
}

#[test]
fn whatever_tells_a_row_anew_leaves_its_client_alone_for_as_long_as_it_wants() {
    let calm =
        RowEffect::Settle { version: live(1), present: Present::No, not_before: Some(at(500)) };
    for cause in [
        SpreadCause::Change,
        SpreadCause::Backfill(Round::new(3)),
        SpreadCause::Resync(Round::new(3)),
        SpreadCause::ResyncRefused(Round::new(3)),
    ] {
        for (now, due) in [(at(200), at(500)), (at(600), at(600))] {
            let mut row = row(live(1));
            row.apply(MINE, Round::ZERO, calm.clone());
            let wanted = if cause == SpreadCause::Change { live(2) } else { live(1) };
            row.spread(&wants(wanted).because(cause), now);
            assert!(row.is_pending(), "{cause:?}");
            assert_eq!(
                (row.since, row.due, row.not_before),
                (now, due, Some(at(500))),
                "{cause:?}"
            );
        }
    }
}

#[test]
fn settling_beyond_wanted_is_allowed_and_holds() {
    let mut row = row(live(1));
    assert_eq!(row.apply(MINE, Round::ZERO, settle(live(3))), Applied::Done);
    row.spread(&wants(live(3)), at(200));
    assert!(!row.is_pending());
}

#[test]
fn a_late_owner_is_fenced_off() {
    let mut fenced = row(live(1));
    fenced.apply(MINE, Round::ZERO, retry(live(1), 1, at(200)));
    let before = fenced.clone();
    for effect in [settle(live(1)), retry(live(1), 9, at(999)), give_up(live(1))] {
        assert_eq!(
            fenced.apply(Epoch::new(4), Round::ZERO, effect),
            Applied::Fenced { epoch: MINE }
        );
        assert_eq!(fenced, before);
    }
}

#[test]
fn nothing_is_settled_backwards() {
    let mut row = row(live(2));
    row.apply(MINE, Round::ZERO, settle(live(2)));
    let before = row.clone();
    for version in [live(1), gone(1), live(2)] {
        for effect in [settle(version), retry(version, 1, at(999)), give_up(version)] {
            assert_eq!(row.apply(MINE, Round::ZERO, effect), Applied::Overtaken, "{version}");
            assert_eq!(row, before);
        }
    }
    assert_eq!(row.apply(MINE, Round::ZERO, settle(gone(2))), Applied::Done);
}

#[test]
fn giving_up_ends_pending_until_something_newer() {
    let mut row = row(live(1));
    row.apply(MINE, Round::ZERO, give_up(live(1)));
    assert!(!row.is_pending() && row.dead.is_some());
    row.spread(&wants(live(1)), at(200));
    assert!(!row.is_pending());
    row.spread(&wants(live(2)), at(200));
    assert!(row.is_pending());
    row.apply(MINE, Round::ZERO, settle(live(2)));
    assert_eq!(row.dead, None, "a later settlement takes it off the list");
}

#[test]
fn an_older_version_given_up_late_does_not_hide_a_newer_one() {
    let mut row = row(live(2));
    row.apply(MINE, Round::ZERO, give_up(live(2)));
    let before = row.clone();
    assert_eq!(row.apply(MINE, Round::ZERO, give_up(live(1))), Applied::Overtaken);
    assert_eq!(row, before);
}

#[test]
fn replay_makes_it_due_now_as_often_as_it_dies() {
    let mut row = row(live(1));
    for round in 0..3 {
        row.apply(MINE, Round::ZERO, give_up(live(1)));
        assert!(!row.replay(live(2), at(300)), "another version was never given up");
        assert!(row.replay(live(1), at(300 + round)));
        assert!(row.is_pending() && row.dead.is_none());
        assert_eq!((row.due, row.attempts), (at(300 + round), 0));
        assert!(!row.replay(live(1), at(400)), "it is no dead letter any more");
    }
}

#[test]
fn replay_while_something_newer_is_pending_only_leaves_the_list() {
    let mut row = row(live(1));
    row.apply(MINE, Round::ZERO, give_up(live(1)));
    row.spread(&wants(live(2)), at(200));
    row.apply(MINE, Round::ZERO, retry(live(2), 4, at(900)));
    assert!(row.replay(live(1), at(300)));
    assert_eq!((row.dead.as_ref(), row.given_up), (None, None));
    assert_eq!((row.due, row.attempts), (at(900), 4));
}

#[test]
fn a_claim_settles_only_while_it_holds() {
    let (mine, other) = (ClaimId::from_bytes([7; 16]), ClaimId::from_bytes([8; 16]));
    let accept = ClaimEffect::Settle { version: live(1), present: Present::Yes, not_before: None };
    let mut row = row(live(1));
    assert_eq!(row.apply_claimed(mine, Round::ZERO, accept.clone(), at(100)), Applied::Expired);
    row.claim(mine, at(110));
    assert_eq!(row.apply_claimed(other, Round::ZERO, accept.clone(), at(100)), Applied::Expired);
    assert_eq!(row.apply_claimed(mine, Round::ZERO, accept.clone(), at(110)), Applied::Expired);
    assert!(row.is_pending());
    assert_eq!(row.apply_claimed(mine, Round::ZERO, accept, at(109)), Applied::Done);
    assert!(!row.is_pending() && row.claim.is_none());
}

#[test]
fn a_released_claim_leaves_the_row_to_others_at_once() {
    let mine = ClaimId::from_bytes([7; 16]);
    let before = row(live(1));
    let mut row = before.clone();
    row.claim(mine, at(110));
    assert_eq!((row.due, row.present), (at(110), Present::Maybe), "the client may hold it");
    assert_eq!(row.apply_claimed(mine, Round::ZERO, ClaimEffect::Release, at(100)), Applied::Done);
    assert_eq!(row, Row { present: Present::Maybe, ..before });
}

#[test]
fn what_was_asked_for_stays_so_when_everything_is_told_anew() {
    let mut row = row(live(1));
    assert!(row.demand(at(100)));
    let again = wants(live(1)).because(SpreadCause::Resync(Round::new(5)));
    row.spread(&again, at(120));
    assert!(row.demanded && !row.is_claimable(at(120)), "it may be on its way");
}

#[test]
fn a_claimed_or_demanded_row_is_for_nobody_else() {
    let mine = ClaimId::from_bytes([7; 16]);
    let mut row = row(live(1));
    assert!(row.is_claimable(at(100)) && !row.is_claimable(at(99)), "not before it is due");
    row.claim(mine, at(110));
    assert_eq!(row.claim.map(|it| it.held), Some(Present::No));
    assert!(!row.is_claimable(at(109)) && !row.demand(at(109)), "while the claim holds");
    assert!(row.is_claimable(at(110)), "the claim has lapsed");
    assert!(row.demand(at(110)) && !row.demand(at(110)), "once");
    assert!(!row.is_claimable(at(110)));
    row.apply(MINE, Round::ZERO, settle(live(1)));
    row.spread(&wants(live(2)), at(200));
    assert!(!row.demanded && row.is_claimable(at(200)), "a new version is asked for anew");
}

#[test]
fn a_client_that_wants_some_time_has_it() {
    let told =
        RowEffect::Settle { version: live(1), present: Present::Yes, not_before: Some(at(500)) };
    let mut row = row(live(1));
    row.spread(&wants(live(2)), at(150));
    row.apply(MINE, Round::ZERO, told);
    assert_eq!((row.due, row.is_pending()), (at(500), true), "what came meanwhile waits");
    row.apply(MINE, Round::ZERO, settle(live(2)));
    row.spread(&wants(live(3)), at(200));
    assert_eq!((row.due, row.since), (at(500), at(200)));
    assert!(!row.expedite(at(300)));
    row.apply(MINE, Round::ZERO, retry(live(3), 1, at(900)));
    assert!(row.expedite(at(300)) && row.due == at(500));
    row.apply(MINE, Round::ZERO, retry(live(3), 1, at(900)));
    assert!(row.expedite(at(600)) && row.due == at(600));
}

#[test]
fn a_resync_tells_everything_anew_once() {
    let resync = |round| wants(live(1)).because(SpreadCause::Resync(Round::new(round)));
    let mut row = row(live(1));
    row.apply(MINE, Round::ZERO, settle(live(1)));
    row.spread(&resync(3), at(200));
    assert_eq!((row.settled, row.present, row.due), (None, Present::Maybe, at(200)));
    assert_eq!(row.apply(MINE, Round::ZERO, settle(live(1))), Applied::Overtaken);
    assert_eq!(row.apply(MINE, Round::new(3), settle(live(1))), Applied::Done);
    let before = row.clone();
    row.spread(&resync(3), at(300));
    row.spread(&resync(2), at(300));
    assert_eq!(row, before);
}

#[test]
fn a_backfill_leaves_alone_what_is_held_pending_or_dead() {
    let backfill = wants(live(1)).because(SpreadCause::Backfill(Round::new(3)));
    let held = |effect| {
        let mut row = row(live(1));
        row.apply(MINE, Round::ZERO, effect);
        row
    };
    for before in [held(settle(live(1))), held(retry(live(1), 2, at(900))), held(give_up(live(1)))]
    {
        let mut row = before.clone();
        row.spread(&backfill, at(200));
        assert_eq!(row, before);
    }
    let (version, present) = (live(1), Present::No);
    let mut row = held(RowEffect::Settle { version, present, not_before: None });
    row.spread(&backfill, at(200));
    assert!(row.is_pending() && row.round == Round::new(3) && row.present == Present::No);
}

#[derive(Debug, Clone)]
enum Step {
    Spread(i64, bool),
    Settle(u64, i64, bool),
    Retry(u64, i64, bool),
    GiveUp(u64, i64, bool),
    Replay(i64, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let (revision, epoch) = (0..5i64, 1..4u64);
    prop_oneof![
        (revision.clone(), any::<bool>()).prop_map(|(r, g)| Step::Spread(r, g)),
        (epoch.clone(), revision.clone(), any::<bool>())
            .prop_map(|(e, r, g)| Step::Settle(e, r, g)),
        (epoch.clone(), revision.clone(), any::<bool>()).prop_map(|(e, r, g)| Step::Retry(e, r, g)),
        (epoch, revision.clone(), any::<bool>()).prop_map(|(e, r, g)| Step::GiveUp(e, r, g)),
        (revision, any::<bool>()).prop_map(|(r, g)| Step::Replay(r, g)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_a_row_it_never_goes_backwards(steps in prop::collection::vec(step(), 0..60)) {
        let version = |r, g| if g { gone(r) } else { live(r) };
        let mut row = row(live(0));
        for (i, step) in steps.into_iter().enumerate() {
            let now = at(200 + i as i64);
            let before = row.clone();
            let applied = match step {
                Step::Spread(r, g) => { row.spread(&wants(version(r, g)), now); None }
                Step::Replay(r, g) => { row.replay(version(r, g), now); None }
                Step::Settle(e, r, g) => Some((e, row.apply(Epoch::new(e), Round::ZERO, settle(version(r, g))))),
                Step::Retry(e, r, g) => Some((e, row.apply(Epoch::new(e), Round::ZERO, retry(version(r, g), 1, now)))),
                Step::GiveUp(e, r, g) => Some((e, row.apply(Epoch::new(e), Round::ZERO, give_up(version(r, g))))),
            };
            prop_assert!(row.settled >= before.settled);
            prop_assert!(row.wanted >= before.wanted);
            prop_assert!(row.epoch >= before.epoch);
            prop_assert!(row.generation >= before.generation);
            // Listed exactly while what was given up is beyond what is settled.
            if row.dead.is_some() {
                prop_assert!(row.given_up > row.settled);
            }
            match applied {
                Some((e, Applied::Done)) => prop_assert_eq!(row.epoch, Epoch::new(e)),
                Some((_, _)) => prop_assert_eq!(&row, &before),
                None => prop_assert_eq!(row.epoch, before.epoch),
            }
            // Becoming pending is always a fresh start.
            if row.is_pending() && !before.is_pending() {
                prop_assert_eq!((row.since, row.due, row.attempts), (now, now, 0));
            }
        }
    }
}
