//! Takes pieces of work on a database; gives what came of them within the configured time, with Flare's errors.
//! The only place that knows how long a call may take, and when it is made again.

mod channel;
mod connector;
mod direct;
mod schema_name;
mod session;
mod value;
mod within;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime,
};
use flare_core::port::{Clock, SystemClock};
use flare_core::{Error, ErrorKind, Result};
use tracing::{debug, info};

use crate::config::PostgresConfig;
use crate::error;
use crate::fault::{Fault, Worked};
use crate::tls::Tls;
use connector::Connector;
pub(crate) use schema_name::SchemaName;
pub(crate) use session::Session;
pub(crate) use value::Value;
pub use within::HostTransaction;
pub(crate) use within::{Within, WriteColumns};

/// The oldest server that is supported.
const OLDEST: i32 = 150_000;
/// How often work is done that keeps losing to others.
const MOST_ATTEMPTS: usize = 50;
/// Connections of the leases, at most: a keep-alive, a look and a write.
const LEASE_POOL: usize = 3;
/// How long a server may take to give up on what is no longer waited for, until its connection is given up.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);

/// A database, and how to call it.
#[derive(Debug)]
pub(crate) struct Database {
    pool: Pool,
    pub(crate) schema: SchemaName,
    pub(crate) clock: Arc<dyn Clock>,
    timeout: Duration,
    pub(crate) poll_every: Duration,
    /// Whether the server remembers statements: only where every connection is proven to stay with one process
    /// of it. Elsewhere a name may stand for another client's statement.
    remembers: Arc<AtomicBool>,
    /// Whether it was said that it does not.
    plain: bool,
    tls: Tls,
    /// What makes connections beside the pool's, and to where.
    connector: Connector,
    options: tokio_postgres::Config,
    /// What begins a transaction: nothing outlives it, and a process that stops in it does not hold its locks
    /// for ever.
    begin: String,
    /// The same, for whoever does not wait for others' locks for long.
    begin_in_haste: String,
}

impl Database {
    /// Connects for work and puts, and makes sure that somebody is there who is new enough.
    pub(crate) async fn open(config: &PostgresConfig) -> Result<Arc<Self>> {
        Self::with(config, config.pool_limit, "repository and queue").await
    }

    /// Connects for the leases, on connections that nothing else uses: a keep-alive waits for nobody's work.
    pub(crate) async fn open_for_leases(config: &PostgresConfig) -> Result<Arc<Self>> {
        Self::with(config, config.pool_limit.min(LEASE_POOL), "leases").await
    }

    async fn with(
        config: &PostgresConfig,
        connections: usize,
        purpose: &'static str,
    ) -> Result<Arc<Self>> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (tls, remembers) = (Tls::new()?, Arc::new(AtomicBool::new(!config.plain_statements)));
        let connector = Connector {
            tls: tls.clone(),
            clock: Arc::clone(&clock),
            timeout: config.timeout,
            remembers: Arc::clone(&remembers),
            first: Arc::new(AtomicUsize::new(0)),
        };
        let options = config.options()?;
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(options.clone(), connector.clone(), recycling);
        let pool = Pool::builder(manager).max_size(connections).runtime(Runtime::Tokio1);
        let pool = pool.create_timeout(Some(config.timeout)).build();
        let pool = pool.map_err(|error| {
            error::of(ErrorKind::Internal, "connect", "no pool of connections").with_source(error)
        })?;
        let millis = config.timeout.as_millis();
        let begin = format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {millis}; \
             SET LOCAL idle_in_transaction_session_timeout = {millis}"
        );
        // Before the server looks for a deadlock, which it does after a second: a host's own transaction is
        // then not the one that is given up.
        let begin_in_haste = format!("{begin}; SET LOCAL lock_timeout = 400");
        let database = Arc::new(Self {
            pool,
            schema: SchemaName::new(&config.schema),
            clock,
            timeout: config.timeout,
            poll_every: config.poll_every,
            remembers,
            plain: config.plain_statements,
            tls,
            connector,
            options,
            begin,
            begin_in_haste,
        });
        database.check(purpose).await?;
        Ok(database)
    }

    /// Makes sure that the server is new enough, and says what the connection to it can.
    async fn check(&self, purpose: &'static str) -> Result<()> {
        const OPERATION: &str = "connect";
        // A word of the language would have to be quoted wherever a host writes it.
        const SQL: &str = "SELECT current_setting('server_version_num')::integer, \
             current_setting('server_version'), \
             EXISTS (SELECT 1 FROM pg_get_keywords() WHERE word = $1 AND catcode IN ('R', 'T'))";
        let name = self.schema.as_str();
        let values: [&dyn Value; 1] = [&name];
        let row = self.attempts(OPERATION, || self.one(OPERATION, SQL, &values)).await?;
        let read =
            |row: tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let (number, version, reserved): (i32, String, bool) = row
            .map_or(Ok((0, String::new(), false)), read)
            .map_err(|error| error::from_driver(OPERATION, error))?;
        if reserved {
            let detail = format!("{name} is a word of SQL, and would always have to be quoted");
            return Err(error::of(ErrorKind::Invalid, OPERATION, detail).with_field("schema"));
        }
        if number < OLDEST {
            let detail = format!("the server is older than PostgreSQL 15 (version {version})");
            return Err(error::of(ErrorKind::Unsupported, OPERATION, detail));
        }
        let statements = if self.remembers() {
            "the connection is direct: the server remembers statements"
        } else {
            "a pooler may be in between: statements are sent whole each time"
        };
        info!(purpose, version, "connected to PostgreSQL; {statements}");
        Ok(())
    }

    /// Whether the server remembers statements for this client.
    fn remembers(&self) -> bool {
        self.remembers.load(Ordering::Relaxed)
    }

    /// Whether a pooler is known to be in between.
    pub(crate) fn is_pooled(&self) -> bool {
        !self.plain && !self.remembers()
    }

    /// A connection of one's own, once there is one.
    pub(crate) async fn session(&self, operation: &'static str) -> Worked<Session<'_>> {
        match self.pool.get().await {
            Ok(object) => Ok(Session::new(self, object)),
            Err(PoolError::Backend(error)) => Err(Fault::Sql(error)),
            Err(other) => {
                let error =
                    error::of(ErrorKind::Unavailable, operation, "no connection is to be had");
                Err(error.with_source(other).into())
            }
        }
    }

    /// Runs one statement in a transaction of its own.
    pub(crate) async fn all(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Vec<tokio_postgres::Row>> {
        self.session(operation).await?.query(sql, values).await
    }

    /// Runs one statement that gives one row at most.
    pub(crate) async fn one(
        &self,
        operation: &'static str,
        sql: &'static str,
        values: &[&dyn Value],
    ) -> Worked<Option<tokio_postgres::Row>> {
        self.session(operation).await?.query_opt(sql, values).await
    }

    /// Does a piece of work within the time a call may take; again, where it lost to others or the server knows
    /// its statements no more.
    pub(crate) async fn attempts<T, W: Future<Output = Worked<T>>>(
        &self,
        operation: &'static str,
        work: impl FnMut() -> W,
    ) -> Result<T> {
        tokio::select! {
            biased;
            done = self.patiently(operation, work) => done,
            () = self.clock.sleep(self.timeout) => {
                let detail = format!("no answer within {:?}", self.timeout);
                Err(error::of(ErrorKind::Timeout, operation, detail))
            }
        }
    }

    /// The same, for as long as there is something to go through (a count, the build of an index): the time
    /// of a call would cut it off.
    pub(crate) async fn patiently<T, W: Future<Output = Worked<T>>>(
        &self,
        operation: &'static str,
        mut work: impl FnMut() -> W,
    ) -> Result<T> {
        let mut left = MOST_ATTEMPTS;
        loop {
            left -= 1;
            match work().await {
                Err(Fault::Sql(error)) if left > 0 && error::is_lost_race(&error) => {}
                // Calls that are under way may meet it, too, when the first has seen to it.
                Err(Fault::Sql(error)) if left > 0 && error::is_lost_statement(&error) => {
                    if self.remembers.swap(false, Ordering::Relaxed) {
                        info!("a statement was forgotten: they are sent whole from now on");
                    }
                }
                done => return done.map_err(|fault| fault.into_error(operation)),
            }
        }
    }
}

impl Database {
    /// Has the server give up on what a connection asked it and nobody waits for any more: it would go on
    /// waiting for a lock, beside the pool's other connections. Until then the connection counts as one of them.
    fn give_up(&self, object: Object) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            drop(Object::take(object));
            return;
        };
        // Behind a pooler the server was told when to give up.
        let token = self.remembers().then(|| object.cancel_token());
        let (tls, clock) = (self.tls.clone(), Arc::clone(&self.clock));
        runtime.spawn(async move {
            let answered = async {
                if let Some(token) = token {
                    token.cancel_query(tls).await?;
                }
                // Answered after whatever was asked before.
                object.batch_execute("").await
            };
            tokio::select! {
                biased;
                answered = answered => if let Err(error) = answered {
                    debug!(%error, "could not cancel what nobody waits for any more");
                },
                () = clock.sleep(CANCEL_LIMIT) => {}
            }
            drop(Object::take(object));
        });
    }
}

/// A connection that was given away.
fn gone(operation: &'static str) -> Error {
    error::of(ErrorKind::Internal, operation, "the connection is gone")
}
