//! Takes messages that were read as due; gives those that are ours from now on. Goes on when
//! whoever asked is gone meanwhile, and then gives back what it took.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use flare_core::port::{Incoming, Receipt};
use flare_core::{Error, ErrorKind, Result};
use futures::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};
use tokio::sync::oneshot;
use tracing::debug;

use super::after;
use crate::BACKEND;
use crate::connection::Connection;
use crate::record::Record;

const OPERATION: &str = "receive";

/// A message that is due, as it was read.
#[derive(Debug)]
pub(super) struct Candidate {
    id: ObjectId,
    at: i64,
    attempt: u32,
    pub(super) payload: Bytes,
}

impl Candidate {
    pub(super) fn read(message: &Record<'_>) -> Result<Self> {
        let payload = message.bytes_if_any("payload")?;
        Ok(Self {
            id: message.object_id("_id")?,
            at: message.number("at")?,
            attempt: message.small("attempt")?,
            payload: payload.map(Bytes::copy_from_slice).unwrap_or_default(),
        })
    }
}

/// One attempt to take messages.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) connection: Connection,
    pub(super) messages: Collection<Document>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) visibility: Duration,
}

impl Claim {
    /// Makes the candidates ours, all but those that somebody else took meanwhile.
    pub(super) async fn make(self) -> Result<Vec<Incoming>> {
        let (give, given) = oneshot::channel();
        // A task of its own: nobody may take messages and go without settling them.
        tokio::spawn(async move {
            let token = ObjectId::new();
            let ours = self.take(token).await;
            // It may have succeeded all the same.
            let failed = ours.is_err();
            let ours = ours.map(|ours| self.received(ours.as_ref(), token));
            if give.send(ours).is_err() || failed {
                self.give_back(token).await;
            }
        });
        given.await.unwrap_or_else(|_| {
            let error = Error::new(ErrorKind::Unavailable, OPERATION).with_backend(BACKEND);
            Err(error.with_detail("the runtime is ending"))
        })
    }

    /// Gives which are ours, or none to say that all are.
    async fn take(&self, token: ObjectId) -> Result<Option<HashSet<ObjectId>>> {
        // Whatever was done to one since we read it moved its time beyond the time of reading.
        let newest = self.candidates.iter().map(|it| it.at).max().unwrap_or(i64::MIN);
        let unmoved = doc! { "_id": { "$in": self.ids() }, "at": { "$lte": newest } };
        let pipeline = vec![
            doc! { "$set": {
                "at": after(self.visibility),
                "attempt": { "$add": ["$attempt", 1] },
                "receipt": token,
            } },
            doc! { "$unset": "absorbs" },
        ];
        let claim = self.messages.update_many(unmoved, pipeline);
        let claimed = self.connection.run(OPERATION, claim).await?.matched_count;
        match usize::try_from(claimed) {
            Ok(0) => Ok(Some(HashSet::new())),
            Ok(claimed) if claimed == self.candidates.len() => Ok(None),
            _ => self.held_under(token).await.map(Some),
        }
    }

    /// Which of the messages are out under a token.
    async fn held_under(&self, token: ObjectId) -> Result<HashSet<ObjectId>> {
        let held = self.messages.find(doc! { "_id": { "$in": self.ids() }, "receipt": token });
        let held = held.projection(doc! { "_id": 1 });
        let read = async { held.await?.try_collect::<Vec<Document>>().await };
        let held = self.connection.run(OPERATION, Box::pin(read)).await?;
        Ok(held.iter().filter_map(|it| it.get_object_id("_id").ok()).collect())
    }

    fn received(&self, ours: Option<&HashSet<ObjectId>>, token: ObjectId) -> Vec<Incoming> {
        let ours = |it: &&Candidate| ours.is_none_or(|ours| ours.contains(&it.id));
        let receive = |it: &Candidate| {
            let receipt = Receipt::new(format!("{}:{token}", it.id));
            Incoming::new(it.payload.clone(), it.attempt.saturating_add(1), receipt)
        };
        self.candidates.iter().filter(ours).map(receive).collect()
    }

    async fn give_back(&self, token: ObjectId) {
        let ours = doc! { "_id": { "$in": self.ids() }, "receipt": token };
        let pipeline =
            vec![doc! { "$set": { "at": after(Duration::ZERO) } }, doc! { "$unset": "receipt" }];
        let back = self.messages.update_many(ours, pipeline);
        if let Err(error) = self.connection.run(OPERATION, back).await {
            // They come back when their visibility ends.
            debug!(%error, "could not give messages back that nobody waits for any more");
        }
    }

    fn ids(&self) -> Vec<Bson> {
        self.candidates.iter().map(|it| it.id.into()).collect()
    }
}
