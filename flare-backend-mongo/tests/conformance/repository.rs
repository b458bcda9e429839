//! The repository on MongoDB keeps every clause of the contract, with batches in one command and,
//! as on servers before 8.0, with one command for each item.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Scratch, spoil};
use async_trait::async_trait;
use flare_backend_mongo::MongoRepository;
use flare_core::model::RecordName;
use flare_core::port::Repository;
use flare_testkit::unreadable::{Spoilable, Spoiling};
use flare_testkit::{Fixture, Trials, repository, unreadable};
use mongodb::Database;

struct OnMongo {
    uri: String,
    single_writes: bool,
}

#[async_trait]
impl Fixture for OnMongo {
    type Port = dyn Repository;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Repository>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let config = match self.single_writes {
            true => scratch.config().single_writes(),
            false => scratch.config(),
        };
        let repository = MongoRepository::connect(config).await;
        (Arc::new(repository.expect("the server takes a new database")), scratch)
    }

    /// The server's clock has milliseconds.
    fn tick(&self) -> Duration {
        Duration::from_millis(5)
    }
}

/// The same, with a way to its records behind its back.
struct Spoilt(OnMongo);

struct SpoilableMongo {
    repository: Arc<dyn Repository>,
    database: Database,
}

#[async_trait]
impl Spoilable for SpoilableMongo {
    fn repository(&self) -> Arc<dyn Repository> {
        Arc::clone(&self.repository)
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        spoil::spoil(&self.database, &record, how).await;
    }

    async fn has_unknown_field(&self, record: RecordName) -> bool {
        spoil::has_unknown_field(&self.database, &record).await
    }
}

#[async_trait]
impl Fixture for Spoilt {
    type Port = dyn Spoilable;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Spoilable>, Scratch) {
        let (repository, scratch) = self.0.open().await;
        let database = scratch.database().await;
        (Arc::new(SpoilableMongo { repository, database }), scratch)
    }

    fn tick(&self) -> Duration {
        self.0.tick()
    }
}

fn on(uri: &str, single_writes: bool) -> OnMongo {
    OnMongo { uri: uri.to_owned(), single_writes }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("repository")
        .suite("", repository::CLAUSES, |uri| on(uri, false))
        .suite("single", repository::CLAUSES, |uri| on(uri, true))
        .suite("", unreadable::CLAUSES, |uri| Spoilt(on(uri, false)))
        .suite("single", unreadable::CLAUSES, |uri| Spoilt(on(uri, true)))
}
