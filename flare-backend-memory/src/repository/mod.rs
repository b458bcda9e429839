//! Takes what the repository port asks; gives it from maps behind locks that are held for a few
//! instructions each: documents by URL, rows by subscription, so that neither waits for another.

mod audit;
mod budget;
mod compact;
mod consumers;
mod documents;
mod jobs;
mod resources;
mod row_table;
mod rows;
mod shard;
mod spoilt;
mod spread_all;
mod subscriptions;

use flare_core::port::{Repository, RepositoryFacts};

use crate::MemoryConfig;
use crate::time::StoreTime;
use budget::Budget;

/// The repository in memory.
#[derive(Debug)]
pub struct MemoryRepository {
    time: StoreTime,
    budget: Budget,
    max_content: usize,
    resources: resources::Resources,
    subscriptions: subscriptions::Subscriptions,
    documents: documents::Documents,
    rows: rows::Rows,
    jobs: jobs::Jobs,
    consumers: consumers::Consumers,
    audit: audit::Audit,
    spoilt: spoilt::Spoilt,
}

impl MemoryRepository {
    pub(crate) fn new(config: &MemoryConfig, time: StoreTime) -> Self {
        Self {
            time,
            budget: Budget::new(config.max_bytes),
            max_content: config.max_content,
            resources: resources::Resources::default(),
            subscriptions: subscriptions::Subscriptions::default(),
            documents: documents::Documents::new(),
            rows: rows::Rows::default(),
            jobs: jobs::Jobs::default(),
            consumers: consumers::Consumers::default(),
            audit: audit::Audit::default(),
            spoilt: spoilt::Spoilt::default(),
        }
    }

    /// Bytes that documents and rows take, as the limit counts them.
    pub fn bytes(&self) -> u64 {
        self.budget.used()
    }
}

impl Repository for MemoryRepository {
    fn facts(&self) -> RepositoryFacts {
        RepositoryFacts::new(1_000, self.max_content).in_process().spreads_at_once()
    }
}
