//! Takes kinds of documents; gives them by id, and by URL through an index that is kept in memory for as long
//! as no resource changed.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use flare_core::model::{DocumentUrl, EndpointIndex, Resource, ResourceId, ResourceState};
use flare_core::port::{Listing, Page, ResourceStore};
use flare_core::{ErrorKind, Result};
use uuid::Uuid;

use super::PostgresRepository;
use crate::codec::resource::{StoredResource, record};
use crate::codec::{counted, id as uuid, offset, word};
use crate::error;
use crate::fault::Worked;

/// The active resources by their endpoints, as they were when so many changes had been made.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    read: Mutex<Option<Arc<Edition>>>,
}

#[derive(Debug)]
struct Edition {
    changes: i64,
    by_endpoint: EndpointIndex<Result<Resource>>,
}

impl Catalogue {
    fn known(&self, changes: i64) -> Option<Arc<Edition>> {
        let known = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        known.filter(|known| known.changes == changes)
    }

    fn remember(&self, edition: &Arc<Edition>) {
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(edition));
    }
}

impl Edition {
    /// Those that match, the most specific first. One that cannot be read and is the first must not be
    /// passed over.
    fn matching(&self, url: &DocumentUrl) -> Result<Vec<Resource>> {
        let mut found = self.by_endpoint.find_all(url).into_iter();
        let Some(first) = found.next() else { return Ok(Vec::new()) };
        let first = first.clone()?;
        let others = found.filter_map(|it| it.as_ref().ok().cloned());
        Ok(std::iter::once(first).chain(others).collect())
    }
}

const COUNT_CHANGE: &str = "UPDATE flare.store SET catalogue = catalogue + 1";

#[async_trait]
impl ResourceStore for PostgresRepository {
    async fn insert_resource(&self, resource: Resource) -> Result<()> {
        self.database.attempts("insert_resource", || self.insert(&resource)).await
    }

    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>> {
        const OPERATION: &str = "resource";
        const SQL: &str =
            "SELECT id, record, state, endpoint, needs FROM flare.resources WHERE id = $1";
        self.database
            .attempts(OPERATION, || async {
                let found = self.database.one(OPERATION, SQL, &[&uuid(id.as_bytes())]).await?;
                let found = found.as_ref().map(StoredResource::of).transpose()?;
                Ok(found.map(|found| found.resource(OPERATION)).transpose()?)
            })
            .await
    }

    async fn match_resources(&self, urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>> {
        let edition = self.database.attempts("match_resources", || self.edition()).await?;
        urls.iter().map(|url| edition.matching(url)).collect()
    }

    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>> {
        const OPERATION: &str = "list_resources";
        const COUNT: &str = "SELECT count(*) FROM flare.resources WHERE state = $1";
        const LIST: &str = "SELECT id, record, state, endpoint, needs FROM flare.resources WHERE state = $1 \
             ORDER BY id LIMIT $2 OFFSET $3";
        self.database
            .attempts(OPERATION, || async {
                let active = word(ResourceState::Active);
                let mut session = self.database.session(OPERATION).await?;
                let total = counted(session.query_opt(COUNT, &[&active]).await?.as_ref())?;
                let (most, skipped) = (i64::from(page.limit), offset(page.offset));
                let found = session.query(LIST, &[&active, &most, &skipped]).await?;
                let found = found.iter().map(StoredResource::of);
                let found = found.collect::<std::result::Result<Vec<_>, _>>()?;
                let read = found.iter().map(|found| found.resource(OPERATION));
                Ok(Listing::of_read(read, total)?)
            })
            .await
    }

    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool> {
        const OPERATION: &str = "move_resource";
        const SQL: &str = "WITH moved AS (UPDATE flare.resources SET state = $3, \
             endpoint = CASE WHEN $4 THEN NULL ELSE endpoint END WHERE id = $1 AND state = $2 RETURNING 1), \
             noted AS (UPDATE flare.store SET catalogue = catalogue + 1 WHERE EXISTS (SELECT 1 FROM moved)) \
             SELECT 1 FROM moved";
        // The last state is the last.
        if from == ResourceState::Deleted {
            return Ok(false);
        }
        self.database
            .attempts(OPERATION, || async {
                let (id, freed) = (uuid(id.as_bytes()), to == ResourceState::Deleted);
                let moved = self
                    .database
                    .one(OPERATION, SQL, &[&id, &word(from), &word(to), &freed])
                    .await?;
                Ok(moved.is_some())
            })
            .await
    }

    async fn remove_resource(&self, id: ResourceId) -> Result<()> {
        const OPERATION: &str = "remove_resource";
        const SQL: &str = "DELETE FROM flare.resources WHERE id = $1 AND state = $2";
        self.database
            .attempts(OPERATION, || async {
                let values = (uuid(id.as_bytes()), word(ResourceState::Deleted));
                self.database.all(OPERATION, SQL, &[&values.0, &values.1]).await?;
                Ok(())
            })
            .await
    }
}

impl PostgresRepository {
    async fn insert(&self, resource: &Resource) -> Worked<()> {
        const OPERATION: &str = "insert_resource";
        const THERE: &str = "SELECT id FROM flare.resources WHERE id = $1 OR endpoint = $2";
        const INSERT: &str = "WITH number AS (INSERT INTO flare.resource_ids (id) VALUES ($1) \
             ON CONFLICT DO NOTHING) \
             INSERT INTO flare.resources (id, record, state, endpoint) VALUES ($1, $2, $3, $4)";
        let id = uuid(resource.id.as_bytes());
        let endpoint =
            (resource.state != ResourceState::Deleted).then(|| resource.endpoint.conflict_key());
        let text = record(resource)?;
        let mut session = self.database.session(OPERATION).await?;
        let there = session.begin(THERE, &[&id, &endpoint]).await?;
        let mut holder = None;
        for row in &there {
            let found: Uuid = row.try_get(0)?;
            // The very same one is welcome again, whatever became of it.
            if found == id {
                return session.roll_back().await;
            }
            holder = Some(ResourceId::from_bytes(found.into_bytes()));
        }
        if let Some(holder) = holder {
            session.roll_back().await?;
            let endpoint = resource.endpoint.as_str();
            let detail = format!("{endpoint} conflicts with resource {holder}");
            let conflict = error::of(ErrorKind::Conflict, OPERATION, detail);
            return Err(conflict.with_field("endpoint").into());
        }
        session.query(INSERT, &[&id, &text, &word(resource.state), &endpoint]).await?;
        session.finish(COUNT_CHANGE, &[]).await?;
        Ok(())
    }

    /// The catalogue as it is now: read again if it changed.
    async fn edition(&self) -> Worked<Arc<Edition>> {
        const OPERATION: &str = "match_resources";
        const CHANGES: &str = "SELECT catalogue FROM flare.store";
        // In one snapshot with the number that it is known by.
        const READ: &str = "SELECT r.id, r.record, r.state, r.endpoint, r.needs, s.catalogue \
             FROM flare.store s LEFT JOIN flare.resources r ON r.state = $1";
        let mut session = self.database.session(OPERATION).await?;
        let changes = session.query_opt(CHANGES, &[]).await?;
        let changes: i64 = changes.map_or(Ok(0), |row| row.try_get(0))?;
        if let Some(known) = self.catalogue.known(changes) {
            return Ok(known);
        }
        let rows = session.query(READ, &[&word(ResourceState::Active)]).await?;
        let (mut by_endpoint, mut changes) = (EndpointIndex::new(), 0);
        for row in &rows {
            changes = row.try_get(5)?;
            if row.try_get::<_, Option<Uuid>>(0)?.is_none() {
                continue;
            }
            let found = StoredResource::of(row)?;
            // One whose endpoint cannot be read either is in nobody's way.
            if let Some(endpoint) = found.endpoint() {
                // Of those that conflict the store has one.
                _ = by_endpoint.insert(&endpoint, found.resource(OPERATION));
            }
        }
        let edition = Arc::new(Edition { changes, by_endpoint });
        self.catalogue.remember(&edition);
        Ok(edition)
    }
}
