//! Takes calls; gives the pipeline that makes them in one step. Plain data, nothing is sent.
//!
//! The record, with all times in nanoseconds by the server's clock:
//!
//! ```text
//! { _id: "state", revision, compacted, lastLease,
//!   keys:   [{ key, value, created, revision, lease }],
//!   leases: [{ id, ttl, endsAt }],
//!   events: [{ key, value, created, revision, lease } or { key, revision, deleted: true }],
//!   last:   what became of each of the newest calls }
//! ```
//!
//! Every step begins alike: history is shortened if it has to be, lapsed leases are ended. Then
//! come the calls, each as if it were alone. What is worked out on the way is in `work`, which is
//! gone at the end. Keys are values in arrays, never names of fields, and always under `$literal`:
//! a key may look like an operator.

use mongodb::bson::{Document, doc};

use super::call::Call;
use super::expression::{filtered, when};
use super::size::{KEPT_EVENT_BYTES, KEPT_EVENTS, LARGE, MAX_EVENTS};
use crate::record;

/// The record of a store that was never used.
pub(super) fn initial() -> Document {
    doc! {
        "revision": 0_i64,
        "compacted": 0_i64,
        "lastLease": 0_i64,
        "keys": [],
        "leases": [],
        "events": [],
    }
}

/// Ends the leases that have lapsed, and nothing else. Changes nothing if none has.
pub(super) fn settle() -> Vec<Document> {
    step(begin())
}

/// Makes calls, in their order; `last` has their answers.
pub(super) fn make(calls: impl IntoIterator<Item = Call>) -> Vec<Document> {
    let unanswered = doc! { "last": [] };
    let calls = calls.into_iter().flat_map(|call| call.sets);
    step(begin().into_iter().chain([unanswered]).chain(calls))
}

/// A step that sets all this, one after the other.
fn step(sets: impl IntoIterator<Item = Document>) -> Vec<Document> {
    let sets = sets.into_iter().map(|fields| doc! { "$set": fields });
    sets.chain([doc! { "$unset": "work" }]).collect()
}

/// What every step begins with.
fn begin() -> Vec<Document> {
    let forgets = doc! { "$gt": ["$work.forgotten", 0] };
    let [ending, gone, ended] = end(doc! { "$lte": ["$$it.endsAt", "$work.now"] });
    vec![
        // Before anything is set: the size of a record as it was stored costs nothing.
        doc! { "work.size": { "$bsonSize": "$$ROOT" }, "work.now": record::now() },
        doc! { "work.forgotten": forgotten() },
        doc! {
            "compacted": when(forgets.clone(), newest_forgotten(), "$compacted"),
            "events": when(forgets, remembered(), "$events"),
        },
        ending,
        gone,
        ended,
    ]
}

/// Ends the leases for which the condition on `$$it` holds, with their keys.
pub(super) fn end(condition: Document) -> [Document; 3] {
    let ended = doc! { "$in": ["$$it.id", "$work.ending.id"] };
    let bound = doc! { "$in": ["$$it.lease", "$work.ending.id"] };
    [
        doc! { "work.ending": filtered("$leases", condition) },
        doc! { "work.gone": in_order_of_ending() },
        doc! {
            "leases": filtered("$leases", doc! { "$not": ended }),
            "keys": filtered("$keys", doc! { "$not": bound }),
            "events": { "$concatArrays": ["$events", deletions()] },
            "revision": { "$add": ["$revision", { "$size": "$work.gone" }] },
        },
    ]
}

/// The names of the keys that go: as their leases ended.
fn in_order_of_ending() -> Document {
    let ending =
        doc! { "$sortArray": { "input": "$work.ending", "sortBy": { "endsAt": 1, "id": 1 } } };
    let bound = filtered("$keys", doc! { "$eq": ["$$it.lease", "$$this.id"] });
    let names = doc! { "$map": { "input": bound, "as": "it", "in": "$$it.key" } };
    let gone = doc! { "$concatArrays": ["$$value", names] };
    doc! { "$reduce": { "input": ending, "initialValue": [], "in": gone } }
}

/// An event, with a revision, for each key that goes.
fn deletions() -> Document {
    let deletion = doc! {
        "key": { "$arrayElemAt": ["$work.gone", "$$index"] },
        "revision": { "$add": ["$revision", "$$index", 1] },
        "deleted": true,
    };
    let indexes = doc! { "$range": [0, { "$size": "$work.gone" }] };
    doc! { "$map": { "input": indexes, "as": "index", "in": deletion } }
}

/// How many of the oldest events are forgotten: none, unless they are many or the record is large.
fn forgotten() -> Document {
    let fits = doc! { "$and": [
        { "$lt": [{ "$size": "$events" }, MAX_EVENTS] },
        { "$lt": ["$work.size", LARGE] },
    ] };
    when(fits, 0, doc! { "$subtract": [{ "$size": "$events" }, kept()] })
}

fn newest_forgotten() -> Document {
    doc! { "$arrayElemAt": ["$events.revision", { "$subtract": ["$work.forgotten", 1] }] }
}

fn remembered() -> Document {
    doc! { "$slice": ["$events", "$work.forgotten", { "$size": "$events" }] }
}

/// How many of the newest events can stay.
fn kept() -> Document {
    let size = doc! { "$add": ["$$value.size", { "$bsonSize": "$$this" }] };
    let stays = doc! { "$and": [
        { "$lte": ["$$size", KEPT_EVENT_BYTES] },
        { "$lt": ["$$value.count", KEPT_EVENTS] },
    ] };
    let counted =
        doc! { "size": "$$size", "count": { "$add": ["$$value.count", when(stays, 1, 0)] } };
    let walk = doc! { "$reduce": {
        "input": { "$reverseArray": "$events" },
        "initialValue": { "size": 0, "count": 0 },
        "in": { "$let": { "vars": { "size": size }, "in": counted } },
    } };
    doc! { "$let": { "vars": { "walk": walk }, "in": "$$walk.count" } }
}
