//! Takes keys bound to leases; gives agreement among all who use the schema. Leases end by the server's clock;
//! whoever looks ends what has lapsed.

mod table;
mod watch;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Part, Scan, Snapshot,
    StoreRevision, Write, Written,
};
use flare_core::{Error, ErrorKind, Result};

use crate::connection::{Database, Session, Value};
use crate::fault::Worked;
use crate::pulse::Pulse;
use crate::{PostgresConfig, error, schema};
use writes::Writes;

/// Leases and keys in a schema, on connections of their own.
#[derive(Debug, Clone)]
pub struct PostgresLease {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    database: Arc<Database>,
    /// Told when this process changed a key; tells when another one did.
    pulse: Arc<Pulse>,
    /// Writes that wait for others of this process.
    writes: Writes,
}

impl PostgresLease {
    /// Connects to a schema that is set up, or sets it up if [`PostgresConfig::create_missing`].
    pub async fn connect(config: PostgresConfig) -> Result<Self> {
        let database = Database::open_for_leases(&config).await?;
        schema::check(&database, Part::Lease, config.create_missing).await?;
        let pulse = Pulse::new(Arc::clone(&database), config.notify);
        Ok(Self { shared: Arc::new(Shared { database, pulse, writes: Writes::default() }) })
    }

    /// What looks at the keys, and can look at queues of the same schema as well.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.shared.pulse)
    }
}

impl Shared {
    /// Writes keys as they are now, with all leases ended that have lapsed: begins a transaction in which
    /// nobody else does.
    async fn begin(&self, operation: &'static str) -> Worked<Session<'_>> {
        let mut session = self.database.session(operation).await?;
        session.begin(table::TURN, NOTHING).await?;
        table::end_lapsed(&mut session).await?;
        Ok(session)
    }

    /// Ends what has lapsed, if anything has.
    async fn end_lapsed(&self, operation: &'static str) -> Worked<()> {
        const LAPSED: &str =
            "SELECT 1 FROM flare.leases WHERE ends <= (SELECT flare.now()) LIMIT 1";
        if self.database.one(operation, LAPSED, &[]).await?.is_some() {
            self.begin(operation).await?.commit().await?;
            self.pulse.keys_changed();
        }
        Ok(())
    }

    /// Writes one key, after the leases that have lapsed.
    async fn write_once(&self, write: &Write) -> Worked<Written> {
        const OPERATION: &str = "write";
        let mut session = self.begin(OPERATION).await?;
        if let Some(lease) = write.lease
            && !table::is_alive(&mut session, lease).await?
        {
            // What has lapsed meanwhile has ended, whatever becomes of this.
            session.commit().await?;
            return Err(ended(OPERATION, lease).into());
        }
        let there = table::get(&mut session, &write.key).await?;
        if !is_as(there.as_ref(), write.expect) {
            session.commit().await?;
            return Ok(Written::Conflict(there));
        }
        let revision = table::write(&mut session, write, there.as_ref()).await?;
        session.commit().await?;
        Ok(Written::At(revision))
    }

    async fn delete_once(&self, key: &str, expect: Expect) -> Worked<Written> {
        let mut session = self.begin("delete").await?;
        let there = table::get(&mut session, key).await?;
        if !is_as(there.as_ref(), expect) {
            session.commit().await?;
            return Ok(Written::Conflict(there));
        }
        if there.is_some() {
            table::delete(&mut session, &vec![key.to_owned()]).await?;
        }
        let revision = table::revision(&mut session).await?;
        session.commit().await?;
        Ok(Written::At(revision))
    }
}

#[async_trait]
impl Lease for PostgresLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        const OPERATION: &str = "grant";
        const SQL: &str =
            "INSERT INTO flare.leases (ttl, ends) SELECT $1, flare.now() + $1 RETURNING n";
        let database = &self.shared.database;
        let nanos = i64::try_from(ttl.as_nanos()).unwrap_or(i64::MAX / 4);
        database
            .attempts(OPERATION, || async {
                let row = database.one(OPERATION, SQL, &[&nanos]).await?;
                let number: i64 = row.map_or(Ok(0), |row| row.try_get(0))?;
                Ok(LeaseGrant::new(LeaseId::new(number), ttl))
            })
            .await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        const OPERATION: &str = "keep_alive";
        const SQL: &str = "UPDATE flare.leases SET ends = flare.now() + ttl \
             WHERE n = $1 AND ends > flare.now() RETURNING ttl";
        let database = &self.shared.database;
        database
            .attempts(OPERATION, || async {
                let Some(row) = database.one(OPERATION, SQL, &[&lease.get()]).await? else {
                    // It stays ended, whatever the clock says next.
                    self.shared.end_lapsed(OPERATION).await?;
                    return Err(ended(OPERATION, lease).into());
                };
                let ttl: i64 = row.try_get(0)?;
                Ok(LeaseGrant::new(lease, Duration::from_nanos(ttl.unsigned_abs())))
            })
            .await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        const OPERATION: &str = "revoke";
        let revoke = || async {
            let mut session = self.shared.begin(OPERATION).await?;
            table::end(&mut session, &vec![lease.get()]).await?;
            session.commit().await
        };
        self.shared.database.attempts(OPERATION, revoke).await?;
        self.shared.pulse.keys_changed();
        Ok(())
    }

    async fn write(&self, write: Write) -> Result<Written> {
        let written = writes::write(&self.shared, write).await?;
        self.shared.pulse.keys_changed();
        Ok(written)
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        let database = &self.shared.database;
        let deleted = database.attempts("delete", || self.shared.delete_once(key, expect)).await?;
        self.shared.pulse.keys_changed();
        Ok(deleted)
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        const OPERATION: &str = "get";
        let get = || async {
            self.shared.end_lapsed(OPERATION).await?;
            table::get(&mut self.shared.database.session(OPERATION).await?, key).await
        };
        self.shared.database.attempts(OPERATION, get).await
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        const OPERATION: &str = "list";
        let list = || async {
            self.shared.end_lapsed(OPERATION).await?;
            table::list(&mut self.shared.database.session(OPERATION).await?, prefix).await
        };
        self.shared.database.attempts(OPERATION, list).await
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        watch::watch(Arc::clone(&self.shared), prefix.to_owned(), from)
    }

    /// The server does not know of its clients' deaths: a lease waits for its time.
    fn abandon(&self, _lease: LeaseId) {}

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }
}

fn is_as(there: Option<&Entry>, expect: Expect) -> bool {
    match expect {
        Expect::Anything => true,
        Expect::Absent => there.is_none(),
        Expect::At(revision) => there.is_some_and(|entry| entry.revision == revision),
    }
}

fn ended(operation: &'static str, lease: LeaseId) -> Error {
    error::of(ErrorKind::Lost, operation, format!("lease {} has ended", lease.get()))
}

/// What a statement is given when it is given nothing.
const NOTHING: &[&dyn Value] = &[];
