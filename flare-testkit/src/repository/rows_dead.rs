//! Clauses RR8 to RR10: what was given up is listed, replayed, and forgotten in time.

use std::time::Duration;

use flare_core::model::{
    Action, DeadLetter, DeadLetterId, DeathReason, Present, RowKey, SubscriptionId, Timestamp,
    Version,
};
use flare_core::port::{Page, Replay};

use super::make::{
    LONG_AGO, Make, Repo, epochs, find_row, gone, live, must_apply, now, only, pending, race, row,
    spread,
};
use super::rows::{give_up, retry, settle};

/// RR8: dead letters are listed oldest death first, page by page, whole.
pub async fn rr8_lists_the_oldest_death_first(repo: Repo) {
    let make = Make::new("rr8_lists");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 7).await;
    let other = make.rows(&repo, 1).await;
    must_apply(&repo, epoch, &other[0], give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    let order = [3, 0, 4, 1, 2];
    let mut letters = Vec::new();
    for (step, index) in order.into_iter().enumerate() {
        let died_at = LONG_AGO + Duration::from_millis(step as u64);
        letters.push((&keys[index], dead_letter(make.id(), died_at)));
    }
    // They die in another order than they are given up in.
    for index in [2, 4, 0, 3, 1] {
        let (key, letter) = &letters[index];
        must_apply(&repo, epoch, key, give_up(1, letter.clone())).await;
    }
    let subscription = keys[0].subscription;
    for (limit, offset) in [(30, 0), (2, 0), (2, 2), (2, 4), (2, 5), (2, 1_000), (1, 3)] {
        let listing = repo.dead_letters(subscription, Page::new(limit, offset)).await.unwrap();
        assert_eq!(listing.total, 5);
        let expected: Vec<_> = letters.iter().skip(offset as usize).take(limit as usize).collect();
        assert_eq!(listing.items.len(), expected.len(), "limit {limit}, offset {offset}");
        for (row, (key, letter)) in listing.items.iter().zip(expected) {
            assert_eq!((&row.key, row.dead.as_ref()), (*key, Some(letter)));
            assert_eq!(row.given_up, Some(live(1)));
        }
    }
    let nobody = repo.dead_letters(make.id(), Page::new(30, 0)).await.unwrap();
    assert_eq!((nobody.items.len(), nobody.total), (0, 0));
}

/// RR8: dead letters are found by id, within their subscription; one answer per id.
pub async fn rr8_finds_them_by_id(repo: Repo) {
    let make = Make::new("rr8_finds");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 3).await;
    let other = make.rows(&repo, 1).await;
    let ids: [DeadLetterId; 4] = [make.id(), make.id(), make.id(), make.id()];
    for (key, id) in keys.iter().chain(&other).zip(ids) {
        must_apply(&repo, epoch, key, give_up(1, dead_letter(id, LONG_AGO))).await;
    }
    let asked = vec![ids[2], make.id(), ids[0], ids[3], ids[2], ids[1]];
    let found = repo.find_dead_letters(keys[0].subscription, asked).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|row| row.map(|row| row.key)).collect();
    let expected = [Some(&keys[2]), None, Some(&keys[0]), None, Some(&keys[2]), Some(&keys[1])];
    assert_eq!(found, expected.map(|key| key.cloned()));
}

/// RR8: a settlement of that version or a later one removes the dead letter; nothing else does.
pub async fn rr8_a_settlement_removes_it(repo: Repo) {
    let make = Make::new("rr8_settles");
    let epoch = epochs(&repo).await[0];
    for settling in [2, 3] {
        let (document, key) = make.row(&repo, 2).await;
        let id = make.id();
        must_apply(&repo, epoch, &key, give_up(2, dead_letter(id, LONG_AGO))).await;
        must_apply(&repo, epoch, &key, settle(1, Present::Yes)).await;
        assert!(listed(&repo, &key, id).await, "an older settlement leaves it");
        spread(&repo, key.subscription, &document, live(3)).await;
        must_apply(&repo, epoch, &key, retry(3, 1, LONG_AGO)).await;
        assert!(listed(&repo, &key, id).await, "a newer version that is pending leaves it");
        must_apply(&repo, epoch, &key, settle(settling, Present::Yes)).await;
        assert!(!listed(&repo, &key, id).await, "settled {settling}");
    }
}

/// RR9: a replay clears what was given up and makes it due now, afresh, once.
pub async fn rr9_a_replay_starts_afresh_once(repo: Repo) {
    let make = Make::new("rr9_afresh");
    let epoch = epochs(&repo).await[0];
    let (_, key) = make.row(&repo, 2).await;
    must_apply(&repo, epoch, &key, settle(1, Present::Yes)).await;
    must_apply(&repo, epoch, &key, give_up(2, dead_letter(make.id(), LONG_AGO))).await;
    // What an owner that met version 3 left behind.
    must_apply(&repo, epoch, &key, retry(3, 7, Timestamp::MAX)).await;
    let mut expected = row(&repo, &key).await;
    for version in [live(1), gone(2), live(3)] {
        assert!(!replay(&repo, &key, version).await, "{version} was not given up");
        assert_eq!(row(&repo, &key).await, expected);
    }
    repo.pass_ticks(2).await;
    let before = now(&repo).await;
    assert!(replay(&repo, &key, live(2)).await);
    let replayed = row(&repo, &key).await;
    assert!(before <= replayed.since && replayed.since <= now(&repo).await, "store time");
    (expected.given_up, expected.dead) = (None, None);
    (expected.since, expected.due) = (replayed.since, replayed.since);
    (expected.attempts, expected.attempted, expected.first_failure) = (0, None, None);
    assert_eq!(replayed, expected);
    assert!(pending(&replayed));
    repo.pass_ticks(1).await;
    assert!(!replay(&repo, &key, live(2)).await, "a second time");
    assert_eq!(row(&repo, &key).await, replayed);
}

/// RR9: where something newer is pending already, a replay only leaves the list.
pub async fn rr9_a_newer_pending_version_goes_on(repo: Repo) {
    let make = Make::new("rr9_newer");
    let epoch = epochs(&repo).await[0];
    let (document, key) = make.row(&repo, 1).await;
    must_apply(&repo, epoch, &key, give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    spread(&repo, key.subscription, &document, live(2)).await;
    must_apply(&repo, epoch, &key, retry(2, 3, Timestamp::MAX)).await;
    let mut expected = row(&repo, &key).await;
    repo.pass_ticks(1).await;
    assert!(replay(&repo, &key, live(1)).await);
    (expected.given_up, expected.dead) = (None, None);
    assert_eq!(row(&repo, &key).await, expected);
}

/// RR9: of replays at once one takes place; a batch answers each by itself.
pub async fn rr9_one_of_many_replays_takes_place(repo: Repo) {
    let make = Make::new("rr9_race");
    let epoch = epochs(&repo).await[0];
    let keys = make.rows(&repo, 8).await;
    for key in &keys {
        must_apply(&repo, epoch, key, give_up(1, dead_letter(make.id(), LONG_AGO))).await;
    }
    for key in &keys[..6] {
        let replayed = race(|_| {
            let (port, key) = (repo.port(), key.clone());
            async move {
                let replay = Replay { key, version: live(1) };
                port.replay_rows(vec![replay]).await.pop().unwrap().unwrap()
            }
        })
        .await;
        assert_eq!(replayed.into_iter().filter(|replayed| *replayed).count(), 1);
    }
    let nobody = RowKey::new(make.id(), make.url("/nobody"));
    let batch = [&keys[7], &nobody, &keys[0], &keys[6]];
    let batch = batch.map(|key| Replay { key: key.clone(), version: live(1) });
    let answers = repo.replay_rows(batch.into()).await;
    let answers: Vec<bool> = answers.into_iter().map(Result::unwrap).collect();
    assert_eq!(answers, [true, false, false, true]);
    assert_eq!(find_row(&repo, &nobody).await, None);
}

/// RR10: retention drops details of those that died by then, so many at most; they stay given up.
pub async fn rr10_retention_keeps_what_was_given_up(repo: Repo) {
    let make = Make::new("rr10");
    let epoch = epochs(&repo).await[0];
    let died = |step: usize| LONG_AGO + Duration::from_millis(step as u64);
    let mut keys: Vec<RowKey> = make.rows(&repo, 4).await;
    keys.extend(make.rows(&repo, 4).await);
    let mut before = Vec::new();
    for (step, key) in keys.iter().enumerate() {
        must_apply(&repo, epoch, key, give_up(1, dead_letter(make.id(), died(step)))).await;
        before.push(row(&repo, key).await);
    }
    assert_eq!(repo.drop_dead_letters(LONG_AGO - repo.ticks(1), 10).await.unwrap(), 0);
    let mut dropped = 0;
    loop {
        let count = repo.drop_dead_letters(died(4), 2).await.unwrap();
        assert!(count <= 2, "{count} are more than asked for");
        if count == 0 {
            break;
        }
        dropped += count;
    }
    assert_eq!(dropped, 5, "those that died at or before the time named");
    for (step, mut expected) in before.into_iter().enumerate() {
        let old = expected.dead.take_if(|_| step <= 4);
        let after = row(&repo, &expected.key).await;
        assert_eq!(after, expected, "row {step}");
        assert!(!pending(&after), "row {step} stays given up");
        if let Some(old) = old {
            assert!(!listed(&repo, &expected.key, old.id).await);
        }
    }
    assert_eq!(repo.drop_dead_letters(died(5), 10).await.unwrap(), 1);
}

/// A dead letter with something in every field.
pub(super) fn dead_letter(id: DeadLetterId, died_at: Timestamp) -> DeadLetter {
    let mut letter = DeadLetter::new(id, Action::Update, DeathReason::Expired, died_at);
    letter.attempts = 84;
    letter.last_status = Some(599);
    letter.last_error = Some("no.$ 😀 \u{0}\"\\".to_owned());
    letter.first_failure_at = died_at - Duration::from_nanos(1);
    letter
}

async fn replay(repo: &Repo, key: &RowKey, version: Version) -> bool {
    only(repo.replay_rows(vec![Replay { key: key.clone(), version }]).await).unwrap()
}

/// Whether list and search agree that there is such a dead letter.
async fn listed(repo: &Repo, key: &RowKey, id: DeadLetterId) -> bool {
    let subscription: SubscriptionId = key.subscription;
    let listing = repo.dead_letters(subscription, Page::new(100, 0)).await.unwrap();
    let in_list = listing
        .items
        .iter()
        .any(|row| row.key == *key && row.dead.as_ref().is_some_and(|dead| dead.id == id));
    assert_eq!(listing.total, listing.items.len() as u64);
    let found = only(repo.find_dead_letters(subscription, vec![id]).await.unwrap());
    assert_eq!(found.is_some(), in_list, "list and search agree");
    in_list
}
