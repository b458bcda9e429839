//! Worlds on memory, and what tests of the core look for in their stores.

#![allow(clippy::unwrap_used, dead_code, unused_imports, reason = "helpers of several tests")]

use flare_backend_memory::MemoryBackend;
use flare_core::Settings;
use flare_core::model::{Job, JobKind, Subscription, SubscriptionId, Timestamp};
pub(crate) use flare_testkit::world::{few_slots, hook, url};
use futures::TryStreamExt;

/// Flares on memory and simulated time.
pub(crate) type World = flare_testkit::World<MemoryBackend>;

pub(crate) fn in_memory(settings: Settings) -> World {
    World::on(MemoryBackend::with_clock, settings)
}

/// What is stored, as no handle shows it.
pub(crate) trait Stored {
    /// The subscription, in whatever state it is.
    async fn stored(&self, id: SubscriptionId) -> Option<Subscription>;

    /// All stored jobs that come to an end.
    async fn removals(&self) -> Vec<Job>;
}

impl Stored for World {
    async fn stored(&self, id: SubscriptionId) -> Option<Subscription> {
        self.repository().subscription(id).await.unwrap()
    }

    async fn removals(&self) -> Vec<Job> {
        let store = self.repository();
        let jobs: Vec<Job> = store.due_jobs(Timestamp::MAX, 1_000).try_collect().await.unwrap();
        let ends = |job: &Job| !matches!(job.kind, JobKind::Expire | JobKind::Reconcile);
        jobs.into_iter().filter(ends).collect()
    }
}
