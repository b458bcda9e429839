//! The upkeep of memory keeps every clause of the contract, having nothing to do.

use std::sync::Arc;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::Backend;
use flare_core::port::{Part, Upkeep};
use flare_testkit::Fixture;

struct Memory(Part);

#[async_trait]
impl Fixture for Memory {
    type Port = dyn Upkeep;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Upkeep>, ()) {
        let backend = Backend::from(MemoryBackend::new());
        let mut upkeep = backend.upkeep.into_iter();
        (upkeep.find(|upkeep| upkeep.part() == self.0).expect("every part has one"), ())
    }
}

mod repository {
    use super::*;
    flare_testkit::upkeep_suite!(Memory(Part::Repository));
}

mod queue {
    use super::*;
    flare_testkit::upkeep_suite!(Memory(Part::Queue));
}

mod lease {
    use super::*;
    flare_testkit::upkeep_suite!(Memory(Part::Lease));
}
