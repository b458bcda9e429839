//! The repository on PostgreSQL keeps every clause of the contract: with statements that the server remembers,
//! without, as behind a pooler, and through two handles, which know of each other what two processes would.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Scratch, spoil};
use async_trait::async_trait;
use flare_backend_postgres::PostgresRepository;
use flare_core::model::RecordName;
use flare_core::port::Repository;
use flare_testkit::intercept::several;
use flare_testkit::unreadable::{Spoilable, Spoiling};
use flare_testkit::{Fixture, Trials, repository, unreadable};

/// Small enough that "one byte more" costs nothing to try.
const MAX_CONTENT: usize = 2 << 20;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// As the connection allows.
    Remembered,
    Plain,
    TwoHandles,
}

struct OnPostgres {
    uri: String,
    way: Way,
}

#[async_trait]
impl Fixture for OnPostgres {
    type Port = dyn Repository;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Repository>, Scratch) {
        let scratch = Scratch::new(&self.uri);
        let connect = async || {
            let config = scratch.config().max_content(MAX_CONTENT);
            let config = if self.way == Way::Plain { config.plain_statements() } else { config };
            let repository = PostgresRepository::connect(config).await;
            Arc::new(repository.expect("the server takes a new schema")) as Arc<dyn Repository>
        };
        if self.way != Way::TwoHandles {
            return (connect().await, scratch);
        }
        (Arc::new(several([connect().await, connect().await])), scratch)
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(5)
    }
}

/// The same, with a way to its records behind its back.
struct Spoilt(OnPostgres);

struct SpoilablePostgres {
    repository: Arc<dyn Repository>,
    client: tokio_postgres::Client,
    schema: String,
}

#[async_trait]
impl Spoilable for SpoilablePostgres {
    fn repository(&self) -> Arc<dyn Repository> {
        Arc::clone(&self.repository)
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        spoil::spoil(&self.client, &self.schema, &record, how).await;
    }

    async fn has_unknown_field(&self, record: RecordName) -> bool {
        spoil::has_unknown_field(&self.client, &self.schema, &record).await
    }
}

#[async_trait]
impl Fixture for Spoilt {
    type Port = dyn Spoilable;
    type Guard = Scratch;

    async fn open(&self) -> (Arc<dyn Spoilable>, Scratch) {
        let (repository, scratch) = self.0.open().await;
        let (client, schema) = (scratch.connect().await, scratch.name.clone());
        (Arc::new(SpoilablePostgres { repository, client, schema }), scratch)
    }

    fn tick(&self) -> Duration {
        self.0.tick()
    }
}

fn on(uri: &str, way: Way) -> OnPostgres {
    OnPostgres { uri: uri.to_owned(), way }
}

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("repository")
        .suite("", repository::CLAUSES, |uri| on(uri, Way::Remembered))
        .suite("plain", repository::CLAUSES, |uri| on(uri, Way::Plain))
        .suite("two", repository::CLAUSES, |uri| on(uri, Way::TwoHandles))
        .suite("", unreadable::CLAUSES, |uri| Spoilt(on(uri, Way::Remembered)))
}

/// Adds what is tried behind a pooler.
pub(crate) fn pooled(all: Trials) -> Trials {
    all.of("repository").suite("", repository::CLAUSES, |uri| on(uri, Way::Remembered))
}
