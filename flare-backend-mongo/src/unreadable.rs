//! Takes records as they are stored, whatever became of them; gives what they hold, or an error that
//! names the one record it is about. Reads each by itself, so one says nothing about the next.
//!
//! `needs`, in any record, is the format a worker must know; without it, the first.

use flare_core::model::{
    AuditEntryId, ConsumerId, DocumentKey, DocumentUrl, JobId, LaneId, RECORD_FORMAT, RecordKind,
    RecordName, RejectId, ResourceId, RowKey, SubscriptionId, Unreadable, WhyUnreadable,
};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Bson, Document, RawDocumentBuf};

use crate::BACKEND;
use crate::record::Record;

/// A name that nobody gave may be of any length.
const SHOWN: usize = 100;

/// Reads one record as it came from the server, all of it.
pub(crate) fn read_raw<T>(
    operation: &'static str,
    kind: RecordKind,
    raw: &RawDocumentBuf,
    read: impl FnOnce(Record<'_>) -> Result<T>,
) -> Result<T> {
    read_partly(operation, kind, raw, |record, broken| match broken {
        None => record.whole(kind, read),
        Some(error) => Err(error),
    })
}

/// Reads what can be read of one record; where some of it is not even BSON there is an error too.
pub(crate) fn read_partly<T>(
    operation: &'static str,
    kind: RecordKind,
    raw: &RawDocumentBuf,
    read: impl FnOnce(Record<'_>, Option<Error>) -> Result<T>,
) -> Result<T> {
    let mut fields = Document::new();
    let mut broken = false;
    for element in raw.iter() {
        let value = element.and_then(|(key, value)| Ok((key.to_string(), Bson::try_from(value)?)));
        match value {
            Ok((key, value)) => drop(fields.insert(key, value)),
            Err(_) => broken = true,
        }
    }
    let record = Record::new(operation, &fields);
    let detail = || "it is no BSON that could be read".to_owned();
    let broken =
        broken.then(|| record.unreadable(kind, WhyUnreadable::Damaged { detail: detail() }));
    read(record, broken)
}

impl<'a> Record<'a> {
    /// Reads a record that stands for itself: what cannot be read of it names it.
    pub(crate) fn whole<T>(
        &self,
        kind: RecordKind,
        read: impl FnOnce(Record<'a>) -> Result<T>,
    ) -> Result<T> {
        let newer = match self.number_if_any("needs").map(|needs| needs.map(u32::try_from)) {
            Ok(None) => None,
            Ok(Some(Ok(needs))) if needs <= RECORD_FORMAT => None,
            Ok(Some(Ok(needs))) => Some(WhyUnreadable::Newer { needs }),
            _ => Some(WhyUnreadable::Damaged { detail: not_understood("needs") }),
        };
        if let Some(why) = newer {
            return Err(self.unreadable(kind, why));
        }
        match read(*self) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let detail = not_understood(error.field().unwrap_or("it"));
                Err(self.unreadable(kind, WhyUnreadable::Damaged { detail }))
            }
            read => read,
        }
    }

    fn unreadable(&self, kind: RecordKind, why: WhyUnreadable) -> Error {
        let record = Unreadable::new(self.name(kind), why);
        let word = |field| self.text_if_any(field).ok().flatten();
        let resource = || self.id("resource").ok().map(ResourceId::from_bytes);
        let record = match kind {
            RecordKind::Subscription => {
                record.of(resource()).deleted(word("status") == Some("deleting"))
            }
            RecordKind::Consumer => record.of(resource()),
            RecordKind::Resource => record.deleted(word("state") == Some("deleted")),
            _ => record,
        };
        Error::of_record(self.operation(), record).with_backend(BACKEND)
    }

    /// What the record is called, as far as that can be read.
    fn name(&self, kind: RecordKind) -> RecordName {
        self.known_name(kind).unwrap_or_else(|| {
            let shown = self.any("_id").map_or_else(|| "?".to_owned(), Bson::to_string);
            RecordName::Unnamed { kind, shown: shown.chars().take(SHOWN).collect() }
        })
    }

    fn known_name(&self, kind: RecordKind) -> Option<RecordName> {
        let id = || self.id("_id").ok();
        let inner = || self.inner("_id").ok();
        let url = |id: Record<'_>| DocumentUrl::parse(id.text("url").ok()?).ok();
        Some(match kind {
            RecordKind::Resource => RecordName::Resource(ResourceId::from_bytes(id()?)),
            RecordKind::Subscription => RecordName::Subscription(SubscriptionId::from_bytes(id()?)),
            RecordKind::Job => RecordName::Job(JobId::from_bytes(id()?)),
            RecordKind::Audit => RecordName::Audit(AuditEntryId::from_bytes(id()?)),
            RecordKind::Consumer => RecordName::Consumer(ConsumerId::from_bytes(id()?)),
            RecordKind::Reject => RecordName::Reject(RejectId::from_bytes(inner()?.id("id").ok()?)),
            RecordKind::Document => {
                let id = inner()?;
                let resource = ResourceId::from_bytes(id.id("resource").ok()?);
                RecordName::Document(DocumentKey::new(resource, url(id)?))
            }
            RecordKind::Row => {
                let id = inner()?;
                let subscription = SubscriptionId::from_bytes(id.id("subscription").ok()?);
                RecordName::Row(RowKey::new(subscription, url(id)?))
            }
            RecordKind::Lane => {
                let id = inner()?;
                let subscription = SubscriptionId::from_bytes(id.id("subscription").ok()?);
                RecordName::Lane(LaneId::new(subscription, id.small("shard").ok()?))
            }
            RecordKind::Task => return None,
        })
    }
}

fn not_understood(field: &str) -> String {
    format!("{field} is not understood")
}
