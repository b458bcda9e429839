//! Which parts are where `[repository.postgresql]` says.

use flare_core::port::Part;

use super::{Config, Engine, LeaseEngine, QueueEngine};

impl Config {
    /// Whether this part is in PostgreSQL.
    pub fn in_postgresql(&self, part: Part) -> bool {
        match part {
            Part::Repository => self.repository.engine == Engine::PostgreSql,
            Part::Queue => self.queue.engine == QueueEngine::PostgreSql,
            _ => self.lease.engine == LeaseEngine::PostgreSql,
        }
    }
}
