//! Takes what operators and nodes did; gives it back, newest first, for as long as it is kept.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{AuditEntry, AuditSubject, Timestamp};
use crate::port::{Listing, Page};

/// Keeps the log of what operators and nodes did.
///
/// # Contract
/// - **RA1** `insert_audit` stores each entry as it is. One whose id is there stays as it was first stored,
///   and keeps no other of the batch from being stored.
/// - **RA2** `list_audit` gives entries newest first, by id, the greatest first: all, or those of one
///   subject, compared byte for byte; with their total.
/// - **RA3** `trim_audit` removes entries from before the time named, and all but the newest `keep`; the
///   smallest ids first, at most `limit` of them, and no other. It tells how many it removed.
#[async_trait]
pub trait AuditStore: fmt::Debug + Send + Sync + 'static {
    /// Stores what was done.
    async fn insert_audit(&self, entries: Vec<AuditEntry>) -> Result<()>;

    /// Reads a page of it.
    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>>;

    /// Forgets what is beyond the newest `keep`, and what is from before `before`.
    async fn trim_audit(&self, keep: u64, before: Timestamp, limit: usize) -> Result<u64>;
}
