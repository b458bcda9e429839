//! Takes what operators and nodes did; gives it back, newest first, for as long as it is kept.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{AuditEntry, AuditEntryId, AuditSubject, RecordName, Timestamp};
use flare_core::port::{AuditStore, Listing, Page};

use super::MemoryRepository;
use crate::lock;

#[derive(Debug, Default)]
pub(super) struct Audit(Mutex<BTreeMap<AuditEntryId, AuditEntry>>);

#[async_trait]
impl AuditStore for MemoryRepository {
    async fn insert_audit(&self, entries: Vec<AuditEntry>) -> Result<()> {
        let mut stored = lock(&self.audit.0);
        for entry in entries {
            stored.entry(entry.id).or_insert(entry);
        }
        Ok(())
    }

    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        let stored = lock(&self.audit.0);
        let wanted = |entry: &&AuditEntry| subject.is_none_or(|it| *it == entry.subject);
        let total = stored.values().filter(wanted).count() as u64;
        let skipped = usize::try_from(page.offset).unwrap_or(usize::MAX);
        let some = stored.values().rev().filter(wanted).skip(skipped).take(page.limit as usize);
        let name = |entry: &AuditEntry| RecordName::Audit(entry.id);
        let read = some.map(|entry| self.spoilt.read("list_audit", name, entry.clone()));
        Listing::of_read(read, total)
    }

    async fn trim_audit(&self, keep: u64, before: Timestamp, limit: usize) -> Result<u64> {
        let mut stored = lock(&self.audit.0);
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        let beyond = stored.len().saturating_sub(keep);
        let old = stored.values().enumerate().filter(|(at, it)| *at < beyond || it.at < before);
        let old: Vec<AuditEntryId> = old.map(|(_, entry)| entry.id).take(limit).collect();
        for id in &old {
            stored.remove(id);
            self.spoilt.forget(|| RecordName::Audit(*id));
        }
        Ok(old.len() as u64)
    }
}
