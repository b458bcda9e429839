//! Takes what the repository port asks; gives it as single conditional writes of the server's.
//! Never reads a record to decide what to write to it, but for a consumer that is replaced: that is
//! written over what was read, and over nothing else.

mod audit;
mod consumers;
mod documents;
#[cfg(test)]
mod fuzz;
mod jobs;
mod rejects;
mod resources;
mod rows;
mod schema;
mod slots;
mod subscriptions;
mod waves;

use std::time::Duration;

use flare_core::port::{Repository, RepositoryFacts};
use flare_core::{Error, ErrorKind, Result};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};

use crate::connection::Connection;
use crate::places::Party;
use crate::schema::{self as area, Area};
use crate::{BACKEND, MongoConfig};

pub(crate) use schema::{COLLECTIONS, SUBSCRIPTIONS};
pub(crate) use slots::fill_in_hashes;

/// What a record may hold at most, and what it needs beside the content (the URL, versions, the
/// update around it).
const MAX_RECORD: usize = 16 << 20;
const OVERHEAD: usize = 64 << 10;

/// How often a write that lost a race for a new record is made again. Once is enough, unless the
/// record is created and removed all the time.
const RACES: usize = 8;

/// The repository on MongoDB.
#[derive(Debug)]
pub struct MongoRepository {
    connection: Connection,
    /// The same, for what an origin asks for.
    puts: Connection,
    stored: Stored,
}

/// Where things are kept.
#[derive(Debug)]
struct Stored {
    resources: Collection<Document>,
    subscriptions: Collection<Document>,
    partitions: Collection<Document>,
    documents: Collection<Document>,
    rows: Collection<Document>,
    lanes: Collection<Document>,
    jobs: Collection<Document>,
    consumers: Collection<Document>,
    rejects: Collection<Document>,
    audit: Collection<Document>,
    counters: Collection<Document>,
}

impl Stored {
    fn on(connection: &Connection) -> Self {
        Self {
            resources: connection.collection(schema::RESOURCES),
            subscriptions: connection.collection(schema::SUBSCRIPTIONS),
            partitions: connection.collection(schema::PARTITIONS),
            documents: connection.collection(schema::DOCUMENTS),
            rows: connection.collection(schema::ROWS),
            lanes: connection.collection(schema::LANES),
            jobs: connection.collection(schema::JOBS),
            consumers: connection.collection(schema::CONSUMERS),
            rejects: connection.collection(schema::REJECTS),
            audit: connection.collection(schema::AUDIT),
            counters: connection.collection(schema::COUNTERS),
        }
    }
}

impl MongoRepository {
    /// Connects to a database that is set up.
    pub async fn connect(config: MongoConfig) -> Result<Self> {
        let connection = Connection::open(&config).await?;
        Self::on(connection, config.create_missing).await
    }

    pub(crate) async fn on(connection: Connection, create_missing: bool) -> Result<Self> {
        area::ready(&connection, Area::Repository, create_missing).await?;
        let stored = Stored::on(&connection);
        Ok(Self { puts: connection.used_by(Party::Puts), connection, stored })
    }
}

impl Repository for MongoRepository {
    fn facts(&self) -> RepositoryFacts {
        RepositoryFacts::new(1_000, MAX_RECORD - OVERHEAD)
    }
}

/// All ids `{first: …, second: …}` with this first half, after one of them or from the start.
fn ids_after(first: &str, id: Bson, second: &str, after: Option<Bson>) -> Document {
    let end = doc! { first: id.clone(), second: Bson::MaxKey };
    match after {
        // A record that is cut short sorts before all that go on.
        None => doc! { "$gte": { first: id }, "$lt": end },
        Some(after) => doc! { "$gt": { first: id, second: after }, "$lt": end },
    }
}

/// A duration as the server's clock counts.
fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A record that appears and vanishes again faster than it can be written.
fn lost_race(operation: &'static str) -> Error {
    let detail = "the record was created and removed by others again and again meanwhile";
    Error::new(ErrorKind::Busy, operation).with_backend(BACKEND).with_detail(detail)
}
