//! Takes a file, the environment and flags; gives one checked [`Config`], or the key that is
//! wrong. In the order of reading: sections, the keys they have, [`Layers`],
//! checks. Never connects, binds or logs anything.

mod check;
mod cluster;
#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod connection_tests;
mod connections;
mod console;
mod consumers;
mod error;
mod homes;
mod http;
mod idle;
mod keys;
mod layers;
mod log;
mod mongo;
mod otlp;
#[cfg(test)]
mod otlp_tests;
mod postgres;
mod sections;
mod sqlite;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use serde::{Deserialize, Serialize, Serializer, ser};
use toml::Table;

pub use cluster::Cluster;
pub use connections::BrokerConnection;
pub use console::Console;
pub use consumers::{Aws, Consumers};
pub use error::ConfigError;
pub use http::{Auth, Http, Scope, Server, Token};
pub use layers::Layers;
pub use log::{Format, Level, Log, Output};
pub use otlp::{Header, Otlp, Signal};
pub use sections::{
    Delivery, Engine, Lease, LeaseEngine, Networks, Queue, QueueEngine, Repository, Worker,
};

/// Everything the server can be told. Every key has a default.
///
/// It is shown with the keys that a file has: `settings` and `node` are spread over its sections.
#[derive(Debug, Clone, Serialize, Deserialize)]
// Has `serialize` and `deserialize` made as functions of this type alone: the arrangement of a file differs.
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct Config {
    /// What it listens to.
    pub http: Http,
    /// Its pages.
    pub console: Console,
    /// Where documents, rows and subscriptions are.
    pub repository: Repository,
    /// What wakes stages and lanes.
    pub queue: Queue,
    /// Where runtimes agree on who works what.
    pub lease: Lease,
    /// How the work is shared with other processes.
    pub cluster: Cluster,
    /// What this process is among them.
    pub node: ClusterSettings,
    /// Brokers that ask who we are, by the names that consumers call them by.
    pub connections: BTreeMap<String, BrokerConnection>,
    /// What consumers may pull from besides.
    pub consumers: Consumers,
    /// Which clients are told.
    pub delivery: Delivery,
    /// What this process works.
    pub worker: Worker,
    /// The figures it holds itself to.
    pub settings: Settings,
    /// What it says about itself.
    pub log: Log,
    /// What it tells a collector.
    pub otlp: Otlp,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            http: Http::default(),
            console: Console::default(),
            repository: Repository::default(),
            queue: Queue::default(),
            lease: Lease::default(),
            cluster: Cluster::default(),
            // Empty for the machine's name and the port it listens on.
            node: ClusterSettings::default().name(""),
            connections: BTreeMap::new(),
            consumers: Consumers::default(),
            delivery: Delivery::default(),
            worker: Worker::default(),
            settings: Settings::default(),
            log: Log::default(),
            otlp: Otlp::default(),
        }
    }
}

impl Config {
    /// The configuration as a file that would give the same, secrets masked.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string(self)
            .map_err(|error| ConfigError::whole("configuration", error.to_string()))
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Settled<'a>(&'a Config);
        impl Serialize for Settled<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Config::serialize(self.0, serializer)
            }
        }
        let settled = Table::try_from(Settled(self)).map_err(ser::Error::custom)?;
        homes::as_said(settled).serialize(serializer)
    }
}
