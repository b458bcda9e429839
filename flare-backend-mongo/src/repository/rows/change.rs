//! What the model does to a row, in the server's language: [`Row::spread`], [`Row::apply`] and
//! [`Row::replay`] as pipelines. Each recomputes `pending` from the versions it leaves behind.
//!
//! [`Row::spread`]: flare_core::model::Row::spread
//! [`Row::apply`]: flare_core::model::Row::apply
//! [`Row::replay`]: flare_core::model::Row::replay

use flare_core::model::{
    Epoch, Present, Round, RowEffect, RowKey, Spread, SpreadCause, Timestamp, Version,
};
use flare_core::port::RowUpdate;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};

use super::layout::{id, id_of, word, write_dead};
use crate::bulk::Update;
use crate::record::{self, literal, now};

const REMOVE: &str = "$$REMOVE";
/// Which batch settled a row last.
pub(super) const MARK: &str = "mark";

/// Whether there is something left to tell: wanted > max(settled, given up). Nothing is below
/// every version.
fn is_pending() -> Document {
    doc! { "$gt": ["$wanted", { "$max": ["$settled", "$givenUp"] }] }
}

fn true_if(condition: impl Into<Bson>) -> Document {
    doc! { "$cond": [condition.into(), true, REMOVE] }
}

/// When a row's client may be told at the earliest.
pub(super) fn earliest() -> Document {
    doc! { "$max": [now(), "$notBefore"] }
}

/// Recomputes `pending`; a row that becomes so, or is told in a new round (`renews`), starts afresh.
/// Two stages, as the second needs the old `pending` as well as the new.
fn start_afresh_if_pending() -> [Document; 2] {
    let becomes = doc! { "$and": [{ "$ne": ["$pending", true] }, is_pending()] };
    let starts = doc! { "$or": [{ "$eq": ["$renews", true] }, becomes] };
    let fresh = |value: Bson, field: &str| doc! { "$cond": ["$starts", value, field] };
    // What a puller has is told again once its claim has ended.
    let due = doc! { "$max": [now(), "$notBefore", "$claim.until"] };
    // What was asked for already may be on its way.
    let demanded = doc! { "$cond": [{ "$eq": ["$pending", true] }, "$demanded", REMOVE] };
    [
        doc! { "$set": { "starts": starts } },
        doc! { "$set": {
            "since": fresh(now(), "$since"),
            "due": fresh(due.into(), "$due"),
            "demanded": fresh(demanded.into(), "$demanded"),
            "attempts": fresh(0_i64.into(), "$attempts"),
            "attempted": fresh(REMOVE.into(), "$attempted"),
            "firstFailure": fresh(REMOVE.into(), "$firstFailure"),
            "pending": true_if(is_pending()),
            "starts": REMOVE,
            "renews": REMOVE,
        } },
    ]
}

pub(super) fn spread(spread: &Spread) -> Update {
    let mut raised = doc! {
        "resource": record::id(spread.document.resource.as_bytes()),
        "bucket": i64::from(spread.document.url.bucket().number()),
        "wanted": { "$max": ["$wanted", literal(record::version(spread.wanted))] },
        "generation": { "$max": ["$generation", record::count(spread.generation.get())] },
        "present": { "$ifNull": ["$present", word(Present::No)] },
        "epoch": { "$ifNull": ["$epoch", record::count(Epoch::ZERO.get())] },
    };
    let mut pipeline = Vec::with_capacity(5);
    if spread.round() > Round::ZERO {
        let made = doc! { "$eq": [{ "$type": "$wanted" }, "missing"] };
        let round = record::count(spread.round().get());
        raised.insert("round", doc! { "$cond": [made, round, "$round"] });
    }
    pipeline.push(doc! { "$set": raised });
    pipeline.extend(begin_round(spread));
    pipeline.extend(start_afresh_if_pending());
    Update {
        filter: doc! { "_id": id_of(spread.subscription, &spread.document.url) },
        change: pipeline.into(),
        upsert: spread.makes_row(),
    }
}

/// The same for many rows that changes alone concern and that are there; each finds the version it is to want,
/// and the generation, in its item.
pub(super) fn spread_many() -> [Document; 3] {
    let raised = doc! { "$set": {
        "wanted": { "$max": ["$wanted", "$item.wanted"] },
        "generation": { "$max": ["$generation", "$item.generation"] },
    } };
    let [first, second] = start_afresh_if_pending();
    [raised, first, second]
}

/// What a row of many wants.
pub(super) fn spread_item(spread: &Spread) -> Document {
    let generation = record::count(spread.generation.get());
    doc! { "wanted": record::version(spread.wanted), "generation": generation }
}

/// The record of a row that a change makes at `now`.
pub(super) fn made_row(spread: &Spread, now: Timestamp) -> Document {
    doc! {
        "_id": id_of(spread.subscription, &spread.document.url),
        "resource": record::id(spread.document.resource.as_bytes()),
        "bucket": i64::from(spread.document.url.bucket().number()),
        "wanted": record::version(spread.wanted),
        "generation": record::count(spread.generation.get()),
        "present": word(Present::No),
        "epoch": record::count(Epoch::ZERO.get()),
        "since": record::time(now),
        "due": record::time(now),
        "attempts": 0_i64,
        "pending": true,
    }
}

/// Has everything told anew, where that was not done yet, by what a backfill or resync asks of a row.
fn begin_round(spread: &Spread) -> Vec<Document> {
    let round = record::count(spread.round().get());
    let later = doc! { "$lt": [{ "$ifNull": ["$round", 0_i64] }, round.clone()] };
    let (renews, present) = match spread.cause {
        SpreadCause::Change | SpreadCause::Refused => return Vec::new(),
        SpreadCause::Backfill(_) => {
            let rests = doc! { "$not": [is_pending()] };
            let is_dead = doc! { "$gt": ["$givenUp", "$settled"] };
            let holds_none = doc! { "$eq": ["$present", word(Present::No)] };
            let renews = doc! { "$and": [later, rests, { "$not": [is_dead] }, holds_none] };
            (renews, word(Present::No))
        }
        SpreadCause::Resync(_) | SpreadCause::ResyncRefused(_) => (later, word(Present::Maybe)),
    };
    let anew = |value: Bson, field: &str| doc! { "$cond": ["$renews", value, field] };
    vec![
        doc! { "$set": { "renews": renews } },
        doc! { "$set": {
            "round": anew(round, "$round"),
            "settled": anew(REMOVE.into(), "$settled"),
            "givenUp": anew(REMOVE.into(), "$givenUp"),
            "dead": anew(REMOVE.into(), "$dead"),
            "present": anew(present, "$present"),
        } },
    ]
}

/// The round that a record must be in; records have none of the first one.
fn in_round(round: Round) -> Bson {
    if round == Round::ZERO { doc! { "$exists": false }.into() } else { record::count(round.get()) }
}

/// An effect of the lane's owner: takes place only where no later owner has been, and nothing as
/// new is settled.
pub(super) fn effect(epoch: Epoch, update: &RowUpdate) -> Update {
    let RowUpdate { key, round, effect } = update;
    let version = record::version(effect.version());
    let mut filter = doc! {
        "_id": id(key),
        "epoch": { "$lte": record::count(epoch.get()) },
        "round": in_round(*round),
        "settled": { "$not": { "$gte": version.clone() } },
    };
    if matches!(effect, RowEffect::GiveUp { .. }) {
        // What was given up later stays on the list, with its own details.
        filter.insert("givenUp", doc! { "$not": { "$gt": version } });
    }
    let mut set = doc! { "epoch": record::count(epoch.get()) };
    set.extend(taken(effect));
    let derived = doc! { "$set": { "pending": true_if(is_pending()) } };
    Update { filter, change: vec![doc! { "$set": set }, derived].into(), upsert: false }
}

/// Settlements of many rows by one owner. Those that take place carry the mark, whatever else is in a row.
pub(super) fn settle_many(epoch: Epoch, mark: ObjectId) -> [Document; 3] {
    let epoch = record::count(epoch.get());
    // One that has no epoch, or none that can be read, is nobody's to settle.
    let mine = doc! { "$lte": [{ "$ifNull": ["$epoch", i64::MAX] }, &epoch] };
    let in_round = doc! { "$eq": [{ "$ifNull": ["$round", 0_i64] }, "$item.round"] };
    let newer = doc! { "$lt": ["$settled", "$item.settled"] };
    let takes_place = doc! { "$and": [mine, in_round, newer] };
    let mut set = Document::new();
    let mut if_so = |field: &str, value: Bson| {
        let old = format!("${field}");
        set.insert(field, doc! { "$cond": ["$item.takesPlace", value, old] });
    };
    let buried = doc! { "$cond": [{ "$gt": ["$givenUp", "$item.settled"] }, "$dead", REMOVE] };
    if_so("epoch", epoch);
    if_so("settled", "$item.settled".into());
    if_so("present", "$item.present".into());
    if_so("attempts", 0_i64.into());
    if_so("dead", buried.into());
    for field in ["demanded", "attempted", "firstFailure"] {
        if_so(field, REMOVE.into());
    }
    // Of what is not there the greatest is what is.
    if_so("notBefore", doc! { "$ifNull": ["$item.notBefore", "$notBefore"] }.into());
    if_so("due", doc! { "$max": ["$due", "$item.notBefore"] }.into());
    if_so(MARK, mark.into());
    // Nothing of a row is touched where it does not take place: what is modified is counted.
    let pending = doc! { "$cond": ["$item.takesPlace", true_if(is_pending()), "$pending"] };
    [
        doc! { "$set": { "item.takesPlace": takes_place } },
        doc! { "$set": set },
        doc! { "$set": { "pending": pending } },
    ]
}

/// What a row of many is settled at; none for another effect.
pub(super) fn settle_item(update: &RowUpdate) -> Option<Document> {
    let RowEffect::Settle { version, present, not_before } = &update.effect else { return None };
    let mut item = doc! {
        "settled": record::version(*version),
        "present": word(present),
        "round": record::count(update.round.get()),
    };
    if let Some(time) = not_before {
        item.insert("notBefore", record::time(*time));
    }
    Some(item)
}

/// The fields an effect sets.
fn taken(effect: &RowEffect) -> Document {
    let version = |version: Version| literal(record::version(version));
    match effect {
        RowEffect::Settle { version: settled, present, not_before } => {
            let mut set = doc! {
                "settled": version(*settled),
                "present": word(present),
                "demanded": REMOVE,
                "attempts": 0_i64,
                "attempted": REMOVE,
                "firstFailure": REMOVE,
                "dead": { "$cond": [{ "$gt": ["$givenUp", version(*settled)] }, "$dead", REMOVE] },
            };
            if let Some(time) = not_before {
                set.insert("notBefore", record::time(*time));
                set.insert("due", doc! { "$max": ["$due", record::time(*time)] });
            }
            set
        }
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
            "demanded": REMOVE,
            "attempts": 0_i64,
            "attempted": REMOVE,
            "firstFailure": REMOVE,
        },
    }
}

pub(super) fn replay(key: &RowKey, version: Version) -> Update {
    let cleared = doc! { "$set": { "givenUp": REMOVE, "dead": REMOVE } };
    let [first, second] = start_afresh_if_pending();
    Update {
        filter: doc! { "_id": id(key), "givenUp": record::version(version) },
        change: vec![cleared, first, second].into(),
        upsert: false,
    }
}

/// The end of a claim: the row is to be had again as soon as its client may be told.
pub(super) fn end_claim() -> Document {
    doc! { "$set": { "claim": REMOVE, "due": earliest() } }
}

/// What the holder of a claim settles: the claim ends, and the version is settled unless one as
/// new is already, or the row is told in another round.
pub(super) fn settle_claimed(round: Round, settle: &RowEffect) -> Vec<Document> {
    let settled = doc! { "$gte": ["$settled", literal(record::version(settle.version()))] };
    let round = record::count(round.get());
    let another = doc! { "$ne": [{ "$ifNull": ["$round", 0_i64] }, round] };
    let overtaken = doc! { "$or": [settled, another] };
    let mut set = Document::new();
    for (field, value) in taken(settle) {
        let old = format!("${field}");
        set.insert(field, doc! { "$cond": [overtaken.clone(), old, value] });
    }
    let derived = doc! { "$set": { "pending": true_if(is_pending()) } };
    vec![end_claim(), doc! { "$set": set }, derived]
}
