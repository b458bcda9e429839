//! Takes a repository that no runtime works yet; gives it very many documents of which every subscription has
//! been told, as if all that had been long ago.

use bytes::Bytes;
use flare_benches::world::body;
use flare_core::model::{
    Applied, Content, DocumentKey, DocumentUrl, Epoch, Generation, Present, ResourceId, Revision,
    Round, RowEffect, RowKey, Spread, SubscriptionId, Version,
};
use flare_core::port::{DocumentWrite, Repository, RowUpdate};

use crate::Result;

/// The revision of documents before any round.
pub(super) const REVISION: i64 = 1;
/// Rows that are written in one call.
const ROWS: usize = 10_000;

/// The URL of a document.
pub(super) fn url(number: usize) -> String {
    format!("http://api.example.com/items/{number}")
}

/// Stores documents and, for each subscription, rows that are settled.
pub(super) async fn settled(
    repository: &dyn Repository,
    resource: ResourceId,
    subscriptions: &[SubscriptionId],
    documents: usize,
) -> Result<()> {
    let epoch = repository.next_epoch().await?.epoch;
    let filled = Filled { repository, resource, subscriptions, epoch };
    let batch = (ROWS / subscriptions.len().max(1)).max(1);
    for from in (0..documents).step_by(batch) {
        let keys = filled.keys(from..documents.min(from + batch))?;
        filled.put(&keys, REVISION, body(REVISION, super::BODY)).await?;
        filled.spread(&keys, REVISION).await?;
        filled.settle(&keys, REVISION).await?;
    }
    Ok(())
}

/// Stores the next revision of some documents, and rows that want it and do not have it.
pub(super) async fn pending(
    repository: &dyn Repository,
    resource: ResourceId,
    subscriptions: &[SubscriptionId],
    documents: usize,
    revision: i64,
) -> Result<()> {
    let epoch = repository.next_epoch().await?.epoch;
    let filled = Filled { repository, resource, subscriptions, epoch };
    let batch = (ROWS / subscriptions.len().max(1)).max(1);
    for from in (0..documents).step_by(batch) {
        let keys = filled.keys(from..documents.min(from + batch))?;
        filled.put(&keys, revision, body(revision, super::BODY)).await?;
        filled.spread(&keys, revision).await?;
    }
    Ok(())
}

struct Filled<'a> {
    repository: &'a dyn Repository,
    resource: ResourceId,
    subscriptions: &'a [SubscriptionId],
    epoch: Epoch,
}

impl Filled<'_> {
    fn keys(&self, numbers: std::ops::Range<usize>) -> Result<Vec<DocumentKey>> {
        let key = |number| Ok(DocumentKey::new(self.resource, DocumentUrl::parse(&url(number))?));
        numbers.map(key).collect()
    }

    /// Stores documents that have been spread.
    async fn put(&self, keys: &[DocumentKey], revision: i64, body: Bytes) -> Result<()> {
        let revision = Revision::new(revision);
        let content = Content::from_stored(body);
        let put = |key: &DocumentKey| DocumentWrite::put(key.clone(), revision, content.clone());
        for written in self.repository.write_documents(keys.iter().map(put).collect()).await {
            written?;
        }
        let spread = |key: &DocumentKey| (key.clone(), Version::live(revision));
        for marked in self.repository.mark_dispatched(keys.iter().map(spread).collect()).await {
            marked?;
        }
        Ok(())
    }

    /// Makes every subscription's row want a revision.
    async fn spread(&self, keys: &[DocumentKey], revision: i64) -> Result<()> {
        let wanted = Version::live(Revision::new(revision));
        let spread = |(subscription, key): (SubscriptionId, &DocumentKey)| {
            Spread::new(subscription, Generation::new(1), key.clone(), wanted)
        };
        Ok(self.repository.spread_rows(self.rows(keys).map(spread).collect()).await?)
    }

    /// Notes that every client has a revision.
    async fn settle(&self, keys: &[DocumentKey], revision: i64) -> Result<()> {
        let version = Version::live(Revision::new(revision));
        let settle = |(subscription, key): (SubscriptionId, &DocumentKey)| RowUpdate {
            key: RowKey::new(subscription, key.url.clone()),
            round: Round::ZERO,
            effect: RowEffect::Settle { version, present: Present::Yes, not_before: None },
        };
        let settles = self.rows(keys).map(settle).collect();
        for applied in self.repository.apply_rows(self.epoch, settles).await {
            if applied? != Applied::Done {
                return Err("a row could not be settled".into());
            }
        }
        Ok(())
    }

    fn rows<'k>(
        &self,
        keys: &'k [DocumentKey],
    ) -> impl Iterator<Item = (SubscriptionId, &'k DocumentKey)> {
        self.subscriptions.iter().flat_map(move |id| keys.iter().map(move |key| (*id, key)))
    }
}
