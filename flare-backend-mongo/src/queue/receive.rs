//! Takes a queue's name; gives messages that are due and nobody else's from now on.

use std::time::Duration;

use flare_core::Result;
use flare_core::port::{Incoming, QueueName};
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};
use tracing::warn;

use super::claim::{Candidate, Claim};
use super::{MongoQueue, missing};
use crate::error;
use crate::record::{self, Record};

const OPERATION: &str = "receive";
/// A receive stops looking for more once it has this many bytes.
const MOST_BYTES: usize = 16 << 20;
/// How often somebody else may be faster before there is nothing for us.
const MOST_ROUNDS: usize = 10;

/// What is due.
#[derive(Debug, Default)]
struct Due {
    candidates: Vec<Candidate>,
    /// The ids of messages that cannot be read.
    unreadable: Vec<Bson>,
}

impl MongoQueue {
    /// Takes up to `max` of what is there now.
    pub(super) async fn take(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Incoming>> {
        for _ in 0..MOST_ROUNDS {
            let Due { candidates, unreadable } = self.due(queue, max).await?;
            let dropped = self.drop_unreadable(queue, unreadable).await?;
            if max == 0 || (candidates.is_empty() && !dropped) {
                break;
            }
            if candidates.is_empty() {
                continue;
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
    async fn due(&self, queue: &QueueName, max: usize) -> Result<Due> {
        let found = self.queues.aggregate(self.due_pipeline(queue, max));
        // One more than there can be, so that the answer says that there are no more.
        let found = found.batch_size(u32::try_from(max).unwrap_or(u32::MAX).saturating_add(1));
        self.connection
            .within(OPERATION, async {
                let mut found = self.connection.run(OPERATION, found).await?;
                let _place = self.connection.place(OPERATION).await?;
                let mut due = Due::default();
                let (mut exists, mut bytes) = (false, 0);
                while bytes < MOST_BYTES {
                    let next = found.try_next().await;
                    let next = next.map_err(|error| error::from_driver(OPERATION, error))?;
                    let Some(next) = next else { break };
                    exists = true;
                    if let Some(message) = Record::new(OPERATION, &next).inner_if_any("message")? {
                        match Candidate::read(&message) {
                            Ok(candidate) => {
                                bytes += candidate.payload.len();
                                due.candidates.push(candidate);
                            }
                            Err(_) => due.unreadable.extend(message.any("_id").cloned()),
                        }
                    }
                }
                if exists { Ok(due) } else { Err(missing(OPERATION, queue)) }
            })
            .await
    }

    /// Removes messages that nobody can ever read: else they would be read first for ever. What they
    /// were about the stores know. Tells whether there were any.
    async fn drop_unreadable(&self, queue: &QueueName, messages: Vec<Bson>) -> Result<bool> {
        if messages.is_empty() {
            return Ok(false);
        }
        let count = messages.len();
        let dropped = self.messages.delete_many(doc! { "_id": { "$in": messages } });
        self.connection.run(OPERATION, dropped).await?;
        warn!(%queue, messages = count, "dropped messages that cannot be read");
        Ok(true)
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
