//! What the model does to a row, in the server's language: [`Row::spread`], [`Row::apply`] and
//! [`Row::replay`] as pipelines. Each recomputes `pending` from the versions it leaves behind.
//!
//! [`Row::spread`]: flare_core::model::Row::spread
//! [`Row::apply`]: flare_core::model::Row::apply
//! [`Row::replay`]: flare_core::model::Row::replay

use flare_core::model::{Epoch, Present, RowEffect, RowKey, Spread, Version};
use mongodb::bson::{Bson, Document, doc};

use super::layout::{id, id_of, word, write_dead};
use crate::bulk::Update;
use crate::record::{self, literal, now};

const REMOVE: &str = "$$REMOVE";

/// Whether there is something left to tell: wanted > max(settled, given up). Nothing is below
/// every version.
fn is_pending() -> Document {
    doc! { "$gt": ["$wanted", { "$max": ["$settled", "$givenUp"] }] }
}

fn true_if(condition: impl Into<Bson>) -> Document {
    doc! { "$cond": [condition.into(), true, REMOVE] }
}

/// Recomputes `pending`; a row that becomes so starts afresh. Two stages, as the second needs the
/// old `pending` as well as the new.
fn start_afresh_if_pending() -> [Document; 2] {
    let starts = doc! { "$and": [{ "$ne": ["$pending", true] }, is_pending()] };
    let fresh = |value: Bson, field: &str| doc! { "$cond": ["$starts", value, field] };
    [
        doc! { "$set": { "starts": starts } },
        doc! { "$set": {
            "since": fresh(now(), "$since"),
            "due": fresh(now(), "$due"),
            "attempts": fresh(0_i64.into(), "$attempts"),
            "attempted": fresh(REMOVE.into(), "$attempted"),
            "firstFailure": fresh(REMOVE.into(), "$firstFailure"),
            "pending": true_if(is_pending()),
            "starts": REMOVE,
        } },
    ]
}

pub(super) fn spread(spread: &Spread) -> Update {
    let raised = doc! { "$set": {
        "resource": record::id(spread.document.resource.as_bytes()),
        "bucket": i64::from(spread.document.url.bucket().number()),
        "wanted": { "$max": ["$wanted", literal(record::version(spread.wanted))] },
        "generation": { "$max": ["$generation", record::count(spread.generation.get())] },
        "present": { "$ifNull": ["$present", word(Present::No)] },
        "epoch": { "$ifNull": ["$epoch", record::count(Epoch::ZERO.get())] },
    } };
    let [first, second] = start_afresh_if_pending();
    Update {
        filter: doc! { "_id": id_of(spread.subscription, &spread.document.url) },
        pipeline: vec![raised, first, second],
        upsert: true,
    }
}

/// An effect of the lane's owner: takes place only where no later owner has been, and nothing as
/// new is settled.
pub(super) fn effect(epoch: Epoch, key: &RowKey, effect: &RowEffect) -> Option<Update> {
    let version = record::version(effect.version());
    let mut filter = doc! {
        "_id": id(key),
        "epoch": { "$lte": record::count(epoch.get()) },
        "settled": { "$not": { "$gte": version.clone() } },
    };
    if matches!(effect, RowEffect::GiveUp { .. }) {
        // What was given up later stays on the list, with its own details.
        filter.insert("givenUp", doc! { "$not": { "$gt": version } });
    }
    let mut set = doc! { "epoch": record::count(epoch.get()) };
    set.extend(taken(effect)?);
    let derived = doc! { "$set": { "pending": true_if(is_pending()) } };
    Some(Update { filter, pipeline: vec![doc! { "$set": set }, derived], upsert: false })
}

/// The fields an effect sets; `None` for one that is not known here.
pub(super) fn taken(effect: &RowEffect) -> Option<Document> {
    let version = |version: Version| literal(record::version(version));
    Some(match effect {
        RowEffect::Settle { version: settled, present } => doc! {
            "settled": version(*settled),
            "present": word(present),
            "attempts": 0_i64,
            "attempted": REMOVE,
            "firstFailure": REMOVE,
            "dead": { "$cond": [{ "$gt": ["$givenUp", version(*settled)] }, "$dead", REMOVE] },
        },
        RowEffect::Retry { version: attempted, present, attempts, due, first_failure } => doc! {
            "attempted": version(*attempted),
            "present": word(present),
            "attempts": i64::from(*attempts),
            "due": record::time(*due),
            "firstFailure": first_failure.map_or_else(|| REMOVE.into(), record::time),
        },
        RowEffect::GiveUp { version: given_up, present, dead } => doc! {
            "givenUp": version(*given_up),
            "present": word(present),
            "dead": literal(write_dead(dead)),
            "attempts": 0_i64,
            "attempted": REMOVE,
            "firstFailure": REMOVE,
        },
        _ => return None,
    })
}

pub(super) fn replay(key: &RowKey, version: Version) -> Update {
    let cleared = doc! { "$set": { "givenUp": REMOVE, "dead": REMOVE } };
    let [first, second] = start_afresh_if_pending();
    Update {
        filter: doc! { "_id": id(key), "givenUp": record::version(version) },
        pipeline: vec![cleared, first, second],
        upsert: false,
    }
}

/// What the holder of a claim settles: the claim ends, and the version is settled unless one as
/// new is already.
pub(super) fn settle_claimed(settle: &RowEffect) -> Option<Vec<Document>> {
    let overtaken = doc! { "$gte": ["$settled", literal(record::version(settle.version()))] };
    let mut set = doc! { "claim": REMOVE };
    for (field, value) in taken(settle)? {
        let old = format!("${field}");
        set.insert(field, doc! { "$cond": [overtaken.clone(), old, value] });
    }
    let derived = doc! { "$set": { "pending": true_if(is_pending()) } };
    Some(vec![doc! { "$set": set }, derived])
}
