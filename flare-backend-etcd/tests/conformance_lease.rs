//! The leases of this backend, tried against every clause of the `Lease` contract.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use flare_core::port::Lease;
use flare_testkit::{Fixture, Service, Trials, lease};

use support::Scratch;

/// Ticks are seconds, which is what etcd counts leases in.
struct OnEtcd {
    endpoints: String,
}

#[async_trait]
impl Fixture for OnEtcd {
    type Port = dyn Lease;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Lease>, Scratch) {
        let scratch = Scratch::new(&self.endpoints);
        (Arc::new(scratch.lease().await), scratch)
    }
}

fn main() -> ExitCode {
    Trials::on(Service::Etcd)
        .suite("", lease::CLAUSES, |endpoints| OnEtcd { endpoints: endpoints.to_owned() })
        .run()
}
