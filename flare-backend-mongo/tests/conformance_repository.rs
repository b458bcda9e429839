//! The repository on MongoDB keeps every clause of the contract, with batches in one command and,
//! as on servers before 8.0, with one command for each item.

#![allow(clippy::expect_used, reason = "it is a test")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_mongo::MongoRepository;
use flare_core::port::Repository;
use flare_testkit::{Fixture, Service, Trials, repository};
use support::Scratch;

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

fn main() -> ExitCode {
    Trials::on(Service::MongoDb)
        .suite("", repository::CLAUSES, |uri| OnMongo { uri: uri.to_owned(), single_writes: false })
        .suite("single", repository::CLAUSES, |uri| OnMongo {
            uri: uri.to_owned(),
            single_writes: true,
        })
        .run()
}
