//! Takes what operators and nodes did; gives it back, newest first, for as long as it is kept.

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{AuditEntry, AuditSubject, Timestamp};
use flare_core::port::{AuditStore, Listing, Page};
use tokio_postgres::Row;

use super::PostgresRepository;
use crate::codec::audit::{StoredAudit, record};
use crate::codec::{count, counted, id as uuid, limit, offset, time};
use crate::connection::Value;
use crate::fault::Worked;

#[async_trait]
impl AuditStore for PostgresRepository {
    async fn insert_audit(&self, entries: Vec<AuditEntry>) -> Result<()> {
        self.database.attempts("insert_audit", || self.keep_audit(&entries)).await
    }

    async fn list_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Result<Listing<AuditEntry>> {
        self.database.attempts("list_audit", || self.page_of_audit(subject, page)).await
    }

    async fn trim_audit(&self, keep: u64, before: Timestamp, most: usize) -> Result<u64> {
        const OPERATION: &str = "trim_audit";
        const SQL: &str = "DELETE FROM flare.audit a USING (SELECT id FROM flare.audit \
             WHERE at < $1 OR id <= (SELECT id FROM flare.audit ORDER BY id DESC LIMIT 1 OFFSET $2) \
             ORDER BY id LIMIT $3) old WHERE a.id = old.id RETURNING 1";
        self.database
            .attempts(OPERATION, || async {
                let values: [&dyn Value; 3] = [&time(before), &count(keep), &limit(most)];
                Ok(self.database.all(OPERATION, SQL, &values).await?.len() as u64)
            })
            .await
    }
}

impl PostgresRepository {
    async fn keep_audit(&self, entries: &[AuditEntry]) -> Worked<()> {
        const OPERATION: &str = "insert_audit";
        const SQL: &str = "INSERT INTO flare.audit (id, at, subject, record) \
             SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[]) \
             ON CONFLICT (id) DO NOTHING";
        let (mut ids, mut times) = (Vec::new(), Vec::new());
        let (mut subjects, mut records) = (Vec::new(), Vec::new());
        for entry in entries {
            ids.push(uuid(entry.id.as_bytes()));
            times.push(time(entry.at));
            subjects.push(entry.subject.as_str());
            records.push(record(OPERATION, entry)?);
        }
        let values: [&dyn Value; 4] = [&ids, &times, &subjects, &records];
        self.database.all(OPERATION, SQL, &values).await?;
        Ok(())
    }

    async fn page_of_audit(
        &self,
        subject: Option<&AuditSubject>,
        page: Page,
    ) -> Worked<Listing<AuditEntry>> {
        const OPERATION: &str = "list_audit";
        const COUNT: &str = "SELECT count(*) FROM flare.audit";
        const LIST: &str = "SELECT id, at, subject, record, needs FROM flare.audit \
             ORDER BY id DESC LIMIT $1 OFFSET $2";
        const COUNT_OF: &str = "SELECT count(*) FROM flare.audit WHERE subject = $1";
        const LIST_OF: &str = "SELECT id, at, subject, record, needs FROM flare.audit \
             WHERE subject = $1 ORDER BY id DESC LIMIT $2 OFFSET $3";
        let (most, skipped) = (i64::from(page.limit), offset(page.offset));
        let mut session = self.database.session(OPERATION).await?;
        let (total, rows) = match subject.map(AuditSubject::as_str) {
            None => session.both((COUNT, &[]), (LIST, &[&most, &skipped])).await?,
            Some(subject) => {
                let list: [&dyn Value; 3] = [&subject, &most, &skipped];
                session.both((COUNT_OF, &[&subject]), (LIST_OF, &list)).await?
            }
        };
        let total = counted(total.first())?;
        let found = rows.iter().map(|row: &Row| StoredAudit::of(row));
        let found = found.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(Listing::of_read(found.iter().map(|found| found.entry(OPERATION)), total)?)
    }
}
