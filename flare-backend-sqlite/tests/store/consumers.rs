//! Consumers in a file, looked at from behind the port: records that cannot be read, and what is left of one that
//! was removed.

use std::sync::Arc;

use bytes::Bytes;
use flare_backend_sqlite::SqliteRepository;
use flare_core::model::consumer::{RejectReason, Rejection};
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, RecordName, Reject,
    ResourceId, Timestamp,
};
use flare_core::port::{ConsumerStore, Page, Replaced};
use flare_core::{Error, ErrorKind};
use flare_testkit::unreadable::Spoiling;
use futures::StreamExt;

use crate::support::{Scratch, spoil};

const ENOUGH: usize = 100;
const EPOCH: Epoch = Epoch::new(3);

fn consumer(number: u8) -> Consumer {
    let text = format!(
        r#"{{"source":{{"kind":"sqs","settings":{{"queue":"q{number}"}}}},
            "document":{{"url":"http://api.example/docs/{{/id}}"}},"createdAt":1,"updatedAt":2}}"#
    );
    let id = ConsumerId::from_bytes([number; 16]);
    let resource = ResourceId::from_bytes([0xaa; 16]);
    Consumer::from_stored(id, resource, Generation::new(1), &text).unwrap()
}

fn reject(consumer: ConsumerId, number: i64) -> Reject {
    let rejection = Rejection::new(RejectReason::Missing, "/id", "is missing");
    let at = Timestamp::from_unix_nanos(number);
    Reject::new(consumer, &number.to_string(), &Bytes::from_static(b"{}"), rejection, at)
}

/// Three consumers, each with a state and three rejects.
async fn filled(scratch: &Scratch) -> (Arc<SqliteRepository>, [Consumer; 3]) {
    let repository = scratch.open().repository();
    let consumers = [1, 2, 3].map(consumer);
    for given in &consumers {
        repository.insert_consumer(given.clone()).await.unwrap();
        let mut state = ConsumerState::default();
        state.received = 7;
        let stored = repository.store_consumer_state(EPOCH, given.id, state).await.unwrap();
        assert_eq!(stored, Applied::Done);
        let rejects = (1..=3).map(|number| reject(given.id, number)).collect();
        repository.insert_rejects(rejects, ENOUGH).await.unwrap();
    }
    (repository, consumers)
}

#[track_caller]
fn assert_about(error: &Error, record: &RecordName, how: Spoiling) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    let unreadable = error.unreadable().expect("it names a record");
    assert_eq!(unreadable.record, *record, "{error}");
    assert_eq!(unreadable.is_newer(), how == Spoiling::Newer, "{error}");
}

#[tokio::test]
async fn a_consumer_that_cannot_be_read_is_named_and_in_no_other_s_way() {
    for how in [Spoiling::Damaged, Spoiling::Newer] {
        let scratch = Scratch::new();
        let (repository, [first, spoilt, last]) = filled(&scratch).await;
        let name = RecordName::Consumer(spoilt.id);
        spoil::spoil(&scratch.connect(), &name, how);

        assert_about(&repository.consumer(spoilt.id).await.unwrap_err(), &name, how);
        assert_about(&repository.insert_consumer(spoilt.clone()).await.unwrap_err(), &name, how);
        let replaced = repository.replace_consumer(spoilt.generation, spoilt.clone()).await;
        assert_about(&replaced.unwrap_err(), &name, how);
        let listed = repository.list_consumers(Page::new(10, 0)).await.unwrap();
        assert_eq!((listed.items, listed.total), (vec![first.clone(), last.clone()], 3));
        assert_eq!(listed.unreadable.len(), 1);
        assert_eq!(listed.unreadable[0].record, name);
        assert_eq!(listed.unreadable[0].resource, Some(spoilt.resource));
        let scanned: Vec<_> = repository.scan_consumers(None).collect().await;
        let [one, broken, other] = &scanned[..] else { panic!("{scanned:?}") };
        assert_eq!((one.as_ref().ok(), other.as_ref().ok()), (Some(&first), Some(&last)));
        assert_about(broken.as_ref().unwrap_err(), &name, how);

        // What its owner stores of it, a newer one perhaps, does not depend on what is read of it here.
        let state = ConsumerState::default();
        let stored = repository.store_consumer_state(EPOCH, spoilt.id, state).await.unwrap();
        assert_eq!(stored, Applied::Done);
        repository.remove_consumer(spoilt.id, None).await.unwrap();
        assert_eq!(repository.consumer(spoilt.id).await.unwrap(), None);
        assert_eq!(repository.insert_consumer(spoilt.clone()).await.unwrap(), spoilt);
    }
}

#[tokio::test]
async fn a_replacement_keeps_what_only_a_newer_version_knows() {
    let scratch = Scratch::new();
    let (repository, [given, ..]) = filled(&scratch).await;
    let name = RecordName::Consumer(given.id);
    spoil::spoil(&scratch.connect(), &name, Spoiling::UnknownField);
    let replaced = repository.replace_consumer(given.generation, given.clone()).await.unwrap();
    assert!(matches!(replaced, Replaced::Done(_)), "{replaced:?}");
    assert!(spoil::has_unknown_field(&scratch.connect(), &name));
}

#[tokio::test]
async fn a_state_that_cannot_be_read_is_neither_given_nor_claimed() {
    for how in [Spoiling::Damaged, Spoiling::Newer] {
        let scratch = Scratch::new();
        let (repository, [spoilt, sound, _]) = filled(&scratch).await;
        let set = if how == Spoiling::Newer { "needs = 99" } else { "state = '{'" };
        let sql = format!(
            "UPDATE consumer_states SET {set} \
             WHERE consumer = (SELECT n FROM consumers WHERE id = ?1)"
        );
        scratch.connect().execute(&sql, [spoilt.id.as_bytes()]).unwrap();

        let name = RecordName::Consumer(spoilt.id);
        let both = repository.consumer_states(vec![sound.id, spoilt.id]).await;
        assert_about(&both.unwrap_err(), &name, how);
        assert_eq!(repository.consumer_states(vec![sound.id]).await.unwrap().len(), 1);
        // Nor is its owner fenced by a node that cannot go on from there.
        let next = Epoch::new(EPOCH.get() + 1);
        let claimed = repository.claim_consumer_state(next, spoilt.id).await;
        assert_about(&claimed.unwrap_err(), &name, how);
        let state = ConsumerState::default();
        let stored = repository.store_consumer_state(EPOCH, spoilt.id, state.clone()).await;
        assert_eq!(stored.unwrap(), Applied::Done);
        let read = repository.consumer_states(vec![spoilt.id]).await.unwrap();
        assert_eq!(read, [(spoilt.id, EPOCH, state)]);
    }
}

#[tokio::test]
async fn a_reject_that_cannot_be_read_keeps_its_place() {
    for how in [Spoiling::Damaged, Spoiling::Newer] {
        let scratch = Scratch::new();
        let (repository, [given, ..]) = filled(&scratch).await;
        let [one, spoilt, other] = [1, 2, 3].map(|number| reject(given.id, number));
        let name = RecordName::Reject(spoilt.id);
        spoil::spoil(&scratch.connect(), &name, how);

        let listed = repository.list_rejects(given.id, Page::new(2, 0)).await.unwrap();
        assert_eq!((listed.items, listed.total), (vec![one.clone()], 3));
        assert_eq!(listed.unreadable.len(), 1);
        assert_eq!(listed.unreadable[0].record, name);
        let all = repository.rejects(given.id, vec![one.id, spoilt.id, other.id]).await;
        assert_about(&all.unwrap_err(), &name, how);
        let sound = repository.rejects(given.id, vec![one.id, other.id]).await.unwrap();
        assert_eq!(sound, [one, other]);
        repository.remove_rejects(given.id, vec![spoilt.id]).await.unwrap();
        let left = repository.list_rejects(given.id, Page::new(9, 0)).await.unwrap();
        assert_eq!((left.items.len(), left.unreadable.len(), left.total), (2, 0, 2));
    }
}

#[tokio::test]
async fn nothing_of_a_removed_consumer_is_left_in_the_file() {
    let scratch = Scratch::new();
    let (repository, [gone, stays, late]) = filled(&scratch).await;
    let records = || {
        let connection = scratch.connect();
        ["consumers", "consumer_states", "rejects"].map(|table| {
            let sql = format!("SELECT count(*) FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        })
    };
    assert_eq!(records(), [3, 3, 9]);
    repository.remove_consumer(gone.id, None).await.unwrap();
    assert_eq!(records(), [2, 2, 6]);
    repository.remove_consumer(late.id, None).await.unwrap();
    repository.insert_rejects(vec![reject(late.id, 9), reject(stays.id, 9)], 2).await.unwrap();
    assert_eq!(records(), [1, 1, 2]);
    repository.remove_consumer(stays.id, None).await.unwrap();
    assert_eq!(records(), [0, 0, 0]);
}
