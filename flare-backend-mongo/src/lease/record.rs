//! Takes entries and events as the record holds them; gives the port's values.

use std::time::Duration;

use bytes::Bytes;
use flare_core::Result;
use flare_core::port::{Entry, KeyChange, KeyEvent, LeaseId, StoreRevision};
use mongodb::bson::{Bson, Document};
use tracing::debug;

use crate::record::Record;

/// A time span in the record's unit.
pub(super) fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

pub(super) fn revision(record: &Record<'_>, field: &str) -> Result<StoreRevision> {
    record.small(field).map(StoreRevision::new)
}

/// A key: `{key, value, created, revision, lease}`. One whose value is damaged is there all the same,
/// with none: whose key it is may be alive.
pub(super) fn entry(record: &Record<'_>) -> Result<Entry> {
    let value = record.bytes_if_any("value").ok().flatten().unwrap_or_default();
    Ok(Entry::new(
        record.text("key")?,
        Bytes::copy_from_slice(value),
        revision(record, "created")?,
        revision(record, "revision")?,
        record.number_if_any("lease")?.map(LeaseId::new),
    ))
}

/// A change: what the key became, or `{key, revision, deleted: true}`.
pub(super) fn event(record: &Record<'_>) -> Result<KeyEvent> {
    let kind = match record.flag("deleted")? {
        true => KeyChange::Deleted,
        false => KeyChange::Written(entry(record)?),
    };
    Ok(KeyEvent::new(revision(record, "revision")?, record.text("key")?, kind))
}

pub(super) fn entries(operation: &'static str, found: &Document) -> Result<Vec<Entry>> {
    each(operation, found, "entries", entry)
}

pub(super) fn events(operation: &'static str, found: &Document) -> Result<Vec<KeyEvent>> {
    each(operation, found, "events", event)
}

fn each<T>(
    operation: &'static str,
    found: &Document,
    field: &str,
    read: impl Fn(&Record<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let found = Record::new(operation, found);
    let one = |item: &Bson| match item {
        Bson::Document(fields) => read(&Record::new(operation, fields)),
        _ => Err(found.corrupt(field)),
    };
    let items = found.array_if_any(field)?.unwrap_or_default().iter();
    let readable = |item: &Bson| {
        one(item).inspect_err(|error| debug!(%error, "a key that cannot be read is left out")).ok()
    };
    Ok(items.filter_map(readable).collect())
}
