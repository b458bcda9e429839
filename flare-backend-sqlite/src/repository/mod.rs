//! Takes what the repository port asks; gives it as work for the writer or a reader. What decides is the
//! model's own functions, within the writer's transaction.

mod audit;
mod consumers;
mod documents;
mod jobs;
mod resources;
mod rows;
mod subscriptions;

use std::sync::Arc;

use flare_core::port::{Repository, RepositoryFacts};

use crate::engine::Engine;

/// The repository in a file.
#[derive(Debug)]
pub struct SqliteRepository {
    engine: Arc<Engine>,
    max_content: usize,
    catalogue: Arc<resources::Catalogue>,
}

impl SqliteRepository {
    pub(crate) fn new(engine: Arc<Engine>, max_content: usize) -> Self {
        Self { engine, max_content, catalogue: Arc::default() }
    }
}

impl Repository for SqliteRepository {
    fn facts(&self) -> RepositoryFacts {
        RepositoryFacts::new(1_000, self.max_content).spreads_at_once()
    }
}

/// A number of records, as SQLite counts.
pub(crate) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
