//! Takes ids of resources and subscriptions, and keys of documents; gives the numbers that records know them
//! by, and remembers them for as long as none was forgotten. A number is never used for another id.

use std::collections::HashMap;

use flare_core::model::{DocumentUrl, ResourceId, SubscriptionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::tx::Tx;
use crate::codec;

/// Numbers that are remembered, of ids and of documents. Beyond, they are looked up again.
const MOST: usize = 100_000;
const MOST_DOCUMENTS: usize = 50_000;

/// No count of what was forgotten.
const UNKNOWN: i64 = -1;

/// What the writer remembers of numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    resources: HashMap<ResourceId, i64>,
    subscriptions: HashMap<SubscriptionId, Subscriber>,
    /// By resource and URL.
    documents: HashMap<(i64, DocumentUrl), i64>,
    /// How often a number had been forgotten when these were looked up.
    pub(super) forgotten: i64,
}

/// A subscription as rows know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subscriber {
    pub(crate) n: i64,
    /// The resources it has rows of: one, its own.
    pub(crate) resources: Vec<i64>,
}

impl Names {
    /// Forgets all that is remembered: it may not be true any more.
    pub(crate) fn clear(&mut self) {
        self.resources.clear();
        self.subscriptions.clear();
        self.documents.clear();
    }

    /// Forgets all that is remembered, and how often numbers had been forgotten: what was done was taken
    /// back.
    pub(super) fn distrust(&mut self) {
        self.clear();
        self.forgotten = UNKNOWN;
    }

    fn make_room(&mut self) {
        if self.resources.len() + self.subscriptions.len() >= MOST {
            self.clear();
        }
    }
}

/// The number of a resource, if it has one.
pub(crate) fn resource(connection: &Connection, id: ResourceId) -> rusqlite::Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT n FROM resource_ids WHERE id = ?1")?;
    find.query_row([id.as_bytes()], |row| row.get(0)).optional()
}

/// The number of a document of a resource, or of what rows name so.
pub(crate) fn document(
    connection: &Connection,
    resource: i64,
    url: &DocumentUrl,
) -> rusqlite::Result<Option<i64>> {
    let mut find = connection
        .prepare_cached("SELECT n, url FROM documents WHERE resource = ?1 AND hash = ?2")?;
    let mut found = find.query([resource, codec::hash(url)])?;
    // Others may have the same hash.
    while let Some(row) = found.next()? {
        if row.get_ref(1)?.as_str_or_null()? == Some(url.as_str()) {
            return row.get(0).map(Some);
        }
    }
    Ok(None)
}

/// A subscription as rows know it, if they do.
pub(crate) fn subscriber(
    connection: &Connection,
    id: SubscriptionId,
) -> rusqlite::Result<Option<Subscriber>> {
    let mut find = connection.prepare_cached("SELECT n FROM subscription_ids WHERE id = ?1")?;
    let n: Option<i64> = find.query_row([id.as_bytes()], |row| row.get(0)).optional()?;
    let Some(n) = n else { return Ok(None) };
    let mut of = connection.prepare_cached(
        "SELECT resource FROM subscription_resources WHERE subscription = ?1 ORDER BY resource",
    )?;
    let resources = of.query_map([n], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(Some(Subscriber { n, resources }))
}

impl Tx<'_> {
    /// The number of a resource, if it has one.
    pub(crate) fn resource(&mut self, id: ResourceId) -> rusqlite::Result<Option<i64>> {
        if let Some(n) = self.names.resources.get(&id) {
            return Ok(Some(*n));
        }
        let found = resource(self.connection, id)?;
        if let Some(n) = found {
            self.names.make_room();
            self.names.resources.insert(id, n);
        }
        Ok(found)
    }

    /// The number of a resource; it gets one if need be.
    pub(crate) fn resource_or_new(&mut self, id: ResourceId) -> rusqlite::Result<i64> {
        if let Some(n) = self.resource(id)? {
            return Ok(n);
        }
        self.sql("INSERT INTO resource_ids (id) VALUES (?1)")?.execute([id.as_bytes()])?;
        let n = self.connection.last_insert_rowid();
        self.names.resources.insert(id, n);
        Ok(n)
    }

    /// The number of a document of a resource, or of what rows name so.
    pub(crate) fn document(
        &mut self,
        resource: i64,
        url: &DocumentUrl,
    ) -> rusqlite::Result<Option<i64>> {
        let key = (resource, url.clone());
        if let Some(n) = self.names.documents.get(&key) {
            return Ok(Some(*n));
        }
        let found = document(self.connection, resource, url)?;
        if let Some(n) = found {
            self.remember_document(resource, url, n);
        }
        Ok(found)
    }

    /// Remembers the number of a document.
    pub(crate) fn remember_document(&mut self, resource: i64, url: &DocumentUrl, n: i64) {
        if self.names.documents.len() >= MOST_DOCUMENTS {
            self.names.documents.clear();
        }
        self.names.documents.insert((resource, url.clone()), n);
    }

    /// A subscription as rows know it, if they do.
    pub(crate) fn subscriber(
        &mut self,
        id: SubscriptionId,
    ) -> rusqlite::Result<Option<&Subscriber>> {
        if !self.names.subscriptions.contains_key(&id)
            && let Some(found) = subscriber(self.connection, id)?
        {
            self.names.make_room();
            self.names.subscriptions.insert(id, found);
        }
        Ok(self.names.subscriptions.get(&id))
    }

    /// A subscription as rows know it; it gets a number if need be.
    pub(crate) fn subscriber_or_new(
        &mut self,
        id: SubscriptionId,
    ) -> rusqlite::Result<&mut Subscriber> {
        if self.subscriber(id)?.is_none() {
            self.sql("INSERT INTO subscription_ids (id) VALUES (?1)")?.execute([id.as_bytes()])?;
        }
        let n = self.connection.last_insert_rowid();
        let new = || Subscriber { n, resources: Vec::new() };
        Ok(self.names.subscriptions.entry(id).or_insert_with(new))
    }

    /// Notes that a subscription has rows of a resource; gives its number.
    pub(crate) fn subscriber_of(
        &mut self,
        id: SubscriptionId,
        resource: i64,
    ) -> rusqlite::Result<&Subscriber> {
        let known = self.subscriber(id)?;
        let noted = known.is_some_and(|of| of.resources.contains(&resource));
        if !noted {
            // Another process may remember it without this resource.
            let remembered = known.is_some();
            let n = self.subscriber_or_new(id)?.n;
            let mut note = self.sql(
                "INSERT INTO subscription_resources (subscription, resource) VALUES (?1, ?2)",
            )?;
            note.execute(params![n, resource])?;
            if remembered {
                self.count_as_forgotten()?;
            }
            self.subscriber_or_new(id)?.resources.push(resource);
        }
        Ok(self.subscriber_or_new(id)?)
    }

    /// Forgets the number of a subscription that has neither a record nor rows.
    pub(crate) fn forget_subscriber(&mut self, id: SubscriptionId) -> rusqlite::Result<()> {
        let Some(Subscriber { n, .. }) = self.subscriber(id)?.cloned() else { return Ok(()) };
        let mut used = self.sql(
            "SELECT EXISTS (SELECT 1 FROM subscriptions WHERE n = ?1) \
             OR EXISTS (SELECT 1 FROM rows WHERE subscription = ?1)",
        )?;
        if used.query_row([n], |row| row.get(0))? {
            return Ok(());
        }
        self.sql("DELETE FROM subscription_resources WHERE subscription = ?1")?.execute([n])?;
        self.sql("DELETE FROM subscription_ids WHERE n = ?1")?.execute([n])?;
        self.forgot()
    }

    /// Forgets the number of a resource that has neither a record nor documents nor anybody's rows.
    pub(crate) fn forget_resource(&mut self, id: ResourceId) -> rusqlite::Result<()> {
        let Some(n) = self.resource(id)? else { return Ok(()) };
        let mut used = self.sql(
            "SELECT EXISTS (SELECT 1 FROM resources WHERE n = ?1) \
             OR EXISTS (SELECT 1 FROM documents WHERE resource = ?1) \
             OR EXISTS (SELECT 1 FROM subscriptions WHERE resource = ?1) \
             OR EXISTS (SELECT 1 FROM subscription_resources WHERE resource = ?1)",
        )?;
        if used.query_row([n], |row| row.get(0))? {
            return Ok(());
        }
        self.sql("DELETE FROM resource_ids WHERE n = ?1")?.execute([n])?;
        self.forgot()
    }

    /// Has every process look numbers up again: some belong to nothing any more.
    pub(crate) fn forgot(&mut self) -> rusqlite::Result<()> {
        self.names.clear();
        self.count_as_forgotten()
    }

    /// Has every other process look numbers up again.
    fn count_as_forgotten(&mut self) -> rusqlite::Result<()> {
        let mut count =
            self.sql("UPDATE store SET forgotten = forgotten + 1 RETURNING forgotten")?;
        self.names.forgotten = count.query_row([], |row| row.get(0))?;
        Ok(())
    }
}
