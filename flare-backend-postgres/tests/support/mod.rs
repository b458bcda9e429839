//! What every trial needs: a schema of its own on the real server, gone afterwards.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

pub(crate) mod spoil;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_backend_postgres::PostgresConfig;
use flare_core::port::{Clock, SystemClock};
use tokio_postgres::{Client, NoTls};

/// A schema that nobody else uses; dropped with it.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) uri: String,
    pub(crate) name: String,
}

fn unused_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("flare_test_{}_{now}_{count}", std::process::id())
}

impl Scratch {
    pub(crate) fn new(uri: &str) -> Self {
        Self { uri: uri.to_owned(), name: unused_name() }
    }

    /// How to reach it; everything missing is created.
    pub(crate) fn config(&self) -> PostgresConfig {
        // Tests share their machine, so a call may take long.
        let patience = Duration::from_secs(60);
        PostgresConfig::new(&self.uri)
            .schema(&self.name)
            .create_missing()
            .pool_limit(5)
            .timeout(patience)
            .poll_every(Duration::from_millis(20))
    }

    /// The database itself, for looking behind the port.
    pub(crate) async fn connect(&self) -> Client {
        connect(&self.uri).await
    }

    /// Runs a statement behind the port's back, about this schema.
    pub(crate) async fn run(&self, sql: &str) {
        let sql = sql.replace("flare.", &format!("{}.", self.name));
        self.connect().await.batch_execute(&sql).await.unwrap();
    }
}

/// A database that nobody else uses, for what the server counts for a whole one; dropped with it.
#[derive(Debug)]
pub(crate) struct OwnDatabase {
    pub(crate) uri: String,
    pub(crate) name: String,
    server: String,
}

impl OwnDatabase {
    pub(crate) async fn new(server: &str) -> Self {
        let name = unused_name();
        connect(server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (place, _) = server.rsplit_once('/').unwrap();
        Self { uri: format!("{place}/{name}"), name, server: server.to_owned() }
    }
}

impl Drop for OwnDatabase {
    fn drop(&mut self) {
        drop_by(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// How many deadlocks the server has found in this database.
pub(crate) async fn deadlocks(scratch: &Scratch) -> i64 {
    // What other sessions did is counted when they have said so, at the latest a second after it.
    SystemClock::new().sleep(Duration::from_millis(1_100)).await;
    let sql = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    scratch.connect().await.query_one(sql, &[]).await.unwrap().get(0)
}

pub(crate) async fn connect(uri: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(uri, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop_by(&self.uri, format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name));
    }
}

/// Runs what drops something. Dropping is not async, and the runtime it happens on may be ending.
fn drop_by(uri: &str, sql: String) {
    let uri = uri.to_owned();
    let dropped = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let dropped =
            runtime.unwrap().block_on(async { connect(&uri).await.batch_execute(&sql).await });
        dropped.map_err(|error| format!("could not {sql}: {error}"))
    });
    if let Ok(Err(error)) = dropped.join() {
        eprintln!("{error}");
    }
}
