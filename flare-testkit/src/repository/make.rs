//! Takes a clause's name; gives test data no other clause shares, and short ways to ask a
//! repository. Ids, hosts and URLs follow from the name alone, so that a run can be repeated.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use flare_core::model::consumer::{RejectReason, Rejection};
use flare_core::model::{
    Applied, ChangeRule, Consumer, ConsumerId, Content, Document, DocumentKey, DocumentUrl,
    Endpoint, Epoch, FreshId, Generation, IdSource, Reject, Resource, ResourceId, Revision, Round,
    Row, RowEffect, RowKey, Spread, SpreadCause, Subscription, SubscriptionId, SubscriptionSpec,
    Timestamp, Version,
};
use flare_core::port::{
    DocumentWrite, OpenPartitions, Opened, Repository, RowUpdate, Scan, WriteOutcome,
};
use futures::TryStreamExt;
use futures::future::join_all;

use crate::Subject;

/// What every clause of the suite tries.
pub(super) type Repo = Subject<dyn Repository>;

/// How many tasks race where a clause is about races.
pub(super) const RACERS: usize = 8;

/// A time long before any test, with all its digits.
pub(super) const LONG_AGO: Timestamp = Timestamp::from_unix_nanos(1_600_000_000_123_456_789);

/// Makes the data of one clause.
pub(super) struct Make {
    host: String,
    ids: IdSource,
    count: AtomicU32,
}

impl Make {
    pub(super) fn new(clause: &str) -> Self {
        let seed = clause
            .bytes()
            .fold(7_u64, |hash, byte| hash.wrapping_mul(0x0000_0100_0000_01B3) ^ u64::from(byte));
        let host = format!("{}.example", clause.replace('_', "-"));
        Self { host, ids: IdSource::seeded(seed), count: AtomicU32::new(0) }
    }

    /// A fresh id, greater than all before.
    pub(super) fn id<T: From<FreshId>>(&self) -> T {
        self.ids.next(LONG_AGO).into()
    }

    /// An active resource with this path on the clause's host.
    pub(super) fn resource(&self, path: &str) -> Resource {
        let endpoint = Endpoint::parse(&format!("https://{}{path}", self.host)).unwrap();
        Resource::new(self.id(), endpoint, ChangeRule::new("rev", None).unwrap(), LONG_AGO)
    }

    /// A URL with this path on the clause's host.
    pub(super) fn url(&self, path: &str) -> DocumentUrl {
        DocumentUrl::parse(&format!("https://{}{path}", self.host)).unwrap()
    }

    /// A document nobody has seen yet.
    pub(super) fn document(&self, resource: ResourceId) -> DocumentKey {
        DocumentKey::new(resource, self.url(&format!("/documents/{}", self.next())))
    }

    /// A document of a resource of its own.
    pub(super) fn lone_document(&self) -> DocumentKey {
        self.document(self.id())
    }

    /// As many documents of one resource.
    pub(super) fn documents(&self, count: usize) -> Vec<DocumentKey> {
        let resource = self.id();
        (0..count).map(|_| self.document(resource)).collect()
    }

    /// A client's URL nobody has used yet.
    pub(super) fn client_url(&self) -> String {
        format!("http://client.{}/{}", self.host, self.next())
    }

    /// A subscription with a URL of its own.
    pub(super) fn subscription(&self, resource: ResourceId) -> Subscription {
        self.subscription_to(resource, &self.client_url())
    }

    /// A subscription that is told at `url`.
    pub(super) fn subscription_to(&self, resource: ResourceId, url: &str) -> Subscription {
        let spec = SubscriptionSpec::post(url).build().unwrap();
        Subscription::new(self.id(), resource, spec, LONG_AGO)
    }

    /// A consumer of a resource and with settings of its own.
    pub(super) fn consumer(&self) -> Consumer {
        let source = format!(r#"{{"kind":"test","settings":{{"queue":"queue {}"}}}}"#, self.next());
        let document = format!(r#"{{"url":"https://{}/documents/{{/id}}"}}"#, self.host);
        self.consumer_of(&source, &document)
    }

    /// A consumer with this source and mapping, as they stand in JSON.
    pub(super) fn consumer_of(&self, source: &str, document: &str) -> Consumer {
        let text =
            format!(r#"{{"source":{source},"document":{document},"createdAt":0,"updatedAt":0}}"#);
        // The text is only the shortest way to write them down; what is made has nothing else of it.
        let read = Consumer::from_stored(self.id(), self.id(), Generation::new(1), &text).unwrap();
        Consumer::new(read.id, read.resource, read.source, read.mapping, LONG_AGO)
    }

    /// A message of a consumer that became no document, so many nanoseconds after [`LONG_AGO`].
    pub(super) fn reject(&self, consumer: ConsumerId, nanos: u64) -> Reject {
        let body = Bytes::from_static(br#"{"id":null}"#);
        let rejection = Rejection::new(RejectReason::Missing, "/id", "is missing");
        let at = LONG_AGO + Duration::from_nanos(nanos);
        Reject::new(consumer, &format!("message {}", self.next()), &body, rejection, at)
    }

    /// Spreads to `count` new rows of one new subscription wanting `live(1)`; gives their keys.
    pub(super) async fn rows(&self, repo: &Repo, count: usize) -> Vec<RowKey> {
        let subscription: SubscriptionId = self.id();
        let mut keys = Vec::new();
        for document in self.documents(count) {
            keys.push(RowKey::new(subscription, document.url.clone()));
            spread(repo, subscription, &document, live(1)).await;
        }
        keys
    }

    /// One new row wanting `live(wanted)`: its document and key.
    pub(super) async fn row(&self, repo: &Repo, wanted: i64) -> (DocumentKey, RowKey) {
        let (subscription, document) = (self.id(), self.lone_document());
        spread(repo, subscription, &document, live(wanted)).await;
        let key = RowKey::new(subscription, document.url.clone());
        (document, key)
    }

    fn next(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) const fn live(revision: i64) -> Version {
    Version::live(Revision::new(revision))
}

pub(super) const fn gone(revision: i64) -> Version {
    Version::gone(Revision::new(revision))
}

pub(super) fn content(text: &str) -> Content {
    Content::from_stored(Bytes::copy_from_slice(text.as_bytes()))
}

/// A put of a small document that names its revision.
pub(super) fn put(key: &DocumentKey, revision: i64) -> DocumentWrite {
    let content = content(&format!(r#"{{"rev":{revision}}}"#));
    DocumentWrite::put(key.clone(), Revision::new(revision), content)
}

pub(super) fn delete(key: &DocumentKey, revision: Option<i64>) -> DocumentWrite {
    DocumentWrite::delete(key.clone(), revision.map(Revision::new))
}

/// The store's time.
pub(super) async fn now(repo: &Repo) -> Timestamp {
    repo.next_epoch().await.unwrap().at
}

/// Three epochs, lowest first; only one of them is drawn, for the others nobody needs to.
pub(super) async fn epochs(repo: &Repo) -> [Epoch; 3] {
    let drawn = repo.next_epoch().await.unwrap().epoch.get();
    [drawn, drawn + 1, drawn + 2].map(Epoch::new)
}

/// The only answer of a batch of one.
pub(super) fn only<T>(answers: Vec<T>) -> T {
    let mut answers = answers.into_iter();
    match (answers.next(), answers.next()) {
        (Some(answer), None) => answer,
        _ => panic!("a batch of one item has one answer"),
    }
}

pub(super) async fn write(repo: &Repo, write: DocumentWrite) -> WriteOutcome {
    only(repo.write_documents(vec![write]).await).unwrap()
}

pub(super) async fn document(repo: &Repo, key: &DocumentKey) -> Option<Document> {
    only(repo.documents(vec![key.clone()]).await.unwrap())
}

pub(super) async fn stored_version(repo: &Repo, key: &DocumentKey) -> Option<Version> {
    document(repo, key).await.map(|document| document.version)
}

/// Whether the document, which must be there, still has to be spread.
pub(super) async fn undispatched(repo: &Repo, key: &DocumentKey) -> bool {
    let document = document(repo, key).await.unwrap();
    document.dispatched < Some(document.version)
}

pub(super) async fn mark(repo: &Repo, key: &DocumentKey, version: Version) {
    only(repo.mark_dispatched(vec![(key.clone(), version)]).await).unwrap();
}

pub(super) async fn open(
    repo: &Repo,
    key: &DocumentKey,
    version: Version,
    partitions: &[u32],
) -> Opened {
    let partitions = partitions.iter().copied().map(flare_core::model::PartitionId::new).collect();
    let open = OpenPartitions { key: key.clone(), version, partitions };
    only(repo.open_partitions(vec![open]).await).unwrap()
}

/// Spreads under the first generation.
pub(super) async fn spread(
    repo: &Repo,
    subscription: SubscriptionId,
    document: &DocumentKey,
    wanted: Version,
) {
    spread_at(repo, subscription, 1, document, wanted).await;
}

pub(super) async fn spread_at(
    repo: &Repo,
    subscription: SubscriptionId,
    generation: u64,
    document: &DocumentKey,
    wanted: Version,
) {
    let generation = Generation::new(generation);
    let spread = Spread::new(subscription, generation, document.clone(), wanted);
    repo.spread_rows(vec![spread]).await.unwrap();
}

/// Makes a row want a version for another reason than a change.
pub(super) async fn spread_because(
    repo: &Repo,
    key: &RowKey,
    document: &DocumentKey,
    wanted: Version,
    cause: SpreadCause,
) {
    let change = Spread::new(key.subscription, Generation::new(1), document.clone(), wanted);
    repo.spread_rows(vec![change.because(cause)]).await.unwrap();
}

/// The row, if there is one.
pub(super) async fn find_row(repo: &Repo, key: &RowKey) -> Option<Row> {
    only(repo.rows(vec![key.clone()]).await.unwrap())
}

/// The row, which must be there.
pub(super) async fn row(repo: &Repo, key: &RowKey) -> Row {
    find_row(repo, key).await.expect("the row is there")
}

/// Whether there is something left to tell, by the words of the specification.
pub(super) fn pending(row: &Row) -> bool {
    let done = |version: Option<Version>| version.is_some_and(|version| version >= row.wanted);
    !done(row.settled) && !done(row.given_up)
}

pub(super) async fn apply(repo: &Repo, epoch: Epoch, key: &RowKey, effect: RowEffect) -> Applied {
    apply_in(repo, epoch, Round::ZERO, key, effect).await
}

/// Applies an effect on what was told in a round.
pub(super) async fn apply_in(
    repo: &Repo,
    epoch: Epoch,
    round: Round,
    key: &RowKey,
    effect: RowEffect,
) -> Applied {
    let update = RowUpdate { key: key.clone(), round, effect };
    only(repo.apply_rows(epoch, vec![update]).await).unwrap()
}

/// Applies an effect that has to take place.
pub(super) async fn must_apply(repo: &Repo, epoch: Epoch, key: &RowKey, effect: RowEffect) {
    let applied = apply(repo, epoch, key, effect.clone()).await;
    assert_eq!(applied, Applied::Done, "{effect:?}");
}

pub(super) async fn all<T>(scan: Scan<'_, T>) -> Vec<T> {
    scan.try_collect().await.unwrap()
}

/// Runs one task per racer, all at once; gives what each made.
pub(super) async fn race<T, F>(run: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..RACERS).map(|racer| tokio::spawn(run(racer))).collect();
    join_all(tasks).await.into_iter().map(Result::unwrap).collect()
}
