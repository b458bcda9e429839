//! Clauses RR16 and RR17, and what others say of such rows: rows that need not be made, rows that are
//! told anew, and rows whose client wants some time between two changes.

use std::time::Duration;

use flare_core::model::{Applied, Present, Round, RowEffect, RowKey, SpreadCause, Timestamp};

use super::make::{
    LONG_AGO, Make, Repo, apply, apply_in, epochs, find_row, live, must_apply, now, row, spread,
    spread_because,
};
use super::rows::{give_up, retry, settle};
use super::rows_claim::take_by_claim;
use super::rows_dead::dead_letter;

const AN_HOUR: Duration = Duration::from_secs(3_600);

/// RR2: a row whose client was told waits as long as the client wants, whatever comes.
pub async fn rr2_a_change_waits_for_its_client(repo: Repo) {
    let make = Make::new("rr2_waits");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 1).await;
    let until = now(&repo).await + AN_HOUR;
    let told = |version| RowEffect::Settle {
        version: live(version),
        present: Present::Yes,
        not_before: Some(until),
    };
    must_apply(&repo, epoch, &key, told(1)).await;
    spread(&repo, key.subscription, &document, live(2)).await;
    let waits = row(&repo, &key).await;
    assert_eq!((waits.due, waits.not_before), (until, Some(until)), "a change");
    assert!(waits.since < until);

    must_apply(&repo, epoch, &key, give_up(2, dead_letter(make.id(), LONG_AGO))).await;
    let replay = flare_core::port::Replay { key: key.clone(), version: live(2) };
    assert!(repo.replay_rows(vec![replay]).await.remove(0).unwrap());
    assert_eq!(row(&repo, &key).await.due, until, "a replay");

    // A version that came while one was told waits as well, and what needed no telling changes nothing.
    must_apply(&repo, epoch, &key, retry(2, 1, LONG_AGO)).await;
    spread(&repo, key.subscription, &document, live(4)).await;
    must_apply(&repo, epoch, &key, told(3)).await;
    assert_eq!(row(&repo, &key).await.due, until, "while it was told");
    must_apply(&repo, epoch, &key, settle(4, Present::No)).await;
    assert_eq!(row(&repo, &key).await.not_before, Some(until));
}

/// RR11: a row is hurried no further than its client allows.
pub async fn rr11_hurries_no_further_than_the_client_allows(repo: Repo) {
    let make = Make::new("rr11_allows");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 1).await;
    let until = now(&repo).await + AN_HOUR;
    let told =
        RowEffect::Settle { version: live(1), present: Present::Yes, not_before: Some(until) };
    must_apply(&repo, epoch, &key, told).await;
    spread(&repo, key.subscription, &document, live(2)).await;
    assert_eq!(repo.expedite_rows(key.subscription, 9).await.unwrap(), 0, "not at all");
    assert_eq!(row(&repo, &key).await.due, until);
    must_apply(&repo, epoch, &key, retry(2, 1, Timestamp::MAX)).await;
    assert_eq!(repo.expedite_rows(key.subscription, 9).await.unwrap(), 1);
    assert_eq!(row(&repo, &key).await.due, until);
}

/// RR3: what was told in an earlier round changes nothing.
pub async fn rr3_an_earlier_round_changes_nothing(repo: Repo) {
    let make = Make::new("rr3_round");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 5).await;
    spread_because(&repo, &key, &document, live(5), SpreadCause::Resync(Round::new(8))).await;
    let before = row(&repo, &key).await;
    let letter = dead_letter(make.id(), LONG_AGO);
    for effect in [settle(5, Present::Yes), retry(5, 1, LONG_AGO), give_up(5, letter)] {
        for round in [Round::ZERO, Round::new(7)] {
            let earlier = apply_in(&repo, epoch, round, &key, effect.clone()).await;
            assert_eq!(earlier, Applied::Overtaken, "{effect:?}");
            assert_eq!(row(&repo, &key).await, before, "{effect:?}");
        }
    }
    let settled = apply_in(&repo, epoch, Round::new(8), &key, settle(5, Present::Yes)).await;
    assert_eq!(settled, Applied::Done);
}

/// RR16: a refused document makes no row; a row that is there learns of it as of any change.
pub async fn rr16_what_is_refused_makes_no_row(repo: Repo) {
    let make = Make::new("rr16");
    let epoch = epochs(&repo).await[0];
    let (known, key) = make.row(&repo, 1).await;
    must_apply(&repo, epoch, &key, settle(1, Present::Yes)).await;
    let unknown = make.lone_document();
    let nobody = RowKey::new(key.subscription, unknown.url.clone());
    for cause in [SpreadCause::Refused, SpreadCause::ResyncRefused(Round::new(3))] {
        spread_because(&repo, &nobody, &unknown, live(2), cause).await;
        assert_eq!(find_row(&repo, &nobody).await, None, "{cause:?}");
    }
    spread_because(&repo, &key, &known, live(2), SpreadCause::Refused).await;
    let learnt = row(&repo, &key).await;
    assert!(super::make::pending(&learnt));
    assert_eq!((learnt.wanted, learnt.settled), (live(2), Some(live(1))));
    assert_eq!(learnt.round, Round::ZERO);
}

/// RR17: a resync tells a row anew, once, whatever was told of it before; what comes of that is lost.
pub async fn rr17_a_resync_begins_a_round_once(repo: Repo) {
    let make = Make::new("rr17_resync");
    let epoch = epochs(&repo).await[0];
    for state in ["settled", "given up", "retried", "gone ahead"] {
        let (document, key) = make.row(&repo, 5).await;
        match state {
            "settled" => must_apply(&repo, epoch, &key, settle(5, Present::Yes)).await,
            "given up" => {
                must_apply(&repo, epoch, &key, give_up(5, dead_letter(make.id(), LONG_AGO))).await;
            }
            "retried" => must_apply(&repo, epoch, &key, retry(5, 3, Timestamp::MAX)).await,
            _ => must_apply(&repo, epoch, &key, settle(9, Present::No)).await,
        }
        let before = now(&repo).await;
        let resync = SpreadCause::Resync(Round::new(8));
        spread_because(&repo, &key, &document, live(5), resync).await;
        let anew = row(&repo, &key).await;
        assert!(super::make::pending(&anew), "{state}");
        assert_eq!((anew.settled, anew.given_up, anew.dead.clone()), (None, None, None), "{state}");
        assert_eq!((anew.round, anew.present), (Round::new(8), Present::Maybe), "{state}");
        assert_eq!((anew.attempts, anew.attempted), (0, None), "{state}");
        assert_eq!((anew.epoch, anew.wanted), (epoch, live(5)), "{state}");
        assert!(before <= anew.since && anew.since == anew.due, "{state}");

        for effect in [settle(5, Present::Yes), retry(5, 1, LONG_AGO)] {
            apply(&repo, epoch, &key, effect).await;
        }
        assert_eq!(row(&repo, &key).await, anew, "{state}");
        for cause in [resync, SpreadCause::Resync(Round::new(7))] {
            spread_because(&repo, &key, &document, live(5), cause).await;
            assert_eq!(row(&repo, &key).await, anew, "{state}: once only");
        }
        let settled = apply_in(&repo, epoch, Round::new(8), &key, settle(5, Present::Yes)).await;
        assert_eq!(settled, Applied::Done, "{state}");
        spread_because(&repo, &key, &document, live(5), resync).await;
        assert!(!super::make::pending(&row(&repo, &key).await), "{state}: told is told");
    }
}

/// RR17: a client that wants to be left alone for a while (`not_before`) is, whatever has a row told anew.
pub async fn rr17_a_round_waits_until_the_client_allows(repo: Repo) {
    let make = Make::new("rr17_calm");
    let epoch = epochs(&repo).await[0];
    let round = Round::new(6);
    for (cause, present) in [
        (SpreadCause::Backfill(round), Present::No),
        (SpreadCause::Resync(round), Present::Yes),
        (SpreadCause::ResyncRefused(round), Present::Yes),
    ] {
        let (document, key) = make.row(&repo, 1).await;
        let until = now(&repo).await + AN_HOUR;
        let settle = RowEffect::Settle { version: live(1), present, not_before: Some(until) };
        must_apply(&repo, epoch, &key, settle).await;
        spread_because(&repo, &key, &document, live(1), cause).await;
        let anew = row(&repo, &key).await;
        assert!(super::make::pending(&anew), "{cause:?}");
        assert_eq!((anew.due, anew.not_before), (until, Some(until)), "{cause:?}");
        assert!(anew.since < until, "{cause:?}");
    }
}

/// RR17: a backfill makes rows, and tells those anew that rest while the client holds nothing.
pub async fn rr17_a_backfill_leaves_what_is_held_or_dead(repo: Repo) {
    let make = Make::new("rr17_backfill");
    let epoch = epochs(&repo).await[0];
    let backfill = SpreadCause::Backfill(Round::new(4));
    let (subscription, new) = (make.id(), make.lone_document());
    let key = RowKey::new(subscription, new.url.clone());
    spread_because(&repo, &key, &new, live(1), backfill).await;
    let made = row(&repo, &key).await;
    assert!(super::make::pending(&made));
    assert_eq!((made.round, made.present, made.settled), (Round::new(4), Present::No, None));

    let (document, rests) = make.row(&repo, 1).await;
    must_apply(&repo, epoch, &rests, settle(1, Present::No)).await;
    spread_because(&repo, &rests, &document, live(1), backfill).await;
    let anew = row(&repo, &rests).await;
    assert!(super::make::pending(&anew));
    assert_eq!((anew.round, anew.present, anew.settled), (Round::new(4), Present::No, None));
    spread_because(&repo, &rests, &document, live(1), backfill).await;
    assert_eq!(row(&repo, &rests).await, anew, "once only");

    for state in ["held", "maybe held", "dead", "pending"] {
        let (document, key) = make.row(&repo, 1).await;
        match state {
            "held" => take_by_claim(&repo, &make, &key, Present::Yes).await,
            "maybe held" => take_by_claim(&repo, &make, &key, Present::Maybe).await,
            "dead" => {
                must_apply(&repo, epoch, &key, give_up(1, dead_letter(make.id(), LONG_AGO))).await;
            }
            _ => must_apply(&repo, epoch, &key, retry(1, 2, Timestamp::MAX)).await,
        }
        let before = row(&repo, &key).await;
        spread_because(&repo, &key, &document, live(1), backfill).await;
        assert_eq!(row(&repo, &key).await, before, "{state}");
    }
}
