//! Clauses RR7 and RR18: rows handed to pullers, and rows that pullers ask to be sent.

use std::collections::BTreeSet;
use std::time::Duration;

use flare_core::model::{
    Applied, ClaimEffect, ClaimId, Present, Round, Row, RowKey, SpreadCause, SubscriptionId,
    Timestamp,
};
use flare_core::port::{ClaimRows, ClaimUpdate, PendingQuery};

use super::make::{
    LONG_AGO, Make, RACERS, Repo, all, epochs, find_row, live, must_apply, now, only, race, row,
    spread, spread_because,
};
use super::rows::{give_up, retry, settle};
use super::rows_dead::dead_letter;

const AN_HOUR: Duration = Duration::from_secs(3_600);

/// RR7: pending, due, unclaimed rows are handed out, so many at most, until there are no more.
pub async fn rr7_hands_out_what_is_pending_and_due(repo: Repo) {
    let make = Make::new("rr7_hands");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 8).await;
    make.rows(&repo, 2).await;
    must_apply(&repo, epoch, &keys[5], settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &keys[6], give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    must_apply(&repo, epoch, &keys[7], retry(1, 1, Timestamp::MAX)).await;
    let mut handed = BTreeSet::new();
    for count in [2, 2, 1, 0] {
        let claim: ClaimId = make.id();
        let before = now(&repo).await;
        let rows = claim_rows(&repo, keys[0].subscription, claim, 2, AN_HOUR).await;
        let after = now(&repo).await;
        assert_eq!(rows.len(), count);
        for row in rows {
            let held = row.claim.expect("it carries the claim");
            assert_eq!(held.id, claim);
            assert!(before + AN_HOUR <= held.until && held.until <= after + AN_HOUR);
            assert_eq!((row.due, row.present), (held.until, Present::Maybe));
            assert_eq!(held.held, Present::No, "as it was before");
            assert_eq!(find_row(&repo, &row.key).await, Some(row.clone()), "as stored");
            assert!(handed.insert(row.key), "not handed out yet");
        }
    }
    assert_eq!(handed, keys[..5].iter().cloned().collect());
}

/// RR7: no row is handed to two claims at once.
pub async fn rr7_no_row_is_handed_out_twice(repo: Repo) {
    let make = Make::new("rr7_race");
    for _ in 0..4 {
        let keys = make.rows(&repo, 20).await;
        let claims: Vec<ClaimId> = (0..8).map(|_| make.id()).collect();
        let handed = race(|racer| {
            let (port, id) = (repo.port(), claims[racer]);
            let request = ClaimRows {
                subscription: keys[0].subscription,
                claim: id,
                max: 3,
                holds_for: AN_HOUR,
            };
            async move { port.claim_rows(request).await.unwrap() }
        })
        .await;
        let mut owners = BTreeSet::new();
        for (rows, claim) in handed.iter().zip(&claims) {
            assert!(rows.len() <= 3);
            for row in rows {
                assert!(owners.insert(&row.key), "handed out twice");
                let stored = find_row(&repo, &row.key).await.unwrap();
                assert_eq!(stored.claim.map(|held| held.id), Some(*claim));
            }
        }
        // What nobody got in the rush is still there to be had.
        let rest = claim_rows(&repo, keys[0].subscription, make.id(), 20, AN_HOUR).await;
        assert_eq!(rest.len() + owners.len(), 20);
    }
}

/// RR7: while enough waits for all who ask at once, every one of them is handed some.
pub async fn rr7_every_puller_gets_some_while_enough_waits(repo: Repo) {
    let make = Make::new("rr7_enough");
    for max in [1, 3] {
        let keys = make.rows(&repo, RACERS * max).await;
        let claims: Vec<ClaimId> = (0..RACERS).map(|_| make.id()).collect();
        let handed = race(|racer| {
            let (port, claim) = (repo.port(), claims[racer]);
            let subscription = keys[0].subscription;
            let request = ClaimRows { subscription, claim, max, holds_for: AN_HOUR };
            async move { port.claim_rows(request).await.unwrap() }
        })
        .await;
        let handed: Vec<usize> = handed.iter().map(Vec::len).collect();
        assert!(handed.iter().all(|count| (1..=max).contains(count)), "{max} each: {handed:?}");
    }
}

/// RR7: the holder settles or hands back; others, and versions settled already, change nothing.
pub async fn rr7_the_holder_settles(repo: Repo) {
    let make = Make::new("rr7_settles");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 3).await;
    let claim: ClaimId = make.id();
    let rows = claim_rows(&repo, keys[0].subscription, claim, 3, AN_HOUR).await;
    assert_eq!(rows.len(), 3);
    let before = row(&repo, &keys[0]).await;
    assert_eq!(settle_claimed(&repo, &keys[0], make.id()).await, Applied::Expired);
    assert_eq!(row(&repo, &keys[0]).await, before, "another's claim changes nothing");

    assert_eq!(settle_claimed(&repo, &keys[0], claim).await, Applied::Done);
    let mut expected = before;
    (expected.settled, expected.present, expected.claim) = (Some(live(1)), Present::Yes, None);
    let settled = row(&repo, &keys[0]).await;
    assert!(settled.due <= now(&repo).await, "the claim does not delay what comes next");
    expected.due = settled.due;
    assert_eq!(settled, expected);
    assert_eq!(settle_claimed(&repo, &keys[0], claim).await, Applied::Expired, "a second time");

    // Handed back, a row is to be had again at once.
    let release = update(&keys[1], claim, ClaimEffect::Release);
    assert_eq!(only(repo.apply_claims(vec![release]).await).unwrap(), Applied::Done);
    assert_eq!(row(&repo, &keys[1]).await.claim, None);
    let again = claim_rows(&repo, keys[0].subscription, make.id(), 3, AN_HOUR).await;
    assert_eq!(again.iter().map(|row| &row.key).collect::<Vec<_>>(), [&keys[1]]);

    must_apply(&repo, epoch, &keys[2], settle(1, Present::No)).await;
    assert_eq!(settle_claimed(&repo, &keys[2], claim).await, Applied::Overtaken);
    let overtaken = row(&repo, &keys[2]).await;
    assert_eq!((overtaken.settled, overtaken.present), (Some(live(1)), Present::No));

    let nobody = RowKey::new(make.id(), make.url("/nobody"));
    let batch = vec![settle_update(&nobody, claim), settle_update(&keys[2], make.id())];
    let answers = repo.apply_claims(batch).await;
    let answers: Vec<Applied> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [Applied::Missing, Applied::Expired]);
}

/// RR7: a claim that lapsed changes nothing, and its row is to be had again.
pub async fn rr7_a_lapsed_claim_changes_nothing(repo: Repo) {
    let make = Make::new("rr7_lapses");
    let keys = make.rows(&repo, 2).await;
    let (first, second): (ClaimId, ClaimId) = (make.id(), make.id());
    let subscription = keys[0].subscription;
    let rows = claim_rows(&repo, subscription, first, 2, repo.ticks(2)).await;
    assert_eq!(rows.len(), 2);
    repo.pass_ticks(3).await;
    let before = row(&repo, &keys[0]).await;
    assert_eq!(settle_claimed(&repo, &keys[0], first).await, Applied::Expired);
    let release = update(&keys[0], first, ClaimEffect::Release);
    assert_eq!(only(repo.apply_claims(vec![release]).await).unwrap(), Applied::Expired);
    assert_eq!(row(&repo, &keys[0]).await, before);

    let rows = claim_rows(&repo, subscription, second, 2, AN_HOUR).await;
    assert_eq!(rows.len(), 2, "to be had again");
    let held = row(&repo, &keys[0]).await;
    assert_eq!(settle_claimed(&repo, &keys[0], first).await, Applied::Expired);
    assert_eq!(row(&repo, &keys[0]).await, held, "the second claim is left alone");
    assert_eq!(settle_claimed(&repo, &keys[0], second).await, Applied::Done);
}

/// RR7: a newer version leaves the claim alone, and is pending once the older is settled.
pub async fn rr7_a_newer_version_waits_for_the_claim(repo: Repo) {
    let make = Make::new("rr7_newer");
    let (document, key) = make.row(&repo, 1).await;
    let claim: ClaimId = make.id();
    let rows = claim_rows(&repo, key.subscription, claim, 1, AN_HOUR).await;
    assert_eq!(rows.len(), 1);
    spread(&repo, key.subscription, &document, live(2)).await;
    assert_eq!(row(&repo, &key).await.claim, rows[0].claim);
    assert!(claim_rows(&repo, key.subscription, make.id(), 1, AN_HOUR).await.is_empty());
    assert_eq!(settle_claimed(&repo, &key, claim).await, Applied::Done);
    let next = claim_rows(&repo, key.subscription, make.id(), 1, AN_HOUR).await;
    assert_eq!(next.len(), 1);
    assert_eq!((next[0].wanted, next[0].settled), (live(2), Some(live(1))));
}

/// RR7: rows are handed out in the order they are due in.
pub async fn rr7_the_earliest_due_is_handed_out_first(repo: Repo) {
    let make = Make::new("rr7_order");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 6).await;
    for (place, index) in [3, 0, 5, 1, 4, 2].into_iter().enumerate() {
        let due = LONG_AGO + Duration::from_secs(place as u64);
        must_apply(&repo, epoch, &keys[index], retry(1, 1, due)).await;
    }
    for expected in [[3, 0], [5, 1], [4, 2]] {
        let rows = claim_rows(&repo, keys[0].subscription, make.id(), 2, AN_HOUR).await;
        let handed: Vec<&RowKey> = rows.iter().map(|row| &row.key).collect();
        assert_eq!(handed, expected.map(|index| &keys[index]));
    }
}

/// RR7: what was handed out in an earlier round settles nothing, and is told again at once.
pub async fn rr7_an_earlier_round_settles_nothing(repo: Repo) {
    let make = Make::new("rr7_round");
    let (document, key) = make.row(&repo, 1).await;
    let claim: ClaimId = make.id();
    let rows = claim_rows(&repo, key.subscription, claim, 1, AN_HOUR).await;
    let until = rows[0].claim.expect("it is claimed").until;
    let round = SpreadCause::Resync(Round::new(7));
    spread_because(&repo, &key, &document, live(1), round).await;
    let told_anew = row(&repo, &key).await;
    assert_eq!((told_anew.claim, told_anew.due), (rows[0].claim, until), "once the claim ended");
    assert_eq!(settle_claimed(&repo, &key, claim).await, Applied::Overtaken);
    let again = claim_rows(&repo, key.subscription, make.id(), 1, AN_HOUR).await;
    assert_eq!((again.len(), again[0].settled, again[0].round), (1, None, Round::new(7)));
}

/// RR7: what was demanded is sent, and handed to no puller.
pub async fn rr7_what_is_demanded_is_not_handed_out(repo: Repo) {
    let make = Make::new("rr7_demanded");
    let keys = make.rows(&repo, 3).await;
    let subscription = keys[0].subscription;
    repo.demand_rows(subscription, 2).await.unwrap();
    for row in claim_rows(&repo, subscription, make.id(), 3, AN_HOUR).await {
        assert!(!row.demanded, "{}", row.key.url);
    }
}

/// RR18: rows that wait are marked, so many at most, until there are none.
pub async fn rr18_marks_what_waits(repo: Repo) {
    let make = Make::new("rr18");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 8).await;
    let other = make.rows(&repo, 1).await;
    must_apply(&repo, epoch, &keys[6], retry(1, 1, Timestamp::MAX)).await;
    must_apply(&repo, epoch, &keys[7], settle(1, Present::Yes)).await;
    let subscription = keys[0].subscription;
    let claimed = claim_rows(&repo, subscription, make.id(), 1, AN_HOUR).await;
    let mut marked = Vec::new();
    for expected in [2, 2, 1, 0] {
        assert_eq!(repo.demand_rows(subscription, 2).await.unwrap(), expected);
        marked.push(demanded(&repo, subscription).await.len());
    }
    assert_eq!(marked, [2, 4, 5, 5]);
    let rows = demanded(&repo, subscription).await;
    assert!(rows.iter().all(|row| row.demanded && row.key != claimed[0].key));
    assert!(demanded(&repo, other[0].subscription).await.is_empty());

    // Whatever ends the telling ends the demand.
    must_apply(&repo, epoch, &rows[0].key, settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &rows[1].key, give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    must_apply(&repo, epoch, &rows[2].key, retry(1, 1, LONG_AGO)).await;
    let left: BTreeSet<RowKey> =
        demanded(&repo, subscription).await.into_iter().map(|row| row.key).collect();
    assert_eq!(left, rows[2..].iter().map(|row| row.key.clone()).collect(), "a retry goes on");
    assert!(!row(&repo, &rows[0].key).await.demanded);
}

/// RR18: while enough waits for all who ask at once, some is marked for every one of them.
pub async fn rr18_every_demand_marks_some_while_enough_waits(repo: Repo) {
    let make = Make::new("rr18_enough");
    let keys = make.rows(&repo, RACERS * 3).await;
    let subscription = keys[0].subscription;
    let marked = race(|_| {
        let port = repo.port();
        async move { port.demand_rows(subscription, 3).await.unwrap() }
    })
    .await;
    assert!(marked.iter().all(|count| (1..=3).contains(count)), "{marked:?}");
    let total: u64 = marked.iter().sum();
    assert_eq!(demanded(&repo, subscription).await.len() as u64, total, "each is marked once");
}

/// Has a puller take the one row of a subscription.
pub(super) async fn take_by_claim(repo: &Repo, make: &Make, key: &RowKey, present: Present) {
    let claim: ClaimId = make.id();
    assert_eq!(claim_rows(repo, key.subscription, claim, 1, AN_HOUR).await.len(), 1);
    let settle = ClaimEffect::Settle { version: live(1), present, not_before: None };
    let settled = only(repo.apply_claims(vec![update(key, claim, settle)]).await).unwrap();
    assert_eq!(settled, Applied::Done);
}

async fn demanded(repo: &Repo, subscription: SubscriptionId) -> Vec<Row> {
    all(repo.pending_rows(PendingQuery::new(subscription, 100).demanded(true))).await
}

async fn claim_rows(
    repo: &Repo,
    subscription: SubscriptionId,
    claim: ClaimId,
    max: usize,
    holds_for: Duration,
) -> Vec<Row> {
    repo.claim_rows(ClaimRows { subscription, claim, max, holds_for }).await.unwrap()
}

fn update(key: &RowKey, claim: ClaimId, effect: ClaimEffect) -> ClaimUpdate {
    ClaimUpdate { key: key.clone(), claim, round: Round::ZERO, effect }
}

fn settle_update(key: &RowKey, claim: ClaimId) -> ClaimUpdate {
    update(
        key,
        claim,
        ClaimEffect::Settle { version: live(1), present: Present::Yes, not_before: None },
    )
}

async fn settle_claimed(repo: &Repo, key: &RowKey, claim: ClaimId) -> Applied {
    only(repo.apply_claims(vec![settle_update(key, claim)]).await).unwrap()
}
