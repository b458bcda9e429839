//! Takes how much to receive and how long to wait; gives messages, by as many long polls as the wait
//! is long.

use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use flare_core::Result;
use flare_core::port::{Incoming, Queue, QueueName, Receipt, Receive};

use super::{LONGEST_VISIBILITY, SqsQueue, seconds};
use crate::{codec, error};

const OPERATION: &str = "receive";

/// The longest wait of one request, in seconds.
const LONGEST_POLL: i32 = 20;

impl SqsQueue {
    pub(super) async fn receive_some(
        &self,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        let max = i32::try_from(request.max.min(self.facts().max_batch)).unwrap_or(i32::MAX);
        let visibility = request.visibility.min(LONGEST_VISIBILITY);
        let mut left = seconds(request.wait);
        loop {
            let url = self.connection.url(OPERATION, queue).await?;
            if max == 0 {
                return Ok(Vec::new());
            }
            let wait = left.min(LONGEST_POLL);
            let messages = self.poll(queue, &url, max, visibility, wait).await?;
            left -= wait;
            if !messages.is_empty() || left == 0 {
                let now = self.clock.monotonic();
                return Ok(messages.into_iter().map(|it| self.take(it, now, visibility)).collect());
            }
        }
    }

    async fn poll(
        &self,
        queue: &QueueName,
        url: &str,
        max: i32,
        visibility: Duration,
        wait: i32,
    ) -> Result<Vec<Message>> {
        let poll = self.connection.client.receive_message().queue_url(url);
        let poll = poll
            .max_number_of_messages(max)
            .visibility_timeout(seconds(visibility))
            .wait_time_seconds(wait)
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .customize()
            .config_override(
                self.connection.patience(Duration::from_secs(wait.unsigned_abs().into())),
            );
        let polled = poll.send().await.map_err(|error| error::from_sdk(OPERATION, &error));
        let polled = polled.map_err(|error| self.connection.noticed(queue, error))?;
        Ok(polled.messages.unwrap_or_default())
    }

    fn take(&self, message: Message, now: Duration, visibility: Duration) -> Incoming {
        let attempt = attempt(&message);
        let token = message.receipt_handle.unwrap_or_default();
        self.held.hold(&token, now, visibility);
        let payload = codec::decode(message.body.as_deref().unwrap_or_default());
        Incoming::new(payload, attempt, Receipt::new(token))
    }
}

/// How often a message has been received; a server that does not say so is believed to give it out
/// for the first time.
fn attempt(message: &Message) -> u32 {
    let attributes = message.attributes.as_ref();
    let count =
        attributes.and_then(|it| it.get(&MessageSystemAttributeName::ApproximateReceiveCount));
    count.and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}
