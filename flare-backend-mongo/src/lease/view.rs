//! Takes what a reader asks for; gives it as a projection of the record.

use flare_core::port::StoreRevision;
use mongodb::bson::{Document, doc};

use super::expression::{filtered, mapped};
use crate::record::{self, literal};

/// What a reader wants of one key: `entries`, at `revision`.
pub(super) fn entry(key: &str) -> Document {
    let is_it = doc! { "$eq": ["$$it.key", literal(key)] };
    doc! { "revision": 1, "entries": filtered("$keys", is_it) }
}

/// What a reader wants of a prefix: `entries`, at `revision`.
pub(super) fn entries_under(prefix: &str) -> Document {
    doc! { "revision": 1, "entries": filtered("$keys", is_under(prefix)) }
}

/// What a watcher wants that has seen everything up to `from`: later `events`, up to `revision`.
pub(super) fn events_under(prefix: &str, from: StoreRevision) -> Document {
    let later = doc! { "$gt": ["$$it.revision", record::count(from.get())] };
    let wanted = doc! { "$and": [later, is_under(prefix)] };
    doc! { "revision": 1, "compacted": 1, "events": filtered("$events", wanted) }
}

/// Whether a lease has lapsed that is not ended yet.
pub(super) fn is_due() -> Document {
    let lapsed = doc! { "$lte": ["$$it.endsAt", record::now()] };
    doc! { "$anyElementTrue": [mapped("$leases", lapsed)] }
}

fn is_under(prefix: &str) -> Document {
    // Not a part of the key compared with the prefix: a part may end within a letter, an error.
    doc! { "$eq": [{ "$indexOfBytes": ["$$it.key", literal(prefix)] }, 0] }
}
