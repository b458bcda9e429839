//! What every trial needs: keys of its own on the real server, gone afterwards.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

pub(crate) mod own_cluster;
pub(crate) mod proxy;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcd_client::{Client, DeleteOptions};
use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_core::port::{StoreRevision, Written};

/// A prefix that nobody else uses; its keys are deleted with it.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) endpoints: Vec<String>,
    pub(crate) prefix: String,
}

impl Scratch {
    pub(crate) fn new(endpoints: &str) -> Self {
        let endpoints = endpoints.split(',').map(str::to_owned).collect();
        Self { endpoints, prefix: format!("{}/", unique("test")) }
    }

    /// How to reach it.
    pub(crate) fn config(&self) -> EtcdConfig {
        // Tests share their machine, so a call may take long.
        EtcdConfig::new(&self.endpoints).prefix(&self.prefix).timeout(Duration::from_secs(30))
    }

    /// The same through other addresses.
    pub(crate) fn config_at<'a>(&self, urls: impl IntoIterator<Item = &'a str>) -> EtcdConfig {
        EtcdConfig::new(urls).prefix(&self.prefix)
    }

    pub(crate) async fn lease(&self) -> EtcdLease {
        EtcdLease::connect(self.config()).await.expect("the server is there")
    }

    /// The server itself, for looking behind the port.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(&self.endpoints, None).await.expect("the server is there")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (endpoints, prefix) = (self.endpoints.clone(), self.prefix.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut client = Client::connect(&endpoints, None).await?;
                client.delete(prefix, Some(DeleteOptions::new().with_prefix())).await
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not delete {}: {error}", self.prefix);
        }
    }
}

/// A name that no earlier run used.
#[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
pub(crate) fn unique(name: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("flare-{name}-{}-{now}-{count}", std::process::id())
}

/// The revision of a write that must have taken place.
pub(crate) fn made(written: Written) -> StoreRevision {
    match written {
        Written::At(revision) => revision,
        Written::Conflict(there) => panic!("the write met {there:?}"),
    }
}
