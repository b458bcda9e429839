//! Stored bytes of every kind, changed at random: reading them is an answer or an error that is about
//! that record alone. Nothing panics, and nothing else is lost.

use bytes::Bytes;
use flare_core::model::consumer::{RejectReason, Rejection};
use flare_core::model::{
    Actor, AuditAction, AuditEntry, AuditEntryId, AuditSubject, ChangeRule, Checkpoint, Consumer,
    ConsumerId, ConsumerState, Endpoint, Epoch, Generation, LaneId, LaneState, RecordKind, Reject,
    Resource, ResourceId, Subscription, SubscriptionId, SubscriptionSpec, Timestamp,
};
use flare_core::port::Listing;
use flare_core::{ErrorKind, Result};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use proptest::prelude::*;

use super::audit::{read_audit, write_audit};
use super::consumers::{read_consumer, read_consumer_state, write_consumer};
use super::documents::{read_document, read_head};
use super::jobs::read_job;
use super::rejects::{read_reject, write_reject};
use super::resources::{read_candidate, read_resource, write_resource};
use super::rows::{read_row, read_state};
use super::subscriptions::{read_member, read_subscription, write_subscription};
use crate::record::{self, Record};
use crate::unreadable::{read_partly, read_raw};

const ID: [u8; 16] = [7; 16];
const KINDS: [RecordKind; 9] = [
    RecordKind::Resource,
    RecordKind::Subscription,
    RecordKind::Document,
    RecordKind::Row,
    RecordKind::Lane,
    RecordKind::Job,
    RecordKind::Consumer,
    RecordKind::Reject,
    RecordKind::Audit,
];

/// A record of a kind as Flare stores it.
fn stored(kind: RecordKind) -> Document {
    let (id, url) = (record::id(&ID), "http://a.example/users/1");
    let version = doc! { "revision": 5_i64, "gone": false };
    match kind {
        RecordKind::Resource => {
            let endpoint = Endpoint::parse("http://a.example/users/{id}").unwrap();
            let rule = ChangeRule::new("rev", None).unwrap();
            let id = ResourceId::from_bytes(ID);
            write_resource(&Resource::new(id, endpoint, rule, Timestamp::EPOCH)).unwrap()
        }
        RecordKind::Subscription => {
            let spec = SubscriptionSpec::post("http://c.example/{id}").lanes(2).concurrency(4);
            let (id, of) = (SubscriptionId::from_bytes(ID), ResourceId::from_bytes(ID));
            let mut it = Subscription::new(id, of, spec.build().unwrap(), Timestamp::EPOCH);
            (it.reason, it.slot, it.least_epoch) = (Some("x".to_owned()), Some(3), Epoch::new(9));
            write_subscription("test", &it).unwrap()
        }
        RecordKind::Document => doc! {
            "_id": { "resource": id, "url": url },
            "version": version.clone(),
            "content": record::bytes(b"{}"),
            "updatedAt": 5_i64,
            "dispatched": version,
            "open": [1_i64, 2_i64],
            "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "undispatched": true,
        },
        RecordKind::Row => doc! {
            "_id": { "subscription": id.clone(), "url": url },
            "resource": id.clone(),
            "bucket": 7_i64,
            "wanted": version.clone(),
            "settled": version.clone(),
            "givenUp": version,
            "dead": {
                "id": id.clone(), "action": "create", "reason": "expired", "attempts": 3_i64,
                "firstFailureAt": 1_i64, "diedAt": 2_i64, "lastStatus": 500_i64, "lastError": "x",
            },
            "present": "no",
            "generation": 1_i64,
            "attempts": 0_i64,
            "due": 1_i64,
            "since": 1_i64,
            "epoch": 1_i64,
            "claim": { "id": id, "until": 5_i64 },
            "pending": true,
        },
        RecordKind::Lane => {
            let state = LaneState::new(LaneId::new(SubscriptionId::from_bytes(ID), 0));
            doc! {
                "_id": { "subscription": id, "shard": 0_i64 },
                "epoch": 1_i64,
                "state": serde_json::to_string(&state).unwrap(),
            }
        }
        RecordKind::Consumer => {
            let text = concat!(
                r#"{"source":{"kind":"sqs","settings":{"queue":"users"}},"#,
                r#""document":{"url":"http://a.example/users/{/id}","revision":"/ts","#,
                r#""delete":{"pointer":"/op","equals":"d"}},"createdAt":1,"updatedAt":2}"#
            );
            let (id, of) = (ConsumerId::from_bytes(ID), ResourceId::from_bytes(ID));
            let consumer = Consumer::from_stored(id, of, Generation::new(3), text).unwrap();
            let mut record = write_consumer("test", &consumer).unwrap();
            let mut state = ConsumerState::default();
            state.checkpoints = vec![Checkpoint::new("shard", "49")];
            record.insert("epoch", 4_i64);
            record.insert("state", state.stored().unwrap());
            record
        }
        RecordKind::Reject => {
            let (consumer, body) = (ConsumerId::from_bytes(ID), Bytes::from_static(b"\xff{"));
            let rejection = Rejection::new(RejectReason::NotJson, "/id", "is not JSON");
            let reject = Reject::new(consumer, "m-1", &body, rejection, Timestamp::EPOCH);
            let mut record = doc! { "_id": { "consumer": id.clone(), "id": id } };
            record.extend(write_reject("test", &reject).unwrap());
            record
        }
        RecordKind::Audit => {
            let (id, subject) = (AuditEntryId::from_bytes(ID), AuditSubject::slot(7));
            let (actor, action) = (Actor::named("ops"), AuditAction::Pinned);
            let entry = AuditEntry::new(id, Timestamp::EPOCH, actor, action, subject);
            write_audit("test", &entry.with_detail("node a")).unwrap()
        }
        RecordKind::Job | RecordKind::Task => doc! {
            "_id": id,
            "kind": "expire",
            "subject": "retention",
            "cursor": "1",
            "epoch": 1_i64,
            "due": 1_i64,
            "createdAt": 1_i64,
        },
    }
}

/// Reads a record in every way there is for its kind.
fn read(kind: RecordKind, raw: &RawDocumentBuf) -> Vec<Result<()>> {
    fn one<T>(
        kind: RecordKind,
        raw: &RawDocumentBuf,
        read: impl FnOnce(Record<'_>) -> Result<T>,
    ) -> Result<()> {
        read_raw("test", kind, raw, read).map(drop)
    }
    match kind {
        RecordKind::Resource => {
            // To be in nobody's way is the least that one may be.
            _ = read_partly("test", kind, raw, read_candidate);
            vec![one(kind, raw, read_resource)]
        }
        RecordKind::Subscription => {
            vec![one(kind, raw, read_subscription), one(kind, raw, read_member)]
        }
        RecordKind::Document => vec![one(kind, raw, read_document), one(kind, raw, read_head)],
        RecordKind::Row => vec![one(kind, raw, read_row)],
        RecordKind::Lane => vec![one(kind, raw, read_state)],
        RecordKind::Consumer => {
            vec![one(kind, raw, read_consumer), one(kind, raw, read_consumer_state)]
        }
        RecordKind::Reject => vec![one(kind, raw, read_reject)],
        RecordKind::Audit => vec![one(kind, raw, read_audit)],
        RecordKind::Job | RecordKind::Task => vec![one(kind, raw, read_job)],
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Insists that reading fails, if at all, for this one record alone.
fn insist(kind: RecordKind, raw: &RawDocumentBuf) {
    for read in read(kind, raw) {
        if let Err(error) = read {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            let unreadable = error.unreadable().expect("it names the record");
            assert_eq!(unreadable.record.kind(), kind);
        }
    }
}

#[test]
fn what_flare_writes_is_read() {
    for kind in KINDS {
        for read in read(kind, &raw(&stored(kind))) {
            read.unwrap();
        }
        let mut newer = stored(kind);
        newer.insert("needs", i64::from(flare_core::model::RECORD_FORMAT) + 1);
        newer.insert("colour", "red");
        let read = &read(kind, &raw(&newer))[0];
        assert!(read.as_ref().unwrap_err().unreadable().unwrap().is_newer(), "{kind}");
    }
}

/// Values of many types.
fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        Just(Bson::MaxKey),
        any::<bool>().prop_map(Bson::Boolean),
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        ".{0,20}".prop_map(Bson::String),
        prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| record::bytes(&bytes)),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            prop::collection::vec(("[a-z]{1,8}", inner), 0..3)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_are_one_bad_record(
        which in 0..KINDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let kind = KINDS[which];
        let mut bytes = raw(&stored(kind)).into_bytes();
        for (at, byte) in changes {
            // The length and the end are what the wire itself checks.
            let at = 4 + at.index(bytes.len() - 5);
            bytes[at] = byte;
        }
        if let Ok(changed) = RawDocumentBuf::from_bytes(bytes) {
            insist(kind, &changed);
            let around = [raw(&stored(kind)), changed, raw(&stored(kind))];
            let reads = around.iter().map(|raw| read(kind, raw).remove(0));
            let listing = Listing::of_read(reads, 3).unwrap();
            prop_assert!(listing.items.len() >= 2, "the others are given");
            prop_assert_eq!(listing.items.len() + listing.unreadable.len(), 3);
        }
    }

    #[test]
    fn changed_fields_are_one_bad_record(
        which in 0..KINDS.len(), field: prop::sample::Index, value in value(), inside: bool,
    ) {
        let kind = KINDS[which];
        let mut changed = stored(kind);
        let key = field.get(&changed.keys().cloned().collect::<Vec<_>>()).clone();
        match changed.get_mut(&key) {
            Some(Bson::Document(inner)) if inside && !inner.is_empty() => {
                let key = field.get(&inner.keys().cloned().collect::<Vec<_>>()).clone();
                inner.insert(key, value);
            }
            _ => drop(changed.insert(key, value)),
        }
        insist(kind, &raw(&changed));
    }

    #[test]
    fn changed_text_is_one_bad_record(
        which in 0..6_usize, at: prop::sample::Index, byte in 1_u8..128, cut: bool,
    ) {
        let (kind, field) = [
            (RecordKind::Resource, "resource"),
            (RecordKind::Subscription, "spec"),
            (RecordKind::Lane, "state"),
            (RecordKind::Consumer, "consumer"),
            (RecordKind::Consumer, "state"),
            (RecordKind::Reject, "reject"),
            (RecordKind::Audit, "entry"),
        ][which];
        let mut changed = stored(kind);
        let mut text = changed.get_str(field).unwrap().as_bytes().to_vec();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        changed.insert(field, String::from_utf8_lossy(&text).into_owned());
        insist(kind, &raw(&changed));
    }
}
