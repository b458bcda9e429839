//! Takes kinds of documents; gives them by id, and by URL through an index that each reader keeps in memory
//! for as long as no resource changed.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use flare_core::model::{DocumentUrl, EndpointIndex, Resource, ResourceId, ResourceState};
use flare_core::port::{Listing, Page, ResourceStore};
use flare_core::{ErrorKind, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteRepository;
use crate::codec::resource::{COLUMNS, StoredResource, record};
use crate::codec::{counted, word};
use crate::engine::{Effort, Reader, Tx};
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
    /// The catalogue as the reader's state of the file has it: read again if it changed.
    fn current(&self, connection: &Connection) -> Worked<Arc<Edition>> {
        let mut changes = connection.prepare_cached("SELECT catalogue FROM store")?;
        let changes: i64 = changes.query_row([], |row| row.get(0))?;
        let known = self.read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known.filter(|known| known.changes == changes) {
            return Ok(known);
        }
        let edition = Arc::new(Edition::read(connection, changes)?);
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&edition));
        Ok(edition)
    }
}

impl Edition {
    fn read(connection: &Connection, changes: i64) -> Worked<Self> {
        let sql = format!("SELECT {COLUMNS} FROM resources WHERE state = ?1");
        let mut find = connection.prepare_cached(&sql)?;
        let mut by_endpoint = EndpointIndex::new();
        for found in find.query_map([word(ResourceState::Active)], StoredResource::of)? {
            let found = found?;
            // One whose endpoint cannot be read either is in nobody's way.
            if let Some(endpoint) = found.endpoint() {
                // Of those that conflict the store has one.
                _ = by_endpoint.insert(&endpoint, found.resource("match_resources"));
            }
        }
        Ok(Self { changes, by_endpoint })
    }

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

#[async_trait]
impl ResourceStore for SqliteRepository {
    async fn insert_resource(&self, resource: Resource) -> Result<()> {
        let effort = Effort::durable("insert_resource");
        self.engine.write(effort, move |tx| insert(tx, &resource)).await
    }

    async fn resource(&self, id: ResourceId) -> Result<Option<Resource>> {
        let read = move |reader: &Reader<'_>| {
            let found = stored(reader.connection, id)?;
            Ok(found.map(|found| found.resource("resource")).transpose()?)
        };
        self.engine.read("resource", read).await
    }

    async fn match_resources(&self, urls: Vec<DocumentUrl>) -> Result<Vec<Vec<Resource>>> {
        let catalogue = Arc::clone(&self.catalogue);
        let read = move |reader: &Reader<'_>| catalogue.current(reader.connection);
        let edition = self.engine.read("match_resources", read).await?;
        urls.iter().map(|url| edition.matching(url)).collect()
    }

    async fn list_resources(&self, page: Page) -> Result<Listing<Resource>> {
        const OPERATION: &str = "list_resources";
        let read = move |reader: &Reader<'_>| {
            let active = word(ResourceState::Active);
            let mut count = reader.sql("SELECT count(*) FROM resources WHERE state = ?1")?;
            let total = count.query_row([&active], counted)?;
            let sql = format!(
                "SELECT {COLUMNS} FROM resources WHERE state = ?1 ORDER BY id LIMIT ?2 OFFSET ?3"
            );
            let mut list = reader.sql(&sql)?;
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let found = list.query_map(params![active, page.limit, offset], StoredResource::of)?;
            let found: Vec<StoredResource> = found.collect::<rusqlite::Result<_>>()?;
            let read = found.iter().map(|found| found.resource(OPERATION));
            Ok(Listing::of_read(read, total)?)
        };
        self.engine.read(OPERATION, read).await
    }

    async fn move_resource(
        &self,
        id: ResourceId,
        from: ResourceState,
        to: ResourceState,
    ) -> Result<bool> {
        // The last state is the last.
        if from == ResourceState::Deleted {
            return Ok(false);
        }
        let moved = move |tx: &mut Tx<'_>| {
            let mut update = tx.sql(
                "UPDATE resources SET state = ?3, endpoint = CASE ?4 WHEN 1 THEN NULL ELSE endpoint END \
                 WHERE id = ?1 AND state = ?2",
            )?;
            let freed = to == ResourceState::Deleted;
            let values = params![id.as_bytes(), word(from), word(to), freed];
            let moved = update.execute(values)? == 1;
            if moved {
                note_change(tx)?;
            }
            Ok(moved)
        };
        self.engine.write(Effort::durable("move_resource"), moved).await
    }

    async fn remove_resource(&self, id: ResourceId) -> Result<()> {
        let remove = move |tx: &mut Tx<'_>| {
            let mut delete = tx.sql("DELETE FROM resources WHERE id = ?1 AND state = ?2")?;
            let deleted = word(ResourceState::Deleted);
            if delete.execute(params![id.as_bytes(), deleted])? == 1 {
                note_change(tx)?;
                tx.forget_resource(id)?;
            }
            Ok(())
        };
        self.engine.write(Effort::durable("remove_resource"), remove).await
    }
}

fn stored(connection: &Connection, id: ResourceId) -> rusqlite::Result<Option<StoredResource>> {
    let sql = format!("SELECT {COLUMNS} FROM resources WHERE id = ?1");
    let mut find = connection.prepare_cached(&sql)?;
    find.query_row([id.as_bytes()], StoredResource::of).optional()
}

fn insert(tx: &mut Tx<'_>, resource: &Resource) -> Worked<()> {
    const OPERATION: &str = "insert_resource";
    // The very same one is welcome again, whatever became of it.
    if stored(tx.connection, resource.id)?.is_some() {
        return Ok(());
    }
    let text = record(resource)?;
    let endpoint =
        (resource.state != ResourceState::Deleted).then(|| resource.endpoint.conflict_key());
    let mut taken = tx.sql("SELECT id FROM resources WHERE endpoint = ?1")?;
    let holder: Option<[u8; 16]> = taken.query_row([&endpoint], |row| row.get(0)).optional()?;
    if let Some(holder) = holder {
        let (endpoint, holder) = (resource.endpoint.as_str(), ResourceId::from_bytes(holder));
        let detail = format!("{endpoint} conflicts with resource {holder}");
        let conflict = error::of(ErrorKind::Conflict, OPERATION, detail).with_field("endpoint");
        return Err(conflict.into());
    }
    let n = tx.resource_or_new(resource.id)?;
    let mut insert = tx.sql(
        "INSERT INTO resources (n, id, record, state, endpoint) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    insert.execute(params![n, resource.id.as_bytes(), text, word(resource.state), endpoint])?;
    Ok(note_change(tx)?)
}

/// Has everybody read the catalogue again.
fn note_change(tx: &Tx<'_>) -> rusqlite::Result<()> {
    tx.sql("UPDATE store SET catalogue = catalogue + 1")?.execute([])?;
    Ok(())
}
