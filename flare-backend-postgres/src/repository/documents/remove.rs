//! Takes which documents are to be forgotten; forgets them. A name stays for as long as rows have it.

use std::time::Duration;

use flare_core::Result;
use flare_core::model::{DocumentKey, ResourceId, Version};

use super::super::PostgresRepository;
use super::lock::taken;
use crate::codec::{id as uuid, limit};
use crate::connection::Value;
use crate::fault::Worked;

/// A document that is at a version and dispatched.
macro_rules! one {
    () => {
        "SELECT d.n FROM flare.documents d JOIN flare.resource_ids r ON r.n = d.resource \
         WHERE r.id = $1 AND d.hash = hashtextextended($2, 0) AND d.url = $2 AND d.revision = $3 AND d.gone = $4 \
         AND NOT d.undispatched"
    };
}

/// Documents of a resource.
macro_rules! some {
    () => {
        "SELECT d.n FROM flare.documents d JOIN flare.resource_ids r ON r.n = d.resource \
         WHERE r.id = $1 AND d.revision IS NOT NULL"
    };
}

/// Locks documents, so that no row is made for them until they are gone; one line without a number says that there are
/// some, and that others have them. Those are never waited for: a host that keeps a document from being forgotten may
/// wait for another one, and a removal that waited here would hold up all that come for the document meanwhile, with what
/// these have locked.
macro_rules! locking {
    ($which:expr, $limit:literal) => {
        concat!(
            "WITH l AS MATERIALIZED (",
            $which,
            $limit,
            " FOR UPDATE OF d SKIP LOCKED) SELECT l.n FROM l \
             UNION ALL SELECT NULL WHERE NOT EXISTS (SELECT 1 FROM l) AND EXISTS (",
            $which,
            ")"
        )
    };
}
const ONE: &str = locking!(one!(), "");
const SOME: &str = locking!(some!(), " ORDER BY d.n LIMIT $2");

/// How long others may have a document that is to be forgotten, and how often it is looked at until then.
const PATIENCE: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_millis(20);

/// Forgets documents that are locked.
const FORGET: &str = "WITH contents AS (DELETE FROM flare.contents WHERE document = ANY($1)), \
     tombstones AS (DELETE FROM flare.tombstones WHERE document = ANY($1)), \
     named AS (UPDATE flare.documents d SET revision = NULL, gone = 2, undispatched = false, \
         dispatched = NULL, dispatched_gone = 0, open = NULL, trace = NULL, moved = NULL, needs = NULL \
         WHERE d.n = ANY($1) AND EXISTS (SELECT 1 FROM flare.rows r WHERE r.document = d.n)) \
     DELETE FROM flare.documents d WHERE d.n = ANY($1) \
         AND NOT EXISTS (SELECT 1 FROM flare.rows r WHERE r.document = d.n)";

/// Locks names that no document has any more.
const NAMES: &str = "SELECT n FROM flare.documents WHERE n = ANY($1) AND revision IS NULL \
     ORDER BY n FOR UPDATE SKIP LOCKED";

/// Forgets those of them that no row has either.
const FORGET_NAMES: &str = "DELETE FROM flare.documents d WHERE d.n = ANY($1) \
     AND NOT EXISTS (SELECT 1 FROM flare.rows r WHERE r.document = d.n)";

impl PostgresRepository {
    pub(super) async fn remove_one(&self, key: &DocumentKey, version: Version) -> Result<bool> {
        let (resource, url) = (uuid(key.resource.as_bytes()), key.url.as_str());
        let (revision, gone) = (version.revision().get(), i16::from(version.is_gone()));
        let values: [&dyn Value; 4] = [&resource, &url, &revision, &gone];
        Ok(self.forget("remove_document", ONE, &values).await? == 1)
    }

    pub(super) async fn remove_some(&self, resource: ResourceId, most: usize) -> Result<u64> {
        let values: [&dyn Value; 2] = [&uuid(resource.as_bytes()), &limit(most)];
        self.forget("remove_documents", SOME, &values).await
    }

    /// Forgets what a statement locks; tells how many those were. What others have is come back to for a moment.
    async fn forget(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Result<u64> {
        let clock = &self.database.clock;
        let give_up_at = clock.monotonic().saturating_add(PATIENCE);
        loop {
            let forgotten = || self.forget_free(operation, sql, values);
            match self.database.attempts(operation, forgotten).await? {
                Some(forgotten) => return Ok(forgotten),
                None if clock.monotonic() >= give_up_at => return Err(taken(operation)),
                None => clock.sleep(PAUSE).await,
            }
        }
    }

    /// The same, of those that nobody else has; nothing, if others have them all.
    async fn forget_free(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Option<u64>> {
        let mut session = self.database.session(operation).await?;
        let found = session.begin_in_haste(sql, values).await?;
        let numbers = found.iter().map(|row| row.try_get::<_, Option<i64>>(0));
        let numbers = numbers.collect::<std::result::Result<Option<Vec<i64>>, _>>()?;
        let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty()) else {
            session.roll_back().await?;
            return Ok(found.is_empty().then_some(0));
        };
        session.finish(FORGET, &[&numbers]).await?;
        Ok(Some(numbers.len() as u64))
    }

    /// Forgets names of documents that rows had.
    pub(in super::super) async fn forget_names(
        &self,
        operation: &'static str,
        documents: &Vec<i64>,
    ) -> Worked<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let mut session = self.database.session(operation).await?;
        let found = session.begin(NAMES, &[documents]).await?;
        let found = found.iter().map(|row| row.try_get(0));
        let found = found.collect::<std::result::Result<Vec<i64>, _>>()?;
        session.finish(FORGET_NAMES, &[&found]).await?;
        Ok(())
    }
}
