//! Clauses RR1 to RR4 and RR14: epochs, what spread and a lane's owner do to rows, reading them.

use flare_core::model::{
    Applied, DeadLetter, Epoch, Generation, Present, Round, Row, RowEffect, RowKey, SubscriptionId,
    Timestamp,
};
use flare_core::port::RowUpdate;

use super::make::{
    LONG_AGO, Make, Repo, apply, epochs, find_row, gone, live, must_apply, now, pending, race, row,
    spread, spread_at,
};
use super::rows_dead::dead_letter;

/// RR1: every epoch is greater than all drawn before, by anybody, and time goes with it.
pub async fn rr1_epochs_only_rise(repo: Repo) {
    let first = repo.next_epoch().await.unwrap();
    assert!(first.epoch > Epoch::ZERO);
    let drawn = race(|_| {
        let port = repo.port();
        async move {
            let mut own = Vec::new();
            for _ in 0..24 {
                own.push(port.next_epoch().await.unwrap());
            }
            own
        }
    })
    .await;
    for own in &drawn {
        assert!(own.is_sorted_by(|a, b| a.epoch < b.epoch && a.at <= b.at), "{own:?}");
    }
    let mut epochs: Vec<Epoch> = drawn.iter().flatten().map(|grant| grant.epoch).collect();
    epochs.push(first.epoch);
    epochs.sort_unstable();
    assert!(epochs.is_sorted_by(|a, b| a < b), "each is drawn once");
    assert_eq!(epochs[0], first.epoch);
    repo.pass_ticks(2).await;
    let last = repo.next_epoch().await.unwrap();
    assert!(last.epoch > epochs[epochs.len() - 1]);
    assert!(last.at > first.at, "the store's time goes on");
    let before = repo.store_time().await.unwrap();
    let drawn = repo.next_epoch().await.unwrap();
    let after = repo.store_time().await.unwrap();
    assert!(last.at <= before && before <= drawn.at && drawn.at <= after, "one clock tells both");
}

/// RR2: spread makes a row that wants the version, due now, and owned by nobody.
pub async fn rr2_spread_makes_a_fresh_row(repo: Repo) {
    let make = Make::new("rr2_makes");
    let (subscription, document): (SubscriptionId, _) = (make.id(), make.lone_document());
    let before = now(&repo).await;
    spread_at(&repo, subscription, 3, &document, gone(7)).await;
    let after = now(&repo).await;
    let made = row(&repo, &RowKey::new(subscription, document.url.clone())).await;
    assert_eq!(made.key, RowKey::new(subscription, document.url.clone()));
    assert_eq!((&made.document, made.wanted), (&document, gone(7)));
    assert_eq!((made.settled, made.given_up, &made.dead), (None, None, &None));
    assert_eq!((made.present, made.generation), (Present::No, Generation::new(3)));
    assert_eq!((made.attempts, made.attempted, made.first_failure), (0, None, None));
    assert!(before <= made.since && made.since <= after, "store time");
    assert_eq!((made.due, made.epoch, made.claim), (made.since, Epoch::ZERO, None));
}

/// RR2: on a pending row spread raises `wanted` and `generation`, never lowers, touches nothing else.
pub async fn rr2_a_pending_row_stays_as_it_is(repo: Repo) {
    let make = Make::new("rr2_pending");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 4).await;
    must_apply(&repo, epoch, &key, settle(2, Present::Yes)).await;
    must_apply(&repo, epoch, &key, retry(4, 5, LONG_AGO)).await;
    let mut expected = row(&repo, &key).await;
    let steps = [
        (1, live(4), 1, live(4)),
        (2, live(3), 2, live(4)),
        (1, gone(4), 2, gone(4)),
        (7, live(9), 7, live(9)),
        (7, live(9), 7, live(9)),
        (6, live(8), 7, live(9)),
    ];
    for (generation, wanted, then_generation, then_wanted) in steps {
        repo.pass_ticks(1).await;
        spread_at(&repo, key.subscription, generation, &document, wanted).await;
        expected.generation = Generation::new(then_generation);
        expected.wanted = then_wanted;
        assert_eq!(row(&repo, &key).await, expected, "spread {wanted} at {generation}");
    }
}

/// RR2: a row that becomes pending starts afresh at store time, and keeps what the owner wrote.
pub async fn rr2_a_row_that_becomes_pending_starts_afresh(repo: Repo) {
    let make = Make::new("rr2_afresh");
    let epoch = epochs(&repo).await[1];
    let (document, key) = make.row(&repo, 1).await;
    must_apply(&repo, epoch, &key, settle(1, Present::Yes)).await;
    // The owner may have met version 2 before spread did, and failed with it.
    must_apply(&repo, epoch, &key, retry(2, 3, Timestamp::MAX)).await;
    let mut expected = row(&repo, &key).await;
    assert!(!pending(&expected));
    spread_at(&repo, key.subscription, 5, &document, live(1)).await;
    expected.generation = Generation::new(5);
    assert_eq!(row(&repo, &key).await, expected, "settled already: only the generation rises");

    repo.pass_ticks(2).await;
    let before = now(&repo).await;
    spread(&repo, key.subscription, &document, live(2)).await;
    let fresh = row(&repo, &key).await;
    assert!(before <= fresh.since && fresh.since <= now(&repo).await, "store time");
    expected.wanted = live(2);
    (expected.since, expected.due) = (fresh.since, fresh.since);
    (expected.attempts, expected.attempted, expected.first_failure) = (0, None, None);
    assert_eq!(fresh, expected);
    repo.pass_ticks(1).await;
    spread(&repo, key.subscription, &document, live(2)).await;
    assert_eq!(row(&repo, &key).await, fresh, "repeating it changes nothing");
}

/// RR2: what was given up is not wanted again by the same version, but is by a newer one.
pub async fn rr2_spread_leaves_what_was_given_up(repo: Repo) {
    let make = Make::new("rr2_given_up");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 3).await;
    let dead = dead_letter(make.id(), LONG_AGO);
    must_apply(&repo, epoch, &key, give_up(3, dead.clone())).await;
    let before = row(&repo, &key).await;
    spread(&repo, key.subscription, &document, live(3)).await;
    assert_eq!(row(&repo, &key).await, before);
    spread(&repo, key.subscription, &document, gone(3)).await;
    let after = row(&repo, &key).await;
    assert!(pending(&after));
    assert_eq!((after.given_up, after.dead, after.epoch), (Some(live(3)), Some(dead), epoch));
}

/// RR3: each effect by each order of epochs and versions: done, fenced or overtaken.
pub async fn rr3_effects_are_fenced_and_ordered(repo: Repo) {
    let make = Make::new("rr3_matrix");
    let epochs = epochs(&repo).await;
    for effect in 0..3 {
        for (which, epoch) in epochs.into_iter().enumerate() {
            for version in [2, 3, 4] {
                let (_, key) = make.row(&repo, 5).await;
                must_apply(&repo, epochs[1], &key, retry(3, 2, LONG_AGO)).await;
                must_apply(&repo, epochs[1], &key, settle(3, Present::Maybe)).await;
                let before = row(&repo, &key).await;
                let effect = match effect {
                    0 => settle(version, Present::Yes),
                    1 => retry(version, 6, LONG_AGO),
                    _ => give_up(version, dead_letter(make.id(), LONG_AGO)),
                };
                let (answer, expected) = match (which, version) {
                    (0, _) => (Applied::Fenced { epoch: epochs[1] }, before),
                    (_, 2 | 3) => (Applied::Overtaken, before),
                    _ => (Applied::Done, after_effect(before, epoch, &effect)),
                };
                assert_eq!(apply(&repo, epoch, &key, effect.clone()).await, answer, "{effect:?}");
                assert_eq!(row(&repo, &key).await, expected, "{effect:?} at {epoch}");
            }
        }
    }
}

/// RR3: a settlement ends counting, may exceed `wanted`, and clears a dead letter up to it.
pub async fn rr3_settling_ends_what_was_counted(repo: Repo) {
    let make = Make::new("rr3_settles");
    let epoch = epochs(&repo).await[0];
    let (_, key) = make.row(&repo, 5).await;
    must_apply(&repo, epoch, &key, give_up(4, dead_letter(make.id(), LONG_AGO))).await;
    must_apply(&repo, epoch, &key, retry(5, 2, LONG_AGO)).await;
    let before = row(&repo, &key).await;
    assert!(pending(&before), "what was given up is older than what is wanted");
    must_apply(&repo, epoch, &key, settle(3, Present::Yes)).await;
    let mut expected = before;
    (expected.settled, expected.present) = (Some(live(3)), Present::Yes);
    (expected.attempts, expected.attempted, expected.first_failure) = (0, None, None);
    assert_eq!(row(&repo, &key).await, expected, "below the dead letter");
    must_apply(&repo, epoch, &key, settle(9, Present::No)).await;
    (expected.settled, expected.present, expected.dead) = (Some(live(9)), Present::No, None);
    let settled = row(&repo, &key).await;
    assert_eq!(settled, expected);
    assert!(!pending(&settled));
}

/// RR3: a row that is not there is missing, and stays so; a batch answers each by itself.
pub async fn rr3_a_batch_answers_each_row(repo: Repo) {
    let make = Make::new("rr3_batch");
    let [low, high, _] = epochs(&repo).await;
    let keys = make.rows(&repo, 4).await;
    let nobody = RowKey::new(make.id(), make.url("/nobody"));
    must_apply(&repo, low, &keys[1], settle(1, Present::Yes)).await;
    must_apply(&repo, high, &keys[2], retry(1, 1, LONG_AGO)).await;
    let order = [&keys[3], &keys[2], &nobody, &keys[1], &keys[0]];
    let updates = order.map(|key| RowUpdate {
        key: key.clone(),
        round: Round::ZERO,
        effect: settle(1, Present::Yes),
    });
    let answers = repo.apply_rows(low, updates.into()).await;
    let answers: Vec<Applied> = answers.into_iter().map(Result::unwrap).collect();
    let fenced = Applied::Fenced { epoch: high };
    use Applied::{Done, Missing, Overtaken};
    assert_eq!(answers, [Done, fenced, Missing, Overtaken, Done]);
    assert_eq!(find_row(&repo, &nobody).await, None);
    assert_eq!(row(&repo, &keys[0]).await.settled, Some(live(1)));
}

/// RR4: a spread and an effect at the same time both stay.
pub async fn rr4_spread_and_effects_lose_nothing(repo: Repo) {
    let make = Make::new("rr4_pairs");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 1).await;
    for round in 1..30 {
        let effect = match round % 3 {
            0 => settle(round, Present::Yes),
            1 => retry(round, 1, LONG_AGO),
            _ => give_up(round, dead_letter(make.id(), LONG_AGO)),
        };
        let (applied, ()) = tokio::join!(
            apply(&repo, epoch, &key, effect.clone()),
            spread(&repo, key.subscription, &document, live(round + 1)),
        );
        assert_eq!(applied, Applied::Done);
        let row = row(&repo, &key).await;
        assert_eq!(row.wanted, live(round + 1), "after {effect:?}");
        match effect {
            RowEffect::Settle { version, .. } => assert_eq!(row.settled, Some(version)),
            RowEffect::GiveUp { version, .. } => assert_eq!(row.given_up, Some(version)),
            effect => assert_eq!(row.present, Present::Maybe, "{effect:?}"),
        }
    }
}

/// RR4: many spreads and settlements at once end at the greatest of each.
pub async fn rr4_many_at_once_lose_nothing(repo: Repo) {
    let make = Make::new("rr4_many");
    let epoch = epochs(&repo).await[0];
    for _ in 0..6 {
        let (document, key) = make.row(&repo, 1).await;
        race(|racer| {
            let (port, document, key) = (repo.port(), document.clone(), key.clone());
            async move {
                for step in 0..10 {
                    let version = 1 + step * 4 + racer as i64 % 4;
                    if racer < 4 {
                        let spread = flare_core::model::Spread::new(
                            key.subscription,
                            Generation::new(1),
                            document.clone(),
                            live(version),
                        );
                        port.spread_rows(vec![spread]).await.unwrap();
                    } else {
                        let effect = match version % 2 {
                            0 => settle(version, Present::Yes),
                            _ => give_up(version, DeadLetter::clone(&shared_letter())),
                        };
                        let update = RowUpdate { key: key.clone(), round: Round::ZERO, effect };
                        port.apply_rows(epoch, vec![update]).await.pop().unwrap().unwrap();
                    }
                }
            }
        })
        .await;
        let end = row(&repo, &key).await;
        assert_eq!((end.wanted, end.settled), (live(40), Some(live(40))));
    }
}

/// RR14: rows are read by key, one answer per key, in the keys' order.
pub async fn rr14_reads_one_answer_per_key(repo: Repo) {
    let make = Make::new("rr14");
    let keys = make.rows(&repo, 4).await;
    let nobody = RowKey::new(make.id(), keys[0].url.clone());
    let elsewhere = RowKey::new(keys[0].subscription, make.url("/$x.y/%F0%9F%98%80/"));
    let order = [&keys[2], &nobody, &keys[0], &keys[3], &keys[2], &elsewhere, &keys[1]];
    let read = repo.rows(order.iter().map(|key| (*key).clone()).collect()).await.unwrap();
    let expected: Vec<Option<&RowKey>> =
        order.into_iter().map(|key| keys.contains(key).then_some(key)).collect();
    let found: Vec<Option<&RowKey>> =
        read.iter().map(|row| row.as_ref().map(|row| &row.key)).collect();
    assert_eq!(found, expected);

    let odd = flare_core::model::DocumentKey::new(make.id(), elsewhere.url.clone());
    spread(&repo, elsewhere.subscription, &odd, live(i64::MIN)).await;
    let odd_row = row(&repo, &elsewhere).await;
    assert_eq!((odd_row.document, odd_row.wanted), (odd, live(i64::MIN)));
}

pub(super) fn settle(version: i64, present: Present) -> RowEffect {
    RowEffect::Settle { version: live(version), present, not_before: None }
}

pub(super) fn retry(version: i64, attempts: u32, due: Timestamp) -> RowEffect {
    RowEffect::Retry {
        version: live(version),
        present: Present::Maybe,
        attempts,
        due,
        first_failure: Some(Timestamp::from_unix_nanos(1_650_000_000_000_000_001)),
    }
}

pub(super) fn give_up(version: i64, dead: DeadLetter) -> RowEffect {
    RowEffect::GiveUp { version: live(version), present: Present::Maybe, dead }
}

fn shared_letter() -> DeadLetter {
    dead_letter(flare_core::model::DeadLetterId::from_bytes([7; 16]), LONG_AGO)
}

/// What an effect that takes place makes of a row with nothing given up.
fn after_effect(mut row: Row, epoch: Epoch, effect: &RowEffect) -> Row {
    row.epoch = epoch;
    (row.attempts, row.attempted, row.first_failure) = (0, None, None);
    match effect.clone() {
        RowEffect::Settle { version, present, .. } => {
            (row.settled, row.present) = (Some(version), present);
        }
        RowEffect::Retry { version, present, attempts, due, first_failure } => {
            (row.attempted, row.present, row.attempts) = (Some(version), present, attempts);
            (row.due, row.first_failure) = (due, first_failure);
        }
        RowEffect::GiveUp { version, present, dead } => {
            (row.given_up, row.present, row.dead) = (Some(version), present, Some(dead));
        }
    }
    row
}
