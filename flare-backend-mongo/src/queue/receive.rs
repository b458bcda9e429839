//! Takes a queue's name; gives messages that are due and nobody else's from now on.

use std::time::Duration;

use flare_core::Result;
use flare_core::port::{Incoming, QueueName};
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};

use super::claim::{Candidate, Claim};
use super::{MongoQueue, missing};
use crate::error;
use crate::record::{self, Record};

const OPERATION: &str = "receive";
/// A receive stops looking for more once it has this many bytes.
const MOST_BYTES: usize = 16 << 20;
/// How often somebody else may be faster before there is nothing for us.
const MOST_ROUNDS: usize = 10;

impl MongoQueue {
    /// Takes up to `max` of what is there now.
    pub(super) async fn take(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Incoming>> {
        for _ in 0..MOST_ROUNDS {
            let candidates = self.due(queue, max).await?;
            if candidates.is_empty() || max == 0 {
                break;
            }
            let (connection, messages) = (self.connection.clone(), self.messages.clone());
            let claim = Claim { connection, messages, candidates, visibility };
            let claimed = claim.make().await?;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
        }
        Ok(Vec::new())
    }

    /// Reads what is due, the earliest first, and whether the queue is there at all.
    async fn due(&self, queue: &QueueName, max: usize) -> Result<Vec<Candidate>> {
        let found = self.queues.aggregate(self.due_pipeline(queue, max));
        // One more than there can be, so that the answer says that there are no more.
        let found = found.batch_size(u32::try_from(max).unwrap_or(u32::MAX).saturating_add(1));
        self.connection
            .within(OPERATION, async {
                let mut found = self.connection.run(OPERATION, found).await?;
                let _place = self.connection.place(OPERATION).await?;
                let mut candidates = Vec::new();
                let (mut exists, mut bytes) = (false, 0);
                while bytes < MOST_BYTES {
                    let next = found.try_next().await;
                    let next = next.map_err(|error| error::from_driver(OPERATION, error))?;
                    let Some(next) = next else { break };
                    exists = true;
                    if let Some(message) = Record::new(OPERATION, &next).inner_if_any("message")? {
                        let candidate = Candidate::read(&message)?;
                        bytes += candidate.payload.len();
                        candidates.push(candidate);
                    }
                }
                if exists { Ok(candidates) } else { Err(missing(OPERATION, queue)) }
            })
            .await
    }

    fn due_pipeline(&self, queue: &QueueName, max: usize) -> [Document; 3] {
        let name = queue.to_string();
        let limit = i64::try_from(max).unwrap_or(i64::MAX).max(1);
        [
            doc! { "$match": { "_id": &name } },
            doc! { "$lookup": {
                "from": self.messages.name(),
                "pipeline": [
                    { "$match": { "queue": &name, "$expr": { "$lte": ["$at", record::now()] } } },
                    { "$sort": { "at": 1 } },
                    { "$limit": limit },
                    { "$project": { "at": 1, "payload": 1, "attempt": 1 } },
                ],
                "as": "message",
            } },
            doc! { "$unwind": { "path": "$message", "preserveNullAndEmptyArrays": true } },
        ]
    }
}
