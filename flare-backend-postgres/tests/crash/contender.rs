//! A process that does all that Flare and a host do to documents, in whatever order, beside others that do the same to
//! the same ones; until so many turns have been taken by all of them.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig, PostgresRepository};
use flare_core::model::{
    Content, Document, DocumentKey, DocumentUrl, Epoch, Present, ResourceId, Revision, Round,
    RowEffect, RowKey, Spread,
};
use flare_core::port::{
    DocumentStore, DocumentWrite, Member, ResourceStore, RowStore, RowUpdate, SpreadDocuments,
    SubscriptionStore,
};
use flare_core::{Error, ErrorKind};
use tokio_postgres::Client;

use crate::process::Role;
use crate::support::connect;

/// The turns: no two processes take the same one.
pub(crate) const TURNS: &str = "CREATE SEQUENCE flare.turns";
/// Documents that a turn is about, and how many of them are new ones of its round.
const DOCUMENTS: i64 = 60;
const FRESH: i64 = 20;
/// Turns of a round.
const ROUND: i64 = 10;

struct Contender {
    backend: PostgresBackend,
    store: Arc<PostgresRepository>,
    host: Client,
    random: fastrand::Rng,
    /// That of orders alone, and that of orders and of bills, with those who are told of each.
    resources: [(ResourceId, Vec<Member>); 2],
}

pub(crate) async fn run(role: Role) {
    let config = PostgresConfig::new(&role.uri).schema(&role.schema);
    // So many processes share their machine with other tests.
    let config = config.pool_limit(2).timeout(Duration::from_secs(60));
    let backend = PostgresBackend::connect(config).await.unwrap();
    let store = backend.repository();
    let order = DocumentUrl::parse(&url(0)).unwrap();
    let matched = store.match_resources(vec![order]).await.unwrap().remove(0);
    let [orders, all] = [matched[0].id, matched[1].id];
    let resources = [(orders, members(&store, orders).await), (all, members(&store, all).await)];
    let (host, random) = (connect(&role.uri).await, fastrand::Rng::with_seed(role.seed));
    let mut contender = Contender { backend, store, host, random, resources };
    let next = format!("SELECT nextval('{}.turns')", role.schema);
    loop {
        let turn: i64 = contender.host.query_one(&next, &[]).await.unwrap().get(0);
        if turn > role.many {
            return;
        }
        contender.take(turn).await;
    }
}

async fn members(store: &PostgresRepository, resource: ResourceId) -> Vec<Member> {
    let partitions = store.partitions(resource).await.unwrap();
    store.members(resource, partitions[0]).await.unwrap()
}

/// Every other one is an order, of which there may be a copy in either resource.
fn url(number: i64) -> String {
    let kind = if number % 2 == 0 { "orders" } else { "bills" };
    format!("http://shop.example/{kind}/{number}")
}

/// A document that others are at all the while may be busy; a circle that the server broke up it has counted.
fn unless_busy<T>(answer: Result<T, Error>) {
    if let Err(error) = answer {
        assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}");
    }
}

impl Contender {
    async fn take(&mut self, turn: i64) {
        let fresh = DOCUMENTS + turn / ROUND * FRESH;
        let mut numbers: Vec<i64> = (0..DOCUMENTS - FRESH).chain(fresh..fresh + FRESH).collect();
        self.random.shuffle(&mut numbers);
        match self.random.u8(..13) {
            0..3 => self.put_in(turn, &numbers).await,
            3..6 => self.write(turn, &numbers).await,
            6..8 => self.spread_documents(&numbers).await,
            8..9 => self.spread_rows(&numbers).await,
            9..10 => self.apply(&numbers).await,
            10..12 => self.dispatch(&numbers).await,
            _ => self.remove(&numbers).await,
        }
    }

    /// As a host does: bills, or bills and orders.
    async fn put_in(&mut self, turn: i64, numbers: &[i64]) {
        let transaction = self.host.transaction().await.unwrap();
        let orders = self.random.bool();
        let numbers = numbers.iter().filter(|number| orders || *number % 2 != 0);
        let documents = numbers.map(|it| (url(*it), format!(r#"{{"rev":{turn}}}"#)));
        match self.backend.put_in(&transaction, documents).await {
            Ok(_) => transaction.commit().await.unwrap(),
            done => {
                unless_busy(done);
                transaction.rollback().await.unwrap();
            }
        }
    }

    /// The documents as they are stored: an order is now in the one, now in the other resource.
    fn keys(&mut self, numbers: &[i64]) -> Vec<DocumentKey> {
        let key = |number: &i64| {
            let elsewhere = number % 2 != 0 || self.random.u8(..4) == 0;
            let (resource, _) = self.resources[usize::from(elsewhere)];
            DocumentKey::new(resource, DocumentUrl::parse(&url(*number)).unwrap())
        };
        numbers.iter().map(key).collect()
    }

    async fn heads(&mut self, numbers: &[i64]) -> Vec<Document> {
        let keys = self.keys(numbers);
        self.store.document_heads(keys).await.unwrap().into_iter().flatten().collect()
    }

    async fn write(&mut self, turn: i64, numbers: &[i64]) {
        let keys = self.keys(numbers);
        let write = |key: DocumentKey| {
            let (revision, rest) = (Revision::new(turn), self.random.u8(..8));
            let content = Content::from_stored(bytes::Bytes::from_static(b"{}"));
            match rest {
                0 => DocumentWrite::delete(key, Some(revision)),
                1 => DocumentWrite::delete(key, None),
                _ => DocumentWrite::put(key, revision, content),
            }
        };
        let writes = keys.into_iter().map(write).collect();
        self.store.write_documents(writes).await.into_iter().for_each(unless_busy);
    }

    async fn spread_documents(&mut self, numbers: &[i64]) {
        let heads = self.heads(numbers).await;
        for (resource, _) in &self.resources {
            let documents = heads.iter().filter(|head| head.key.resource == *resource);
            let documents = documents.map(|head| (head.key.url.clone(), head.version)).collect();
            let request = SpreadDocuments::new(*resource, documents, 1_000).dispatching(true);
            unless_busy(self.store.spread_documents(request).await);
        }
    }

    /// Everybody's rows of the documents.
    async fn spreads(&mut self, numbers: &[i64]) -> Vec<Spread> {
        let mut spreads = Vec::new();
        for head in self.heads(numbers).await {
            let members = self.resources.iter().filter(|it| it.0 == head.key.resource);
            spreads.extend(members.flat_map(|(_, members)| members).map(|member| {
                let Member { subscription, generation, .. } = member;
                Spread::new(*subscription, *generation, head.key.clone(), head.version)
            }));
        }
        self.random.shuffle(&mut spreads);
        spreads
    }

    async fn spread_rows(&mut self, numbers: &[i64]) {
        let spreads = self.spreads(numbers).await;
        unless_busy(self.store.spread_rows(spreads).await);
    }

    async fn apply(&mut self, numbers: &[i64]) {
        let settle = |spread: Spread| RowUpdate {
            key: RowKey::new(spread.subscription, spread.document.url.clone()),
            round: Round::ZERO,
            effect: RowEffect::Settle {
                version: spread.wanted,
                present: Present::Yes,
                not_before: None,
            },
        };
        let updates = self.spreads(numbers).await.into_iter().map(settle).collect();
        let applied = self.store.apply_rows(Epoch::new(1), updates).await;
        applied.into_iter().for_each(unless_busy);
    }

    async fn dispatch(&mut self, numbers: &[i64]) {
        let heads = self.heads(numbers).await;
        let versions = heads.into_iter().map(|head| (head.key, head.version)).collect();
        self.store.mark_dispatched(versions).await.into_iter().for_each(unless_busy);
    }

    /// Forgets a few of them: the process that writes them next makes them anew.
    async fn remove(&mut self, numbers: &[i64]) {
        let few = &numbers[..numbers.len() / 4];
        for head in self.heads(few).await {
            unless_busy(self.store.remove_document(&head.key, head.version).await);
        }
    }
}
