//! Which of the tables named `mongodb` says where a part is.

use flare_backend_mongo::MongoConfig;
use flare_core::port::Part;
use secrecy::ExposeSecret;

use super::{Config, Engine, LeaseEngine, QueueEngine};

/// Whether a table stands for `[repository.mongodb]` as a whole, so that a server that has all in one database
/// says once where that is: it has no URI.
pub(super) fn is_inherited(table: &MongoConfig) -> bool {
    table.uri.expose_secret().is_empty()
}

impl Config {
    /// The MongoDB that has this part, if one has.
    pub fn mongodb(&self, part: Part) -> Option<&MongoConfig> {
        self.mongodb_table(part).map(|(_, table)| table)
    }

    /// The same, with the name of its table.
    pub fn mongodb_table(&self, part: Part) -> Option<(&'static str, &MongoConfig)> {
        let Self { repository, queue, lease, .. } = self;
        let (used, name, own) = match part {
            Part::Repository => {
                let used = repository.engine == Engine::MongoDb;
                (used, "repository.mongodb", &repository.mongodb)
            }
            Part::Queue => (queue.engine == QueueEngine::MongoDb, "queue.mongodb", &queue.mongodb),
            _ => (lease.engine == LeaseEngine::MongoDb, "lease.mongodb", &lease.mongodb),
        };
        let table = match is_inherited(own) {
            true => ("repository.mongodb", &self.repository.mongodb),
            false => (name, own),
        };
        used.then_some(table)
    }
}
