//! Breaks RA1 to RA3.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{AuditEntry, AuditSubject, Timestamp};
use flare_core::port::{AuditStore, Listing, Page};

use super::{BrokenRepository, Fault, one_more};

#[async_trait]
impl AuditStore for BrokenRepository {
    async fn insert_audit(&self, mut entries: Vec<AuditEntry>) -> Result<()> {
        let there = self.inner.list_audit(None, Page::new(1_000, 0)).await?.items;
        let known: BTreeSet<_> = there.iter().map(|entry| entry.id).collect();
        if self.has(Fault::KnownEntriesHoldUpOthers)
            && entries.iter().any(|entry| known.contains(&entry.id))
        {
            return Ok(());
        }
        if self.has(Fault::AuditDetailsLost) {
            entries.iter_mut().for_each(|entry| entry.detail = None);
        }
        if self.has(Fault::AuditEntriesReplaced)
            && entries.iter().any(|entry| known.contains(&entry.id))
        {
            // What there is no call for: all of it anew.
            self.inner.trim_audit(0, Timestamp::MAX, usize::MAX).await?;
            let replaced: BTreeSet<_> = entries.iter().map(|entry| entry.id).collect();
            let kept = there.into_iter().filter(|entry| !replaced.contains(&entry.id));
            entries.extend(kept);
        }
        self.inner.insert_audit(entries).await
    }

    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        if self.has(Fault::AuditSubjectsIgnoreCase)
            && let Some(subject) = subject
        {
            let mut all = self.inner.list_audit(None, Page::new(1_000, 0)).await?;
            let alike =
                |entry: &AuditEntry| entry.subject.as_str().eq_ignore_ascii_case(subject.as_str());
            all.items.retain(alike);
            all.total = all.items.len() as u64;
            all.items = all
                .items
                .into_iter()
                .skip(page.offset as usize)
                .take(page.limit as usize)
                .collect();
            return Ok(all);
        }
        let subject = subject.filter(|_| !self.has(Fault::AuditOfEverySubject));
        let mut listing = self.inner.list_audit(subject, page).await?;
        if self.has(Fault::AuditOldestFirst) && page.limit < 1_000 {
            listing.items.reverse();
        }
        if self.has(Fault::AuditTotalIsOfThePage) {
            listing.total = listing.items.len() as u64;
        }
        Ok(listing)
    }

    async fn trim_audit(&self, keep: u64, before: Timestamp, limit: usize) -> Result<u64> {
        let limit = one_more(limit, self.has(Fault::TrimsOneEntryMore));
        let keep = if self.has(Fault::TrimsTheNewest) { keep.saturating_sub(1) } else { keep };
        let itself = self.has(Fault::TrimsTheTimeItself);
        let before = if itself { before + Duration::from_nanos(1) } else { before };
        let removed = self.inner.trim_audit(keep, before, limit).await?;
        Ok(if self.has(Fault::TrimSaysTheLimit) { limit as u64 } else { removed })
    }
}
