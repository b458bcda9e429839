//! The leases of this backend, tried against every clause of the `Lease` contract.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_postgres::PostgresLease;
use flare_core::port::Lease;
use flare_testkit::{Fixture, Trials, lease};

use crate::support::Scratch;

struct OnPostgres {
    uri: String,
}

#[async_trait]
impl Fixture for OnPostgres {
    type Port = dyn Lease;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Lease>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let config = scratch.config();
        let lease = PostgresLease::connect(config).await.expect("the server is there");
        (Arc::new(lease), scratch)
    }

    /// Leases end to the millisecond; what takes longer is a busy machine.
    fn tick(&self) -> Duration {
        Duration::from_millis(300)
    }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("lease").suite("", lease::CLAUSES, |uri| OnPostgres { uri: uri.to_owned() })
}
