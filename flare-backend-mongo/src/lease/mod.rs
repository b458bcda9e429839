//! Takes keys bound to leases; gives agreement on them. All of it is one record, and every call is
//! part of one update of it: the server judges time, condition and write in a single step.
//!
//! One record, because MongoDB makes a step of several records only in transactions, which a
//! standalone server does not have. A pipeline that computes the new record on the server, rather
//! than one read, changed here and written if nobody was quicker: it cannot lose a race, so there
//! is nothing to repeat, and any number of writers gets on. What became of a call is written into
//! the record with it (`last`) and handed back as the record was right after that very update:
//! nobody else's outcome can be there. Calls of one process that would wait for each other anyway
//! share an update, in which each is made as if it were alone.
//!
//! Reads write nothing, unless a lease has lapsed and nobody has ended it yet.
//!
//! | call | round trips |
//! |---|---|
//! | `grant`, `keep_alive`, `revoke`, `write`, `delete` | one update, or a share of one |
//! | `get`, `list` | one read; an update too if a lease has lapsed that is not ended yet |
//! | `watch` | one read per change of the store, whatever its key, and per batch of events |
//! | all watches of a process together | one read per poll |

mod call;
mod expression;
mod record;
mod rounds;
mod size;
mod step;
mod store;
mod view;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot, StoreRevision,
    Write, Written,
};
use flare_core::{Error, ErrorKind, Result};

use self::call::Change;
use self::store::Store;
use crate::connection::Connection;
use crate::record::Record;
use crate::schema::{self as area, Area, CollectionSpec};
use crate::{BACKEND, MongoConfig};

pub(crate) const COLLECTIONS: &[CollectionSpec] = &[CollectionSpec {
    name: store::COLLECTION,
    holds: "who is there and who does what, in one record",
    indexes: &[],
}];

/// Leases and keys on MongoDB.
#[derive(Debug)]
pub struct MongoLease {
    store: Arc<Store>,
}

impl MongoLease {
    /// Connects to a database that is set up.
    pub async fn connect(config: MongoConfig) -> Result<Self> {
        let connection = Connection::open_for_leases(&config).await?;
        Self::on(connection, config.create_missing).await
    }

    pub(crate) async fn on(connection: Connection, create_missing: bool) -> Result<Self> {
        area::ready(&connection, Area::Lease, create_missing).await?;
        Ok(Self { store: Arc::new(Store::open(connection).await?) })
    }

    /// Writes or deletes a key, if it is as expected.
    async fn change(&self, operation: &'static str, change: Change<'_>) -> Result<Written> {
        loop {
            let answer = self.store.make(operation, change.call()).await?;
            let answer = Record::new(operation, &answer);
            return match answer.text("outcome")? {
                call::DONE => Ok(Written::At(record::revision(&answer, "revision")?)),
                call::CONFLICT => {
                    let found = answer.inner_if_any("found")?;
                    Ok(Written::Conflict(found.map(|it| record::entry(&it)).transpose()?))
                }
                // Never the first of a step: at least one call gets on each time.
                call::AGAIN => continue,
                call::ENDED => Err(ended(operation, change.lease)),
                call::FULL => Err(size::full(operation)),
                _ => Err(answer.corrupt("outcome")),
            };
        }
    }
}

#[async_trait]
impl Lease for MongoLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        const OPERATION: &str = "grant";
        let ttl = ttl.min(size::MAX_TTL);
        let answer = self.store.make(OPERATION, call::grant(record::nanos(ttl))).await?;
        match Record::new(OPERATION, &answer).number_if_any("lease")? {
            Some(id) => Ok(LeaseGrant::new(LeaseId::new(id), ttl)),
            None => Err(size::full(OPERATION)),
        }
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        const OPERATION: &str = "keep_alive";
        let answer = self.store.make(OPERATION, call::keep_alive(lease)).await?;
        match Record::new(OPERATION, &answer).number_if_any("ttl")? {
            Some(ttl) => Ok(LeaseGrant::new(lease, Duration::from_nanos(ttl.unsigned_abs()))),
            None => Err(ended(OPERATION, Some(lease))),
        }
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.store.make("revoke", call::revoke(lease)).await.map(|_| ())
    }

    async fn write(&self, write: Write) -> Result<Written> {
        let Write { key, value, lease, expect, .. } = &write;
        size::check(key, value)?;
        self.change("write", Change { key, value: Some(value), lease: *lease, expect: *expect })
            .await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        self.change("delete", Change { key, value: None, lease: None, expect }).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        const OPERATION: &str = "get";
        let found = self.store.look(OPERATION, view::entry(key)).await?;
        Ok(record::entries(OPERATION, &found)?.pop())
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        const OPERATION: &str = "list";
        let found = self.store.look(OPERATION, view::entries_under(prefix)).await?;
        let mut entries = record::entries(OPERATION, &found)?;
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let revision = record::revision(&Record::new(OPERATION, &found), "revision")?;
        Ok(Snapshot::new(entries, revision))
    }

    fn abandon(&self, _: LeaseId) {
        // The server cannot know of it before the lease's time is over.
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        watching::watch(Arc::clone(&self.store), prefix.to_owned(), from)
    }
}

fn ended(operation: &'static str, lease: Option<LeaseId>) -> Error {
    let detail = format!("lease {} has ended", lease.map_or(0, LeaseId::get));
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}
