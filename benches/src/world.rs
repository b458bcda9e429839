//! Takes how many documents and how large; gives a repository in memory that they are put into
//! the whole way, and the URLs and bodies to put.

use std::sync::Arc;

use bytes::Bytes;
use flare_backend_memory::{MemoryBackend, MemoryConfig, MemoryRepository};
use flare_core::model::{
    Applied, Content, DocumentChange, DocumentKey, DocumentUrl, Epoch, Generation, IdSource,
    NewResource, Present, Resource, Revision, Round, RowEffect, RowKey, Spread, SubscriptionId,
    Timestamp, Version,
};
use flare_core::port::{
    Clock, DocumentStore, DocumentWrite, ResourceStore, RowStore, RowUpdate, SystemClock,
};
use flare_core::{Error, ErrorKind, Result};
use futures::FutureExt;

/// A repository in memory with one resource, `http://api.example.com/shops/{shop}/items/{item}`.
#[derive(Debug)]
pub struct World {
    /// The backend.
    pub backend: MemoryBackend,
    /// Its repository.
    pub repository: Arc<MemoryRepository>,
    /// Its resource; revisions are integers in `rev`.
    pub resource: Resource,
}

impl World {
    /// An empty world with room for anything.
    pub fn new() -> Result<Self> {
        let config = MemoryConfig::default().max_bytes(u64::MAX);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let backend = MemoryBackend::with_config(config, clock);
        let repository = backend.repository();
        let (endpoint, change) =
            NewResource::new("http://api.example.com/shops/{shop}/items/{item}")
                .change_field("rev")
                .check()
                .map_err(|invalid| Error::invalid("new_world", invalid))?;
        let id = IdSource::seeded(1).next(Timestamp::EPOCH).into();
        let resource = Resource::new(id, endpoint, change, Timestamp::EPOCH);
        ready(repository.insert_resource(resource.clone()))??;
        Ok(Self { backend, repository, resource })
    }

    /// A put up to the store: URL, resource, revision.
    pub async fn prepare(&self, url: &str, body: Bytes) -> Result<DocumentWrite> {
        let invalid = |invalid| Error::invalid("put", invalid);
        let url = DocumentUrl::parse(url).map_err(invalid)?;
        let matching = self.repository.match_resources(vec![url.clone()]).await?.pop();
        let resource = matching.and_then(|matching| matching.into_iter().next());
        let resource = resource.ok_or_else(|| Error::new(ErrorKind::NotFound, "put"))?;
        let (revision, content) = Content::parse(&resource.change, body).map_err(invalid)?;
        Ok(DocumentWrite::put(DocumentKey::new(resource.id, url), revision, content))
    }

    /// A put, the whole way.
    pub async fn put(&self, url: &str, body: Bytes) -> Result<DocumentChange> {
        let write = self.prepare(url, body).await?;
        let outcome = self.repository.write_documents(vec![write]).await.pop();
        outcome.unwrap_or_else(|| Err(nothing())).map(|outcome| outcome.change)
    }

    /// Puts one body under each URL; every put has to be the change named.
    pub fn put_all(&self, urls: &[String], body: &Bytes, expected: DocumentChange) -> Result<()> {
        let puts = async {
            for url in urls {
                let change = self.put(url, body.clone()).await?;
                if change != expected {
                    let detail = format!("{url} was {}", change.as_str());
                    return Err(Error::new(ErrorKind::Internal, "put").with_detail(detail));
                }
            }
            Ok(())
        };
        ready(puts)?
    }

    /// Puts one body at `revision` under each URL and marks it as spread.
    pub fn fill(&self, urls: &[String], body: &Bytes, revision: i64) -> Result<()> {
        self.put_all(urls, body, DocumentChange::Created)?;
        self.dispatch(urls, revision)
    }

    /// Marks documents as spread at `revision`.
    pub fn dispatch(&self, urls: &[String], revision: i64) -> Result<()> {
        let version = Version::live(Revision::new(revision));
        let versions = self.keys(urls)?.into_iter().map(|key| (key, version)).collect();
        ready(self.repository.mark_dispatched(versions))?.into_iter().collect()
    }

    /// Removes documents that are spread at `revision`.
    pub fn remove(&self, urls: &[String], revision: i64) -> Result<()> {
        let version = Version::live(Revision::new(revision));
        for key in self.keys(urls)? {
            if !ready(self.repository.remove_document(&key, version))?? {
                return Err(nothing());
            }
        }
        Ok(())
    }

    /// Makes a row of each subscription for each document want a revision.
    pub fn spread(
        &self,
        subscriptions: &[SubscriptionId],
        documents: &[DocumentKey],
        revision: i64,
    ) -> Result<()> {
        let wanted = Version::live(Revision::new(revision));
        let spread = |(subscription, document): (SubscriptionId, &DocumentKey)| {
            Spread::new(subscription, Generation::new(1), document.clone(), wanted)
        };
        let spreads = pairs(subscriptions, documents).map(spread).collect();
        ready(self.repository.spread_rows(spreads))?
    }

    /// Settles the row of each subscription for each document.
    pub fn settle(
        &self,
        subscriptions: &[SubscriptionId],
        documents: &[DocumentKey],
        revision: i64,
    ) -> Result<()> {
        let version = Version::live(Revision::new(revision));
        let settle = |(subscription, document): (SubscriptionId, &DocumentKey)| RowUpdate {
            key: RowKey::new(subscription, document.url.clone()),
            round: Round::ZERO,
            effect: RowEffect::Settle { version, present: Present::Yes, not_before: None },
        };
        let updates = pairs(subscriptions, documents).map(settle).collect();
        for applied in ready(self.repository.apply_rows(Epoch::new(1), updates))? {
            if applied? != Applied::Done {
                return Err(Error::new(ErrorKind::Internal, "settle"));
            }
        }
        Ok(())
    }

    /// The keys of documents, in allocations of their own as they are after a task was read.
    pub fn keys(&self, urls: &[String]) -> Result<Vec<DocumentKey>> {
        let invalid = |invalid| Error::invalid("keys", invalid);
        let parse = |url: &String| DocumentUrl::parse(url).map_err(invalid);
        urls.iter().map(|url| Ok(DocumentKey::new(self.resource.id, parse(url)?))).collect()
    }
}

fn pairs<'d>(
    subscriptions: &[SubscriptionId],
    documents: &'d [DocumentKey],
) -> impl Iterator<Item = (SubscriptionId, &'d DocumentKey)> {
    subscriptions.iter().flat_map(move |id| documents.iter().map(move |document| (*id, document)))
}

/// Ids of subscriptions.
pub fn subscriptions(count: usize) -> Vec<SubscriptionId> {
    let ids = IdSource::seeded(2);
    (0..count).map(|_| ids.next(Timestamp::EPOCH).into()).collect()
}

/// The URL of a document; no two numbers share one, and neighbours do not look alike to a hash.
pub fn url(number: usize) -> String {
    format!("http://api.example.com/shops/{}/items/{number:08}", number % 97)
}

/// The URLs of a range of documents.
pub fn urls(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(url).collect()
}

/// The first revision: of ten digits, as are all after it, so that bodies stay equally long.
pub const FIRST: i64 = 1_000_000_000;

/// A body of exactly `bytes` (at least 200) at `revision`, of the kind an origin hands over.
pub fn body(revision: i64, bytes: usize) -> Bytes {
    let mut json = format!(
        concat!(
            r#"{{"id":"item-4711","rev":{},"name":"A thing","price":12.5,"stock":42,"#,
            r#""active":true,"tags":["new","blue"],"owner":{{"name":"Ada","mail":"ada@example.com"}},"#,
            r#""text":""#,
        ),
        revision,
    );
    let end = r#""}"#;
    let words = "lorem ipsum dolor sit amet ".chars().cycle();
    json.extend(words.take(bytes.saturating_sub(json.len() + end.len())));
    json.push_str(end);
    json.into()
}

/// What a future of the memory backend gives: it never waits.
pub fn ready<T>(future: impl Future<Output = T>) -> Result<T> {
    future.now_or_never().ok_or_else(|| Error::new(ErrorKind::Internal, "ready"))
}

fn nothing() -> Error {
    Error::new(ErrorKind::Internal, "put").with_detail("the store did not answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_as_long_as_asked_and_of_the_revision_asked() {
        for bytes in [200, 1024] {
            let body = body(FIRST + 7, bytes);
            assert_eq!(body.len(), bytes);
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(value["rev"], FIRST + 7);
        }
    }
}
