//! Clauses RC6 to RC8: messages that became no document.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use flare_core::model::consumer::{MAX_REJECT_BYTES, RejectReason, Rejection};
use flare_core::model::{ConsumerId, Reject, RejectId, Timestamp};
use flare_core::port::Page;

use super::make::{LONG_AGO, Make, Repo};

/// More rejects than any clause stores.
const ENOUGH: usize = 1_000;

/// RC6: a reject is stored under its id, in place of the one that was there.
pub async fn rc6_a_reject_takes_the_place_of_what_was_there(repo: Repo) {
    let make = Make::new("rc6_place");
    let id = consumer(&repo, &make).await;
    let given: Vec<Reject> = (1..=3).map(|nanos| make.reject(id, nanos)).collect();
    repo.insert_rejects(given.clone(), 3).await.unwrap();
    let again = |at: u64, detail: &str| {
        let mut again = given[1].clone();
        (again.reason, again.detail) = (RejectReason::Refused, detail.to_owned());
        again.rejected_at = LONG_AGO + Duration::from_nanos(at);
        again
    };
    let found = async || {
        let found = repo.rejects(id, vec![given[1].id]).await.unwrap();
        found.into_iter().map(|it| (it.detail, it.rejected_at)).collect::<Vec<_>>()
    };
    let later = again(4, "refused later");
    repo.insert_rejects(vec![later.clone()], 3).await.unwrap();
    assert_eq!(found().await, [(later.detail, later.rejected_at)]);
    assert_eq!(kept(&repo, id).await, ids(&given), "it is no fourth one, so nothing has to go");

    // A message that is received twice is twice in one call.
    let twice = [again(5, "once"), make.reject(id, 6), again(7, "twice")];
    repo.insert_rejects(twice.to_vec(), ENOUGH).await.unwrap();
    assert_eq!(found().await, [("twice".to_owned(), twice[2].rejected_at)]);
    assert_eq!(kept(&repo, id).await, ids(given.iter().chain(&twice)));
    repo.insert_rejects(Vec::new(), ENOUGH).await.expect("none is as good as some");
}

/// RC6: of each consumer that a call names the last `most` stay, and all of every other one.
pub async fn rc6_keeps_those_rejected_last(repo: Repo) {
    let make = Make::new("rc6_most");
    let [one, two, other] =
        [consumer(&repo, &make).await, consumer(&repo, &make).await, consumer(&repo, &make).await];
    let others: Vec<Reject> = (0..6).map(|nanos| make.reject(other, nanos)).collect();
    repo.insert_rejects(others.clone(), 6).await.unwrap();
    assert_eq!(kept(&repo, other).await, ids(&others), "as many as may stay");

    // One by one, and not in the order of their rejection.
    let given: Vec<Reject> = (0..6).map(|nanos| make.reject(one, nanos)).collect();
    for (index, stay) in [(3, vec![3]), (0, vec![0, 3]), (5, vec![3, 5]), (4, vec![4, 5])] {
        repo.insert_rejects(vec![given[index].clone()], 2).await.unwrap();
        assert_eq!(kept(&repo, one).await, ids(stay.iter().map(|at: &usize| &given[*at])));
    }
    repo.insert_rejects(vec![given[1].clone()], 2).await.unwrap();
    assert_eq!(kept(&repo, one).await, ids(&given[4..]), "one that is older than all others");

    // More than may stay in one call, of two consumers.
    let mut batch = Vec::new();
    for nanos in [7, 12, 9, 11, 8, 10] {
        batch.extend([make.reject(one, nanos), make.reject(two, nanos)]);
    }
    repo.insert_rejects(batch.clone(), 4).await.unwrap();
    for id in [one, two] {
        let last = |least: u64| {
            let least = LONG_AGO + Duration::from_nanos(least);
            ids(batch.iter().filter(|it| it.consumer == id && it.rejected_at >= least))
        };
        assert_eq!(kept(&repo, id).await, last(9));
        // Where fewer may stay than do, the next call takes all that are too many.
        let newest = batch.iter().filter(|it| it.consumer == id).max_by_key(|it| it.rejected_at);
        repo.insert_rejects(vec![newest.unwrap().clone()], 1).await.unwrap();
        assert_eq!(kept(&repo, id).await, last(12));
    }
    assert_eq!(kept(&repo, other).await, ids(&others), "nothing was said of this one");
}

/// RC6: rejects of a consumer that is not there are not kept, and hold up no others.
pub async fn rc6_those_of_nobody_are_not_kept(repo: Repo) {
    let make = Make::new("rc6_nobody");
    let known = consumer(&repo, &make).await;
    let unknown = make.consumer();
    let given = vec![make.reject(unknown.id, 1), make.reject(known, 2), make.reject(unknown.id, 3)];
    repo.insert_rejects(given.clone(), ENOUGH).await.expect("they are only not kept");
    repo.insert_rejects(vec![given[0].clone()], ENOUGH).await.expect("nor is one alone");
    assert_eq!(kept(&repo, known).await, ids(&given[1..2]));
    assert_eq!(kept(&repo, unknown.id).await, BTreeSet::new());
    repo.insert_consumer(unknown.clone()).await.unwrap();
    assert_eq!(kept(&repo, unknown.id).await, BTreeSet::new(), "it begins with none");
}

/// RC7: a consumer's rejects are listed by the time of their rejection, then by id, with their total.
pub async fn rc7_lists_the_oldest_rejection_first(repo: Repo) {
    let make = Make::new("rc7_lists");
    let [id, other] = [consumer(&repo, &make).await, consumer(&repo, &make).await];
    let reject = |consumer, nanos, byte| {
        let mut reject = make.reject(consumer, nanos);
        reject.id = RejectId::from_bytes([byte; 16]);
        reject
    };
    // A nanosecond is a difference; the bytes of an id have no sign.
    let expected = [(0, 0xf0), (1, 0x01), (1, 0x7f), (1, 0x80), (1, 0xff), (2, 0x02), (9, 0x00)]
        .map(|(nanos, byte)| reject(id, nanos, byte));
    for index in [4, 6, 1, 0, 3, 5, 2] {
        let given = vec![expected[index].clone(), reject(other, index as u64, 0x10 + index as u8)];
        repo.insert_rejects(given, ENOUGH).await.unwrap();
    }
    for (limit, offset) in [(30, 0), (3, 0), (3, 3), (3, 6), (3, 7), (3, 1_000), (1, 2)] {
        let listing = repo.list_rejects(id, Page::new(limit, offset)).await.unwrap();
        let page = expected.iter().skip(offset as usize).take(limit as usize);
        let page: Vec<RejectId> = page.map(|reject| reject.id).collect();
        let found: Vec<RejectId> = listing.items.iter().map(|reject| reject.id).collect();
        assert_eq!((found, listing.total), (page, 7), "limit {limit}, offset {offset}");
    }
    let nobody = repo.list_rejects(make.id(), Page::new(3, 0)).await.unwrap();
    assert_eq!((nobody.items.len(), nobody.total), (0, 0));
}

/// RC7: of the rejects named those are given that the consumer has.
pub async fn rc7_gives_those_named(repo: Repo) {
    let make = Make::new("rc7_named");
    let [id, other] = [consumer(&repo, &make).await, consumer(&repo, &make).await];
    let given: Vec<Reject> = (0..4).map(|nanos| make.reject(id, nanos)).collect();
    let theirs = make.reject(other, 1);
    repo.insert_rejects([&given[..], std::slice::from_ref(&theirs)].concat(), ENOUGH)
        .await
        .unwrap();
    let asked = async |of: ConsumerId, named: Vec<RejectId>| {
        let found = repo.rejects(of, named).await.unwrap();
        let count = found.len();
        let found = ids(&found);
        assert_eq!(found.len(), count, "each of them once");
        found
    };
    let unknown: RejectId = make.id();
    let named = vec![given[3].id, unknown, given[0].id, theirs.id];
    assert_eq!(asked(id, named.clone()).await, ids([&given[3], &given[0]]));
    assert_eq!(asked(other, named.clone()).await, ids([&theirs]));
    assert_eq!(asked(make.id(), named).await, BTreeSet::new(), "of nobody");
    assert_eq!(asked(id, vec![given[2].id]).await, ids([&given[2]]));
    assert_eq!(asked(id, vec![unknown]).await, BTreeSet::new());
    assert_eq!(asked(id, Vec::new()).await, BTreeSet::new());
}

/// RC7: whatever a message was, its reject comes back exactly.
pub async fn rc7_rejects_come_back_exactly(repo: Repo) {
    let make = Make::new("rc7_exactly");
    let id = consumer(&repo, &make).await;
    let bodies: [Bytes; 9] = [
        r#"{"id": 1.50, "$set": {"a.b": null}}"#.into(),
        "Grüße, 世界 😀 \"'\\ ? $1 %s\r\n".into(),
        Bytes::new(),
        "\u{0}".into(),
        (&b"\xff\xfe\x00{\"id\"\x80}"[..]).into(),
        vec![0x9f; MAX_REJECT_BYTES].into(),
        "ü".repeat(MAX_REJECT_BYTES / 2).into(),
        // Too large: only how it begins is kept.
        "ü".repeat(MAX_REJECT_BYTES).into(),
        vec![0xff; MAX_REJECT_BYTES + 1].into(),
    ];
    let mut expected = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let rejection =
            Rejection::new(RejectReason::ALL[number], "/a~1b.$/ü/0", "is \"nothing\" \u{0} 😀");
        let at = Timestamp::from_unix_nanos(1_700_000_000_000_000_001 + number as i64);
        let mut reject = Reject::new(id, &format!("{number} $m.id 'ü' \u{0}"), body, rejection, at);
        reject.sent_at = (number % 2 == 0).then_some(LONG_AGO);
        assert_eq!(reject.body.is_some(), number < 7);
        expected.push(reject);
    }
    let mut bare = make.reject(id, 1_000_000_000_000_000_000);
    (bare.message, bare.pointer, bare.detail) = Default::default();
    expected.push(bare);
    repo.insert_rejects(expected.clone(), ENOUGH).await.unwrap();
    let named = expected.iter().map(|reject| reject.id).collect();
    let listed = repo.list_rejects(id, Page::new(100, 0)).await.unwrap().items;
    for found in [listed, repo.rejects(id, named).await.unwrap()] {
        for expected in &expected {
            assert_eq!(found.iter().find(|it| it.id == expected.id), Some(expected));
        }
    }
}

/// RC8: rejects are removed that are named, of the consumer that is named.
pub async fn rc8_removes_those_named_alone(repo: Repo) {
    let make = Make::new("rc8_removes");
    let [id, other] = [consumer(&repo, &make).await, consumer(&repo, &make).await];
    let given: Vec<Reject> = (0..5).map(|nanos| make.reject(id, nanos)).collect();
    let theirs: Vec<Reject> = (0..2).map(|nanos| make.reject(other, nanos)).collect();
    repo.insert_rejects([&given[..], &theirs].concat(), ENOUGH).await.unwrap();
    for _ in 0..2 {
        let named = vec![given[1].id, theirs[0].id, make.id(), given[4].id];
        repo.remove_rejects(id, named).await.expect("one that is not there is no error");
        assert_eq!(kept(&repo, id).await, ids([&given[0], &given[2], &given[3]]));
        assert_eq!(kept(&repo, other).await, ids(&theirs), "of another consumer nothing");
    }
    for of in [other, make.id()] {
        repo.remove_rejects(of, vec![given[0].id]).await.unwrap();
    }
    repo.remove_rejects(id, Vec::new()).await.unwrap();
    assert_eq!(kept(&repo, id).await, ids([&given[0], &given[2], &given[3]]));
}

/// RC8: rejects expire that were rejected before a time, some at a time, and their number is given.
pub async fn rc8_expires_those_rejected_before(repo: Repo) {
    let make = Make::new("rc8_expires");
    let [id, other] = [consumer(&repo, &make).await, consumer(&repo, &make).await];
    let mut given: Vec<Reject> = (0..8).map(|nanos| make.reject(id, nanos)).collect();
    let theirs: Vec<Reject> = (0..2).map(|nanos| make.reject(other, nanos)).collect();
    given.rotate_left(3);
    repo.insert_rejects([&given[..], &theirs].concat(), ENOUGH).await.unwrap();
    given.rotate_right(3);
    let at = |nanos: u64| LONG_AGO + Duration::from_nanos(nanos);
    // Those at the time itself stay. Which of the older ones go first is nobody's concern.
    for (before, limit, count, left) in
        [(0, 10, 0, 8), (5, 2, 2, 6), (5, 2, 2, 4), (5, 2, 1, 3), (5, 2, 0, 3), (7, 10, 2, 1)]
    {
        let expired = repo.expire_rejects(id, at(before), limit).await.unwrap();
        assert_eq!(expired, count, "before {before}, at most {limit}");
        let stay = kept(&repo, id).await;
        assert_eq!(stay.len(), left, "before {before}, at most {limit}");
        assert!(stay.is_superset(&ids(&given[before as usize..])), "the younger ones stay");
        assert_eq!(kept(&repo, other).await, ids(&theirs), "of another consumer nothing");
    }
    assert_eq!(repo.expire_rejects(make.id(), at(100), 10).await.unwrap(), 0, "of nobody");
    assert_eq!(repo.expire_rejects(other, at(100), 10).await.unwrap(), 2);
    assert_eq!(kept(&repo, id).await, ids(&given[7..]));
}

/// A new consumer, stored.
async fn consumer(repo: &Repo, make: &Make) -> ConsumerId {
    repo.insert_consumer(make.consumer()).await.unwrap().id
}

/// Which rejects of a consumer are kept.
async fn kept(repo: &Repo, consumer: ConsumerId) -> BTreeSet<RejectId> {
    ids(&repo.list_rejects(consumer, Page::new(100, 0)).await.unwrap().items)
}

fn ids<'a>(rejects: impl IntoIterator<Item = &'a Reject>) -> BTreeSet<RejectId> {
    rejects.into_iter().map(|reject| reject.id).collect()
}
