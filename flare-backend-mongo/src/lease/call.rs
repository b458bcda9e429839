//! Takes what the port asks for; gives what a step has to set for it, and where the answer is.

use flare_core::port::{Expect, LeaseId};
use mongodb::bson::{Bson, Document, doc};

use super::expression::{appended, filtered, first, mapped, when};
use super::size::{LARGE, MAX_ANSWERS, MAX_KEYS, MAX_LEASES};
use super::step::end;
use crate::record::{self, bytes, literal};

/// What `outcome` says of a change: it was made,
pub(super) const DONE: &str = "done";
/// the key was not as expected,
pub(super) const CONFLICT: &str = "conflict";
/// that too, but the step's answers are too large for what is there: to be asked once more,
pub(super) const AGAIN: &str = "again";
/// the lease had ended,
pub(super) const ENDED: &str = "ended";
/// or there was no room.
pub(super) const FULL: &str = "full";

/// The store's clock ticks in milliseconds: a lease that begins within one ends within one.
const CLOCK_TICK: i64 = 1_000_000;

/// One call's part of a step: what it sets, one after the other. The last of it is its answer.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) sets: Vec<Document>,
    /// What it may add to the record.
    pub(super) bytes: usize,
    /// Whether it goes before all that wait: a lease is lost if it comes too late.
    pub(super) is_urgent: bool,
}

impl Call {
    fn new<const N: usize>(sets: [Document; N]) -> Self {
        Self { sets: sets.into(), bytes: 0, is_urgent: false }
    }
}

/// Ends a lease.
pub(super) fn revoke(lease: LeaseId) -> Call {
    let [ending, gone, ended] = end(doc! { "$eq": ["$$it.id", lease.get()] });
    Call::new([ending, gone, ended, answer(doc! {})])
}

/// Starts a lease; its answer is its number as `lease`, if there is room for it.
pub(super) fn grant(ttl: i64) -> Call {
    let room = doc! { "$lt": [{ "$size": "$leases" }, MAX_LEASES] };
    let lease = doc! { "id": "$lastLease", "ttl": ttl, "endsAt": ends_at(ttl) };
    Call::new([
        doc! { "work.room": room },
        doc! { "lastLease": { "$add": ["$lastLease", when("$work.room", 1, 0)] } },
        doc! { "leases": when("$work.room", appended("$leases", lease), "$leases") },
        answer(doc! { "lease": when("$work.room", "$lastLease", Bson::Null) }),
    ])
}

/// Starts a lease's time anew; its answer is how long that is as `ttl`, if it is alive.
pub(super) fn keep_alive(lease: LeaseId) -> Call {
    let is_it = doc! { "$eq": ["$$it.id", lease.get()] };
    // Never earlier than it was: a call that was overtaken takes nothing from what another got.
    let later = doc! { "$max": ["$$it.endsAt", ends_at("$$it.ttl")] };
    let kept = doc! { "$mergeObjects": ["$$it", { "endsAt": later }] };
    let call = Call::new([
        doc! { "work.found": first("$leases", is_it.clone()) },
        doc! { "leases": mapped("$leases", when(is_it, kept, "$$it")) },
        answer(doc! { "ttl": "$work.found.ttl" }),
    ]);
    Call { is_urgent: true, ..call }
}

/// A key to be written, or deleted if there is no value, if it is as expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) key: &'a str,
    pub(super) value: Option<&'a [u8]>,
    pub(super) lease: Option<LeaseId>,
    pub(super) expect: Expect,
}

impl Change<'_> {
    /// Its answer is what became of it as `outcome`, and what was in its way as `found`.
    pub(super) fn call(&self) -> Call {
        let is_it = doc! { "$eq": ["$$it.key", literal(self.key)] };
        let answers = doc! { "$bsonSize": { "last": "$last" } };
        let heavy = doc! { "$gt": [answers, MAX_ANSWERS] };
        let outcome = doc! { "$switch": {
            "branches": [
                { "case": { "$not": self.lease_lives() }, "then": ENDED },
                { "case": { "$not": self.is_expected() }, "then": when(heavy, AGAIN, CONFLICT) },
                { "case": { "$not": self.has_room() }, "then": FULL },
            ],
            "default": DONE,
        } };
        let changes = doc! { "$and": [{ "$eq": ["$work.outcome", DONE] }, self.is_change()] };
        let is_met = doc! { "$eq": ["$work.outcome", CONFLICT] };
        let sets = [
            doc! { "work.found": first("$keys", is_it.clone()) },
            doc! { "work.outcome": outcome },
            doc! { "work.changes": changes },
            doc! { "revision": { "$add": ["$revision", when("$work.changes", 1, 0)] } },
            doc! { "work.event": [self.event()] },
            doc! {
                "keys": when("$work.changes", self.keys(is_it), "$keys"),
                "events": when(
                    "$work.changes",
                    doc! { "$concatArrays": ["$events", "$work.event"] },
                    "$events",
                ),
            },
            answer(doc! {
                "outcome": "$work.outcome",
                "found": when(is_met, "$work.found", Bson::Null),
            }),
        ];
        let bytes = self.key.len() + self.value.map_or(0, <[u8]>::len);
        Call { sets: sets.into(), bytes, is_urgent: false }
    }

    fn lease_lives(&self) -> Bson {
        match self.lease {
            Some(lease) => doc! { "$in": [lease.get(), "$leases.id"] }.into(),
            None => true.into(),
        }
    }

    fn is_expected(&self) -> Bson {
        match self.expect {
            Expect::Anything => true.into(),
            Expect::Absent => doc! { "$eq": ["$work.found", null] }.into(),
            Expect::At(revision) => {
                doc! { "$eq": ["$work.found.revision", record::count(revision.get())] }.into()
            }
        }
    }

    fn has_room(&self) -> Bson {
        let Some(value) = self.value else { return true.into() };
        let more = i64::try_from(self.key.len() + value.len()).unwrap_or(i64::MAX);
        let keys = doc! { "$bsonSize": { "keys": "$keys" } };
        let less = doc! { "$ifNull": [{ "$bsonSize": "$work.found" }, 0] };
        let after = doc! { "$subtract": [{ "$add": [keys, more] }, less] };
        // The second is worked out only where the first does not hold.
        doc! { "$or": [{ "$lt": ["$work.size", LARGE] }, { "$lte": [after, MAX_KEYS] }] }.into()
    }

    /// Deleting what is not there changes nothing.
    fn is_change(&self) -> Bson {
        match self.value {
            Some(_) => true.into(),
            None => doc! { "$ne": ["$work.found", null] }.into(),
        }
    }

    fn event(&self) -> Document {
        match self.value {
            Some(value) => doc! {
                "key": literal(self.key),
                "value": literal(bytes(value)),
                "created": { "$ifNull": ["$work.found.created", "$revision"] },
                "revision": "$revision",
                "lease": self.lease.map(LeaseId::get),
            },
            None => doc! { "key": literal(self.key), "revision": "$revision", "deleted": true },
        }
    }

    /// The keys after the change: a key is what its newest event says.
    fn keys(&self, is_it: Document) -> Document {
        if self.value.is_none() {
            return filtered("$keys", doc! { "$not": is_it });
        }
        let is_new = doc! { "$eq": ["$work.found", null] };
        let written = doc! { "$first": "$work.event" };
        when(
            is_new,
            doc! { "$concatArrays": ["$keys", "$work.event"] },
            mapped("$keys", when(is_it, written, "$$it")),
        )
    }
}

/// Answers a call; every answer says at which revision.
fn answer(mut fields: Document) -> Document {
    fields.insert("revision", "$revision");
    doc! { "last": appended("$last", fields) }
}

/// When a lease ends that begins now.
fn ends_at(ttl: impl Into<Bson>) -> Document {
    doc! { "$add": ["$work.now", ttl.into(), CLOCK_TICK] }
}
