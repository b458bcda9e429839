//! Takes the kind of a queue; gives SQS's rule that moves messages nobody settles to the queue of dead
//! letters, which is made first. Flare never reads it: its stores are the truth.

use std::sync::PoisonError;

use aws_sdk_sqs::types::QueueAttributeName;
use flare_core::{ErrorKind, Result};

use crate::client::{Connection, silent};
use crate::error;

/// How long SQS keeps a dead letter: five days, in seconds. Together with the day in its first queue
/// that is less than a tombstone is kept, so whoever moves dead letters back tells nobody old news.
const RETENTION: &str = "432000";

impl Connection {
    /// What a queue's attribute `RedrivePolicy` says.
    pub(crate) async fn redrive_policy(
        &self,
        operation: &'static str,
        fifo: bool,
    ) -> Result<String> {
        let known = self.dead_letters().get(&fifo).cloned();
        let arn = match known {
            Some(arn) => arn,
            None => self.make_dead_letters(operation, fifo).await?,
        };
        let most = self.max_receives;
        Ok(format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{most}}}"#))
    }

    /// Forgets where dead letters go: somebody may have deleted those queues.
    pub(crate) fn forget_dead_letters(&self) {
        self.dead_letters().clear();
    }

    /// Makes sure that there is a queue for dead letters, and that it is ours.
    async fn make_dead_letters(&self, operation: &'static str, fifo: bool) -> Result<String> {
        let name = self.names.of_dead_letters(fifo);
        let url = match self.find(operation, &name).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let attributes = [
                    (QueueAttributeName::MessageRetentionPeriod, RETENTION.to_owned()),
                    (QueueAttributeName::MaximumMessageSize, self.message_limit.to_string()),
                ];
                match self.create(operation, &name, fifo, attributes.into(), None).await {
                    // Somebody with other settings was faster.
                    Err(error) if error.kind() == ErrorKind::Conflict => {
                        self.find(operation, &name).await?
                    }
                    made => made?,
                }
            }
            found => found?,
        };
        let request = self.client.get_queue_attributes().queue_url(url);
        let asked = request.attribute_names(QueueAttributeName::QueueArn).send().await;
        let asked = asked.map_err(|error| error::from_sdk(operation, &error))?;
        let arn = asked.attributes.and_then(|mut it| it.remove(&QueueAttributeName::QueueArn));
        let arn = arn.ok_or_else(|| silent(operation, "the ARN of a queue"))?;
        self.dead_letters().insert(fifo, arn.clone());
        Ok(arn)
    }

    fn dead_letters(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<bool, String>> {
        self.dead_letters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
