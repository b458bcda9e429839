//! Takes what operators and nodes did; gives it back, newest first, for as long as it is kept.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{AuditEntry, AuditSubject, Timestamp};
use flare_core::port::{AuditStore, Listing, Page};
use rusqlite::params;

use super::{SqliteRepository, limit};
use crate::codec::audit::{COLUMNS, StoredAudit, record};
use crate::codec::{count, counted, time};
use crate::engine::{Effort, Reader, Tx};

#[async_trait]
impl AuditStore for SqliteRepository {
    async fn insert_audit(&self, entries: Vec<AuditEntry>) -> Result<()> {
        const OPERATION: &str = "insert_audit";
        let records = entries.iter().map(|entry| record(OPERATION, entry));
        let records: Vec<String> = records.collect::<Result<_>>()?;
        let effort = Effort::durable(OPERATION).of(entries.len());
        let insert = move |tx: &mut Tx<'_>| {
            let mut insert = tx.sql(
                "INSERT INTO audit (id, at, subject, record) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (id) DO NOTHING",
            )?;
            for (entry, record) in entries.iter().zip(&records) {
                let subject = entry.subject.as_str();
                insert.execute(params![entry.id.as_bytes(), time(entry.at), subject, record])?;
            }
            Ok(())
        };
        self.engine.write(effort, insert).await
    }

    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        const OPERATION: &str = "list_audit";
        let subject = subject.map(|subject| subject.as_str().to_owned());
        let read = move |reader: &Reader<'_>| {
            let wanted = if subject.is_some() { "subject = ?1" } else { "?1 IS NULL" };
            let mut count = reader.sql(&format!("SELECT count(*) FROM audit WHERE {wanted}"))?;
            let total = count.query_row([&subject], counted)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM audit WHERE {wanted} ORDER BY id DESC LIMIT ?2 OFFSET ?3"
            );
            let mut list = reader.sql(&sql)?;
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let found = list.query_map(params![subject, page.limit, offset], StoredAudit::of)?;
            let found: Vec<StoredAudit> = found.collect::<rusqlite::Result<_>>()?;
            Ok(Listing::of_read(found.iter().map(|found| found.entry(OPERATION)), total)?)
        };
        self.engine.read(OPERATION, read).await
    }

    async fn trim_audit(&self, keep: u64, before: Timestamp, most: usize) -> Result<u64> {
        let forget = move |tx: &mut Tx<'_>| {
            let mut forget = tx.sql(
                "DELETE FROM audit WHERE id IN (SELECT id FROM audit \
                 WHERE at < ?1 OR id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?2) \
                 ORDER BY id LIMIT ?3)",
            )?;
            let forgotten = forget.execute(params![time(before), count(keep), limit(most)])?;
            tx.after.freed |= forgotten > 0;
            Ok(forgotten as u64)
        };
        self.engine.write(Effort::fleeting("trim_audit"), forget).await
    }
}
