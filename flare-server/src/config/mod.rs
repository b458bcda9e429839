//! Takes a file, the environment and flags; gives one checked [`Config`], or the key that is
//! wrong. In the order of reading: sections, the keys they have, [`Layers`],
//! checks. Never connects, binds or logs anything.

mod check;
mod cluster;
#[cfg(test)]
mod cluster_tests;
mod error;
mod etcd;
mod http;
mod idle;
mod keys;
mod layers;
mod log;
mod mongo;
mod secret;
mod sections;
mod sqlite;
mod sqs;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use cluster::{Cluster, Role};
pub use error::ConfigError;
pub use etcd::Etcd;
pub use http::{Auth, Http, Scope, Server, Token};
pub use layers::Layers;
pub use log::{Format, Level, Log, Output};
pub use mongo::{Mongo, Reads, Writes};
pub use sections::{
    Delivery, Engine, Lease, LeaseEngine, Memory, Networks, Queue, QueueEngine, Repository, Worker,
};
pub use sqlite::Sqlite;
pub use sqs::Sqs;

/// Everything the server can be told. Every key has a default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What it listens to.
    pub http: Http,
    /// Where documents, rows and subscriptions are.
    pub repository: Repository,
    /// What wakes stages and lanes.
    pub queue: Queue,
    /// Where runtimes agree on who works what.
    pub lease: Lease,
    /// How the work is shared with other processes.
    pub cluster: Cluster,
    /// How clients are told.
    pub delivery: Delivery,
    /// What this process works.
    pub worker: Worker,
    /// What it says about itself.
    pub log: Log,
}

impl Config {
    /// The configuration as a file that would give the same, secrets masked.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self)
            .map_err(|error| ConfigError::whole("configuration", error.to_string()))
    }
}
