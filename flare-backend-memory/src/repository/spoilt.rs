//! Takes records that a test wants unreadable; gives every read of one the error that a damaged or
//! newer record of a durable store gives. Values in memory are typed, so nothing else can spoil them.

use std::collections::BTreeMap;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use flare_core::model::{RecordName, RowKey, SubscriptionId, Unreadable, WhyUnreadable};
use flare_core::{Error, Result};

use super::MemoryRepository;
use crate::{BACKEND, read, write};

/// What was spoilt, and how; with nothing, a field was added that this version does not know.
#[derive(Debug, Default)]
pub(super) struct Spoilt {
    /// Whether anything ever was: all that a store nobody spoils pays for.
    any: AtomicBool,
    records: RwLock<BTreeMap<RecordName, Option<WhyUnreadable>>>,
}

impl Spoilt {
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Why a record cannot be read, if it cannot.
    pub(super) fn why(&self, record: impl FnOnce() -> RecordName) -> Option<WhyUnreadable> {
        if !self.any() {
            return None;
        }
        read(&self.records).get(&record())?.clone()
    }

    /// A record, unless it cannot be read.
    pub(super) fn read<T>(
        &self,
        operation: &'static str,
        name: impl FnOnce(&T) -> RecordName,
        record: T,
    ) -> Result<T> {
        if !self.any() {
            return Ok(record);
        }
        let name = name(&record);
        match self.why(|| name.clone()) {
            None => Ok(record),
            Some(why) => Err(unreadable(operation, Unreadable::new(name, why))),
        }
    }

    /// The rows of a subscription that something was done to.
    pub(super) fn rows_of(&self, subscription: SubscriptionId) -> Vec<RowKey> {
        if !self.any() {
            return Vec::new();
        }
        let row = |name: &RecordName| match name {
            RecordName::Row(key) if key.subscription == subscription => Some(key.clone()),
            _ => None,
        };
        read(&self.records).keys().filter_map(row).collect()
    }

    /// Forgets what was done to a record that is gone, or was written anew.
    pub(super) fn forget(&self, record: impl FnOnce() -> RecordName) {
        if self.any() {
            write(&self.records).remove(&record());
        }
    }

    /// Forgets what was done to all records of which this is true.
    pub(super) fn forget_all(&self, gone: impl Fn(&RecordName) -> bool) {
        if self.any() {
            write(&self.records).retain(|name, _| !gone(name));
        }
    }
}

pub(super) fn unreadable(operation: &'static str, record: Unreadable) -> Error {
    Error::of_record(operation, record).with_backend(BACKEND)
}

/// The first `limit` that can be read, with those among them that cannot.
pub(super) fn at_most<T>(limit: usize, read: Vec<Result<T>>) -> Vec<Result<T>> {
    let mut left = limit;
    let mut some = Vec::with_capacity(limit.min(read.len()));
    for item in read {
        if left == 0 {
            break;
        }
        left -= usize::from(item.is_ok());
        some.push(item);
    }
    some
}

impl MemoryRepository {
    /// Makes a record unreadable, as a newer version or an accident would in a durable store; with
    /// no reason it only gets a field that this version does not know. For tests: records in memory
    /// are never damaged by themselves.
    ///
    /// It is mended by whatever replaces the record as a whole.
    pub fn spoil(&self, record: RecordName, why: Option<WhyUnreadable>) {
        write(&self.spoilt.records).insert(record, why);
        self.spoilt.any.store(true, Ordering::Release);
    }

    /// Whether the field that [`spoil`](Self::spoil) added to a record is still there.
    pub fn has_unknown_field(&self, record: &RecordName) -> bool {
        matches!(read(&self.spoilt.records).get(record), Some(None))
    }
}
