//! Takes `[repository]`, `[queue]`, `[lease]`, `[delivery]` and `[worker]`; gives their figures,
//! with the core's own defaults where the core has one.

use std::time::Duration;

use flare_backend_memory::MemoryConfig;
use flare_core::pipeline::Settings;
use serde::{Deserialize, Serialize};

use super::{Etcd, Mongo, Sqlite, Sqs};

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// In a file, for the processes of one machine.
    #[default]
    Sqlite,
    /// In this process, and gone with it.
    Memory,
    /// In a MongoDB database, for any number of processes.
    MongoDb,
}

/// A kind of queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueEngine {
    /// In the repository's file.
    #[default]
    Sqlite,
    /// In this process, and gone with it.
    Memory,
    /// In a MongoDB database, for any number of processes.
    MongoDb,
    /// On Amazon SQS, for any number of processes.
    Sqs,
}

/// A kind of lease store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeaseEngine {
    /// In the repository's file.
    #[default]
    Sqlite,
    /// In this process, and gone with it.
    Memory,
    /// In a MongoDB database, for any number of processes.
    MongoDb,
    /// On etcd, for any number of processes; needs a program built with the feature `etcd`.
    Etcd,
}

/// `[repository]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Repository {
    /// The kind of store.
    pub engine: Engine,
    /// How long a deletion is remembered once all were told.
    #[serde(with = "flare_core::model::duration")]
    pub tombstone_retention: Duration,
    /// How long a dead letter can be listed and replayed.
    #[serde(with = "flare_core::model::duration")]
    pub dead_letter_retention: Duration,
    /// Where the file is.
    pub sqlite: Sqlite,
    /// What the memory engine may take.
    pub memory: Memory,
    /// Where MongoDB is.
    pub mongodb: Mongo,
}

impl Engine {
    /// Its name, as it stands in the configuration.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::MongoDb => "mongodb",
        }
    }
}

impl Default for Repository {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            engine: Engine::default(),
            tombstone_retention: settings.tombstone_retention,
            dead_letter_retention: settings.dead_letter_retention,
            sqlite: Sqlite::default(),
            memory: Memory::default(),
            mongodb: Mongo::default(),
        }
    }
}

/// `[repository.memory]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Memory {
    /// Bytes of documents and rows beyond which a put is answered *busy*.
    #[serde(with = "flare_core::model::size")]
    pub max_bytes: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { max_bytes: MemoryConfig::default().max_bytes }
    }
}

/// `[queue]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// The kind of queue.
    pub engine: QueueEngine,
    /// Where MongoDB is, if not where the repository's is.
    pub mongodb: Mongo,
    /// Where SQS is.
    pub sqs: Sqs,
}

impl Default for Queue {
    fn default() -> Self {
        let (engine, mongodb) = (QueueEngine::default(), Mongo::inherited());
        Self { engine, mongodb, sqs: Sqs::default() }
    }
}

/// `[lease]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lease {
    /// The kind of lease store.
    pub engine: LeaseEngine,
    /// Where MongoDB is, if not where the repository's is.
    pub mongodb: Mongo,
    /// Where etcd is.
    pub etcd: Etcd,
}

impl Default for Lease {
    fn default() -> Self {
        let (engine, mongodb) = (LeaseEngine::default(), Mongo::inherited());
        Self { engine, mongodb, etcd: Etcd::default() }
    }
}

/// `[delivery]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Delivery {
    /// Time for one request of a subscription that does not say.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
    /// Requests in flight for a subscription that does not say.
    pub concurrency: u32,
    /// The longest a version is tried, whatever a subscription says.
    #[serde(with = "flare_core::model::duration")]
    pub max_ttl: Duration,
    /// Requests in flight for all subscriptions together, beside one for each.
    pub in_flight_limit: u32,
    /// Bytes of documents in memory for all lanes together, beside one document for each.
    #[serde(with = "flare_core::model::size")]
    pub content_limit: u64,
    /// The longest a client may have itself held by `Retry-After`.
    #[serde(with = "flare_core::model::duration")]
    pub hold_limit: Duration,
    /// A client that only fails for this long is suspended.
    #[serde(with = "flare_core::model::duration")]
    pub suspend_after: Duration,
    /// Which addresses may be called.
    pub guard: Networks,
}

impl Default for Delivery {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            timeout: settings.timeout,
            concurrency: settings.concurrency,
            max_ttl: settings.max_ttl,
            in_flight_limit: u32::try_from(settings.in_flight_limit).unwrap_or(u32::MAX),
            content_limit: settings.content_limit as u64,
            hold_limit: settings.hold_limit,
            suspend_after: settings.suspend_after,
            guard: Networks::default(),
        }
    }
}

/// `[delivery.guard]`: public addresses only, unless said otherwise here.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Networks {
    /// Networks that may be called although they are not public.
    pub allow: Vec<String>,
    /// Networks that may not, whatever allows them.
    pub deny: Vec<String>,
}

/// `[worker]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Worker {
    /// Whether changes are spread and delivered here; without it they are only taken.
    pub enable: bool,
    /// How long finishing may take once the process is asked to end.
    #[serde(with = "flare_core::model::duration")]
    pub drain_timeout: Duration,
}

impl Default for Worker {
    fn default() -> Self {
        Self { enable: true, drain_timeout: Settings::default().drain_limit }
    }
}
