//! The leases of this backend, tried against every clause of the `Lease` contract.

use std::sync::Arc;

use async_trait::async_trait;
use flare_core::port::Lease;
use flare_testkit::{Fixture, Trials, lease};

use crate::support::Scratch;

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

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("conformance")
        .suite("", lease::CLAUSES, |endpoints| OnEtcd { endpoints: endpoints.to_owned() })
}
