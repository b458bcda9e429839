//! Consumers: records that cannot be read are named and stop no others, and whatever is stored for one at once is kept
//! in one order.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::{PostgresRepository, PostgresUpkeep};
use flare_core::model::consumer::{RejectReason, Rejection};
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, ConsumerStatus, Epoch, Generation, IdSource,
    RecordName, Reject, Timestamp, Unreadable,
};
use flare_core::port::{ConsumerStore, Page, Part, Purpose, Replaced, RowStore, Upkeep};
use flare_core::{Error, ErrorKind};
use flare_testkit::Trials;
use flare_testkit::unreadable::Spoiling;
use futures::StreamExt;

use crate::support::{OwnDatabase, Scratch, deadlocks, spoil};

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("consumers")
        .test("one_that_cannot_be_read_stops_no_other", unreadable)
        .test("a_damaged_state_is_named_until_another_is_stored", damaged_state)
        .test("a_damaged_reject_is_given_apart", damaged_reject)
        .test("what_a_newer_version_stored_stays", unknown_fields)
        .test("what_is_written_at_once_keeps_the_last_and_never_deadlocks", at_once)
        .test("epochs_go_on_above_those_of_consumers", epochs)
}

const ALL: Page = Page::new(100, 0);
const NOW: Timestamp = Timestamp::from_unix_nanos(1_700_000_000_000_000_000);

fn consumer(ids: &IdSource) -> Consumer {
    let text = r#"{"source":{"kind":"sqs","settings":{"queue":"users"}},"createdAt":1,"updatedAt":2,
        "document":{"url":"http://api.example/users/{/id}"}}"#;
    let (id, resource) = (ids.next(NOW).into(), ids.next(NOW).into());
    Consumer::from_stored(id, resource, Generation::new(1), text).unwrap()
}

fn reject(of: ConsumerId, number: u64) -> Reject {
    let why = Rejection::new(RejectReason::Missing, "/id", "is missing");
    let (message, at) = (format!("message {number}"), NOW + Duration::from_nanos(number));
    Reject::new(of, &message, &"{}".into(), why, at)
}

/// A repository with some consumers in it.
async fn with_consumers(
    scratch: &Scratch,
    count: usize,
) -> (Arc<PostgresRepository>, Vec<Consumer>) {
    let store = PostgresRepository::connect(scratch.config()).await.unwrap();
    let ids = IdSource::seeded(5);
    let mut given = Vec::new();
    for _ in 0..count {
        given.push(store.insert_consumer(consumer(&ids)).await.unwrap());
    }
    (Arc::new(store), given)
}

/// The record that an error is about.
#[track_caller]
fn named(error: &Error) -> Unreadable {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    error.unreadable().expect("it names a record").clone()
}

async fn unreadable(uri: String) {
    for how in [Spoiling::Newer, Spoiling::Damaged] {
        let scratch = Scratch::new(&uri);
        let (store, given) = with_consumers(&scratch, 3).await;
        let (spoilt, name) = (&given[1], RecordName::Consumer(given[1].id));
        let (epoch, ids) = (Epoch::new(1), given.iter().map(|it| it.id).collect::<Vec<_>>());
        for id in &ids {
            let stored = store.store_consumer_state(epoch, *id, ConsumerState::default()).await;
            assert_eq!(stored.unwrap(), Applied::Done);
        }
        spoil::spoil(&scratch.connect().await, &scratch.name, &name, how).await;
        let insist = |error: &Error| {
            let unreadable = named(error);
            assert_eq!(unreadable.record, name);
            assert_eq!(unreadable.is_newer(), how == Spoiling::Newer);
        };
        insist(&store.consumer(spoilt.id).await.unwrap_err());
        insist(&store.insert_consumer(spoilt.clone()).await.unwrap_err());
        let replaced = store.replace_consumer(spoilt.generation, spoilt.clone()).await;
        insist(&replaced.unwrap_err());
        let listing = store.list_consumers(ALL).await.unwrap();
        assert_eq!(listing.items, [given[0].clone(), given[2].clone()]);
        assert_eq!((listing.unreadable.len(), listing.total), (1, 3));
        assert_eq!(listing.unreadable[0].record, name);
        let scanned: Vec<_> = store.scan_consumers(None).collect().await;
        assert_eq!(scanned.len(), 3);
        insist(scanned[1].as_ref().unwrap_err());
        assert_eq!(scanned[2].as_ref().unwrap(), &given[2], "the scan goes on");
        // A damaged consumer has a state as good as any; what a newer version needs is not known here.
        let states = store.consumer_states(ids.clone()).await;
        match how {
            Spoiling::Newer => insist(&states.unwrap_err()),
            _ => assert_eq!(states.unwrap().len(), 3),
        }
        assert_eq!(store.consumer_states(vec![ids[0], ids[2]]).await.unwrap().len(), 2);
        store.remove_consumer(spoilt.id, None).await.expect("it need not be read");
        assert_eq!(store.consumer(spoilt.id).await.unwrap(), None);
    }
}

async fn damaged_state(uri: String) {
    let scratch = Scratch::new(&uri);
    let (store, given) = with_consumers(&scratch, 2).await;
    let [id, other] = [given[0].id, given[1].id];
    for id in [id, other] {
        store.store_consumer_state(Epoch::new(2), id, ConsumerState::default()).await.unwrap();
    }
    scratch.run(&format!("UPDATE flare.consumers SET state = '{{' WHERE id = '{id}'")).await;
    let name = RecordName::Consumer(id);
    assert_eq!(named(&store.consumer_states(vec![other, id]).await.unwrap_err()).record, name);
    assert_eq!(store.consumer_states(vec![other]).await.unwrap().len(), 1);
    let claimed = store.claim_consumer_state(Epoch::new(2), id).await;
    assert_eq!(named(&claimed.unwrap_err()).record, name);
    assert_eq!(store.consumer(id).await.unwrap(), Some(given[0].clone()), "that is no state");
    let mut state = ConsumerState::default();
    state.received = 7;
    let stored = store.store_consumer_state(Epoch::new(2), id, state.clone()).await.unwrap();
    assert_eq!(stored, Applied::Done);
    assert_eq!(store.claim_consumer_state(Epoch::new(3), id).await.unwrap(), Some(state));
}

async fn damaged_reject(uri: String) {
    for how in [Spoiling::Newer, Spoiling::Damaged] {
        let scratch = Scratch::new(&uri);
        let (store, given) = with_consumers(&scratch, 1).await;
        let id = given[0].id;
        let rejects: Vec<Reject> = (1..=4).map(|number| reject(id, number)).collect();
        store.insert_rejects(rejects.clone(), 10).await.unwrap();
        let name = RecordName::Reject(rejects[1].id);
        let spoil = async || {
            spoil::spoil(&scratch.connect().await, &scratch.name, &name, how).await;
        };
        spoil().await;
        let listing = store.list_rejects(id, ALL).await.unwrap();
        assert_eq!(listing.items, [&rejects[..1], &rejects[2..]].concat());
        assert_eq!(listing.total, 4);
        let apart: Vec<_> = listing.unreadable.iter().map(|it| it.record.clone()).collect();
        assert_eq!(apart, std::slice::from_ref(&name));
        let both = vec![rejects[0].id, rejects[1].id];
        assert_eq!(named(&store.rejects(id, both.clone()).await.unwrap_err()).record, name);
        assert_eq!(store.rejects(id, vec![rejects[0].id]).await.unwrap(), rejects[..1]);
        // The message comes again: that can be read.
        store.insert_rejects(vec![rejects[1].clone()], 10).await.unwrap();
        assert_eq!(store.rejects(id, both.clone()).await.unwrap().len(), 2);
        spoil().await;
        assert_eq!(store.expire_rejects(id, rejects[2].rejected_at, 10).await.unwrap(), 2);
        assert_eq!(store.list_rejects(id, ALL).await.unwrap().items, rejects[2..]);
    }
}

async fn unknown_fields(uri: String) {
    let scratch = Scratch::new(&uri);
    let (store, given) = with_consumers(&scratch, 1).await;
    let name = RecordName::Consumer(given[0].id);
    let client = scratch.connect().await;
    spoil::spoil(&client, &scratch.name, &name, Spoiling::UnknownField).await;
    let mut new = given[0].clone();
    new.status = ConsumerStatus::Paused;
    let replaced = store.replace_consumer(new.generation, new).await.unwrap();
    assert!(matches!(replaced, Replaced::Done(_)), "{replaced:?}");
    store.store_consumer_state(Epoch::new(1), given[0].id, ConsumerState::default()).await.unwrap();
    assert!(spoil::has_unknown_field(&client, &scratch.name, &name).await);
}

async fn at_once(uri: String) {
    const MOST: usize = 10;
    let database = OwnDatabase::new(&uri).await;
    let scratch = Scratch::new(&database.uri);
    let before = deadlocks(&scratch).await;
    let (store, given) = with_consumers(&scratch, 3).await;
    let ids: Arc<Vec<ConsumerId>> = Arc::new(given.iter().map(|it| it.id).collect());
    let mut workers = Vec::new();
    for seed in 0..8_u64 {
        let (config, ids) = (scratch.config().pool_limit(2), Arc::clone(&ids));
        workers.push(tokio::spawn(async move {
            let store = PostgresRepository::connect(config).await.unwrap();
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..20 {
                // Messages that others reject, too, and in an order of one's own.
                let numbers: Vec<u64> = (0..12).map(|_| random.u64(100..200)).collect();
                let mut some: Vec<Reject> = Vec::new();
                for id in ids.iter() {
                    some.extend(numbers.iter().map(|number| reject(*id, *number)));
                }
                random.shuffle(&mut some);
                store.insert_rejects(some.clone(), MOST).await.unwrap();
                let id = ids[random.usize(..ids.len())];
                let of_one = some.iter().filter(|it| it.consumer == id).map(|it| it.id);
                store.remove_rejects(id, of_one.take(3).collect()).await.unwrap();
                let old = NOW + Duration::from_nanos(random.u64(100..120));
                store.expire_rejects(id, old, 5).await.unwrap();
                let state = ConsumerState::default();
                store.store_consumer_state(Epoch::new(seed), id, state).await.unwrap();
            }
            let last: Vec<Reject> =
                ids.iter().flat_map(|id| (200..212).map(|it| reject(*id, it + seed))).collect();
            store.insert_rejects(last, MOST).await.unwrap();
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    for id in ids.iter() {
        let listing = store.list_rejects(*id, ALL).await.unwrap();
        let last: Vec<Reject> = (209..219).map(|number| reject(*id, number)).collect();
        assert_eq!((listing.items, listing.total), (last, MOST as u64), "neither more nor fewer");
    }
    assert_eq!(deadlocks(&scratch).await, before, "the server's own count of deadlocks");
}

async fn epochs(uri: String) {
    const GREAT: u64 = 5_000_000_000;
    let scratch = Scratch::new(&uri);
    let (store, given) = with_consumers(&scratch, 1).await;
    let state = ConsumerState::default();
    store.store_consumer_state(Epoch::new(GREAT), given[0].id, state).await.unwrap();
    scratch.run("DELETE FROM flare.store").await;
    let upkeep = PostgresUpkeep::connect(scratch.config(), Part::Repository).await.unwrap();
    for step in upkeep.plan(Purpose::Fixup).await.unwrap() {
        upkeep.apply(Purpose::Fixup, &step, &()).await.unwrap();
    }
    assert!(store.next_epoch().await.unwrap().epoch.get() > GREAT);
}
