//! Spoils records behind the repository's back.

#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use flare_core::model::{RECORD_FORMAT, RecordName};
use flare_testkit::unreadable::Spoiling;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};
use mongodb::{Collection, Database};

/// What nobody knows.
const UNKNOWN: &str = "colour";

pub(crate) fn uuid(bytes: &[u8; 16]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

/// Where a record is, by its collection and what finds it there; the field of it that holds JSON, if one
/// does, and one that no reader can do without.
fn place(record: &RecordName) -> (&'static str, Document, Option<&'static str>, &'static str) {
    // A reject's name does not say whose it is.
    if let RecordName::Reject(id) = record {
        let this = doc! { "_id.id": uuid(id.as_bytes()) };
        return ("flare_rejects", this, Some("reject"), "reject");
    }
    let (collection, id, json, needed) = match record {
        RecordName::Resource(id) => {
            ("flare_resources", uuid(id.as_bytes()), Some("resource"), "resource")
        }
        RecordName::Subscription(id) => {
            ("flare_subscriptions", uuid(id.as_bytes()), Some("spec"), "spec")
        }
        RecordName::Document(key) => {
            let id = doc! { "resource": uuid(key.resource.as_bytes()), "url": key.url.as_str() };
            ("flare_documents", id.into(), None, "version")
        }
        RecordName::Row(key) => {
            let subscription = uuid(key.subscription.as_bytes());
            let id = doc! { "subscription": subscription, "url": key.url.as_str() };
            ("flare_rows", id.into(), None, "wanted")
        }
        RecordName::Lane(lane) => {
            let subscription = uuid(lane.subscription.as_bytes());
            let id = doc! { "subscription": subscription, "shard": i64::from(lane.shard) };
            ("flare_lanes", id.into(), Some("state"), "state")
        }
        RecordName::Job(id) => ("flare_jobs", uuid(id.as_bytes()), None, "epoch"),
        RecordName::Consumer(id) => {
            ("flare_consumers", uuid(id.as_bytes()), Some("consumer"), "consumer")
        }
        RecordName::Audit(id) => ("flare_audit", uuid(id.as_bytes()), Some("entry"), "entry"),
        other => panic!("{other:?} is no record of a repository"),
    };
    (collection, doc! { "_id": id }, json, needed)
}

async fn read(records: &Collection<Document>, this: &Document) -> Document {
    records.find_one(this.clone()).await.unwrap().unwrap()
}

pub(crate) async fn spoil(database: &Database, record: &RecordName, how: Spoiling) {
    let (collection, this, json, needed) = place(record);
    let records = database.collection::<Document>(collection);
    let set = match how {
        Spoiling::UnknownField => {
            let mut set = doc! { UNKNOWN: { "red": [1, "x"] } };
            if let Some(json) = json {
                let text = read(&records, &this).await.get_str(json).unwrap().to_owned();
                set.insert(
                    json,
                    text.replacen('{', &format!(r#"{{"{UNKNOWN}":{{"red":[1.50]}},"#), 1),
                );
            }
            set
        }
        Spoiling::Newer => doc! { "needs": i64::from(RECORD_FORMAT) + 1 },
        Spoiling::Damaged => doc! { needed: "{" },
    };
    let done = records.update_one(this, doc! { "$set": set }).await.unwrap();
    assert_eq!(done.matched_count, 1, "{record:?}");
}

pub(crate) async fn has_unknown_field(database: &Database, record: &RecordName) -> bool {
    let (collection, this, json, _) = place(record);
    let found = read(&database.collection(collection), &this).await;
    let inside = json.is_none_or(|json| found.get_str(json).unwrap().contains(UNKNOWN));
    inside && found.contains_key(UNKNOWN)
}
