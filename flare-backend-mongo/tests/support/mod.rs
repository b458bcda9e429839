//! What every trial needs: a database of its own on the real server, gone afterwards.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

pub(crate) mod dump;
pub(crate) mod ids;
pub(crate) mod own_server;
pub(crate) mod spoil;
pub(crate) mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_backend_mongo::MongoConfig;
use mongodb::Client;

/// A database that nobody else uses; dropped with it.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) uri: String,
    pub(crate) name: String,
}

impl Scratch {
    pub(crate) fn new(uri: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("flare-test-{}-{now}-{count}", std::process::id());
        Self { uri: uri.to_owned(), name }
    }

    /// How to reach it; everything missing is created.
    pub(crate) fn config(&self) -> MongoConfig {
        // Tests share their machine, so a call may take long.
        let patience = Duration::from_secs(60);
        MongoConfig::new(&self.uri).database(&self.name).create_missing().timeout(patience)
    }

    /// The database itself, for looking behind the port.
    pub(crate) async fn database(&self) -> mongodb::Database {
        Client::with_uri_str(&self.uri).await.unwrap().database(&self.name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (uri, name) = (self.uri.clone(), self.name.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                Client::with_uri_str(&uri).await.unwrap().database(&name).drop().await
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not drop {}: {error}", self.name);
        }
    }
}
