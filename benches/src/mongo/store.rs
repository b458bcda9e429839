//! The store's own calls on a hundred documents: put, spread, mark, settle.

use std::time::Duration;

use bytes::Bytes;
use flare_backend_mongo::{MongoConfig, MongoRepository};
use flare_core::model::{
    Applied, Content, DocumentChange, DocumentKey, DocumentUrl, Epoch, Generation, IdSource,
    Present, ResourceId, Revision, Round, RowEffect, RowKey, Spread, SubscriptionId, Timestamp,
    Version,
};
use flare_core::port::{DocumentStore, DocumentWrite, RowStore, RowUpdate};

use super::{BATCH, timed};
use crate::Result;

/// A call that a round measures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) what: &'static str,
    /// The least share of bare updates it is held to.
    pub(super) least: Option<f64>,
}

const fn measured(what: &'static str, least: Option<f64>) -> Measured {
    Measured { what, least }
}

/// What a round measures, in its order.
pub(super) const CALLS: [Measured; 5] = [
    measured("put, updated", Some(0.4)),
    measured("put, unchanged", None),
    measured("spread to rows", Some(0.5)),
    measured("mark as spread", None),
    measured("settle rows", Some(0.5)),
];

pub(super) struct Store {
    repository: MongoRepository,
    subscription: SubscriptionId,
    keys: Vec<DocumentKey>,
    epoch: Epoch,
}

impl Store {
    pub(super) async fn new(config: MongoConfig) -> Result<Self> {
        let repository = MongoRepository::connect(config).await?;
        let ids = IdSource::seeded(1);
        let resource: ResourceId = ids.next(Timestamp::EPOCH).into();
        let key = |id: usize| {
            let url = DocumentUrl::parse(&format!("http://api.example.com/items/{id}"));
            url.map(|url| DocumentKey::new(resource, url))
        };
        let keys = (0..BATCH).map(key).collect::<std::result::Result<_, _>>()?;
        let epoch = repository.next_epoch().await?.epoch;
        Ok(Self { repository, subscription: ids.next(Timestamp::EPOCH).into(), keys, epoch })
    }

    /// How long each call takes for one batch.
    pub(super) async fn round(&mut self, revision: i64) -> Result<[Duration; CALLS.len()]> {
        let version = Version::live(Revision::new(revision));
        let changed = if revision == 1 { DocumentChange::Created } else { DocumentChange::Updated };
        let updated = timed(self.put(revision, changed)).await?.0;
        let unchanged = timed(self.put(revision, DocumentChange::Unchanged)).await?.0;
        let spread = |key: &DocumentKey| {
            Spread::new(self.subscription, Generation::new(1), key.clone(), version)
        };
        let spreads: Vec<Spread> = self.keys.iter().map(spread).collect();
        let (spread, ()) = timed(async { Ok(self.repository.spread_rows(spreads).await?) }).await?;
        let marks: Vec<_> = self.keys.iter().map(|key| (key.clone(), version)).collect();
        let (mark, ()) = timed(async {
            for marked in self.repository.mark_dispatched(marks).await {
                marked?;
            }
            Ok(())
        })
        .await?;
        let settle = |key: &DocumentKey| RowUpdate {
            key: RowKey::new(self.subscription, key.url.clone()),
            round: Round::ZERO,
            effect: RowEffect::Settle { version, present: Present::Yes, not_before: None },
        };
        let settles: Vec<RowUpdate> = self.keys.iter().map(settle).collect();
        let (settle, ()) = timed(async {
            for applied in self.repository.apply_rows(self.epoch, settles).await {
                if applied? != Applied::Done {
                    return Err("a row was not settled".into());
                }
            }
            Ok(())
        })
        .await?;
        Ok([updated, unchanged, spread, mark, settle])
    }

    async fn put(&self, revision: i64, expected: DocumentChange) -> Result<()> {
        let body = Bytes::from(format!(r#"{{"rev":{revision},"pad":"{}"}}"#, "x".repeat(180)));
        let put = |key: &DocumentKey| {
            let content = Content::from_stored(body.clone());
            DocumentWrite::put(key.clone(), Revision::new(revision), content)
        };
        for outcome in self.repository.write_documents(self.keys.iter().map(put).collect()).await {
            let change = outcome?.change;
            if change != expected {
                return Err(
                    format!("a put was {}, not {}", change.as_str(), expected.as_str()).into()
                );
            }
        }
        Ok(())
    }
}
