//! `[repository]`, `[queue]`, `[lease]`, `[delivery]` and `[worker]`: which engine keeps what, and the stores' own
//! settings.

use flare_backend_etcd::EtcdConfig;
use flare_backend_memory::MemoryConfig;
use flare_backend_mongo::MongoConfig;
use flare_backend_postgres::PostgresConfig;
use flare_backend_sqlite::SqliteConfig;
use flare_backend_sqs::SqsConfig;
use serde::{Deserialize, Serialize};

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
    /// In a schema of a PostgreSQL database, for any number of processes.
    PostgreSql,
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
    /// In a schema of a PostgreSQL database, for any number of processes.
    PostgreSql,
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
    /// In a schema of a PostgreSQL database, for any number of processes.
    PostgreSql,
    /// On etcd, for any number of processes; needs a program built with the feature `etcd`.
    Etcd,
}

/// `[repository]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Repository {
    /// The kind of store.
    pub engine: Engine,
    /// Where the file is.
    pub sqlite: SqliteConfig,
    /// What the memory engine may take.
    pub memory: MemoryConfig,
    /// Where MongoDB is.
    pub mongodb: MongoConfig,
    /// Where PostgreSQL is, for every part that is there.
    pub postgresql: PostgresConfig,
}

impl Engine {
    /// Its name, as it stands in the configuration.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Memory => "memory",
            Self::MongoDb => "mongodb",
            Self::PostgreSql => "postgresql",
        }
    }
}

/// `[queue]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// The kind of queue.
    pub engine: QueueEngine,
    /// Where MongoDB is, if not where the repository's is.
    pub mongodb: MongoConfig,
    /// Where SQS is.
    pub sqs: SqsConfig,
}

impl Default for Queue {
    fn default() -> Self {
        let (engine, mongodb) = (QueueEngine::default(), MongoConfig::new(""));
        Self { engine, mongodb, sqs: SqsConfig::new() }
    }
}

/// `[lease]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lease {
    /// The kind of lease store.
    pub engine: LeaseEngine,
    /// Where MongoDB is, if not where the repository's is.
    pub mongodb: MongoConfig,
    /// Where etcd is.
    pub etcd: EtcdConfig,
}

impl Default for Lease {
    fn default() -> Self {
        let (engine, mongodb) = (LeaseEngine::default(), MongoConfig::new(""));
        Self { engine, mongodb, etcd: EtcdConfig::default() }
    }
}

/// `[delivery]`, beside what [`Settings`](flare_core::Settings) say of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Delivery {
    /// Which addresses may be called.
    pub guard: Networks,
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

/// `[worker]`, beside what [`Settings`](flare_core::Settings) say of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worker {
    /// Whether changes are spread and delivered here; without it they are only taken.
    pub enable: bool,
}

impl Default for Worker {
    fn default() -> Self {
        Self { enable: true }
    }
}
