//! Takes how much to receive and how long to wait; gives messages that are due, by as many long polls as
//! the wait is long. Puts off what FIFO queues give out before its time.

use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as Name};
use flare_core::Result;
use flare_core::port::{Incoming, Queue, QueueName, Receipt, Receive};

use super::due::{AnswerTime, Times};
use super::{LONGEST_VISIBILITY, SqsQueue, seconds};
use crate::codec::{self, Body};
use crate::error;

const OPERATION: &str = "receive";

/// The longest wait of one request, in seconds.
const LONGEST_POLL: i32 = 20;

/// What one poll brought: messages, and the time at which the server says that it gave them out.
struct Polled {
    messages: Vec<Message>,
    answered: Option<u64>,
}

/// Messages that are due, and receipts of others with the time until they are.
#[derive(Default)]
struct Sorted {
    due: Vec<Incoming>,
    early: Vec<(Receipt, Duration)>,
}

impl SqsQueue {
    pub(super) async fn receive_some(
        &self,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        let max = i32::try_from(request.max.min(self.facts().max_batch)).unwrap_or(i32::MAX);
        let visibility = request.visibility.min(LONGEST_VISIBILITY);
        let mut left = request.wait;
        loop {
            let url = self.connection.url(OPERATION, queue).await?;
            if max == 0 {
                return Ok(Vec::new());
            }
            let wait = seconds(left).min(LONGEST_POLL);
            let asked = self.clock.monotonic();
            let polled = self.poll(queue, &url, max, visibility, wait).await?;
            let now = self.clock.monotonic();
            let Sorted { due, early } = self.sort(queue, polled, now, visibility);
            let put_off = self.put_off(queue, &early).await;
            if !due.is_empty() {
                // What could not be put off comes back by itself, and is told to be early then, too.
                return Ok(due);
            }
            put_off?;
            let mut passed = now.saturating_sub(asked);
            if early.is_empty() {
                passed = passed.max(whole(wait));
                if passed >= left {
                    return Ok(due);
                }
            }
            left = left.saturating_sub(passed);
        }
    }

    async fn poll(
        &self,
        queue: &QueueName,
        url: &str,
        max: i32,
        visibility: Duration,
        wait: i32,
    ) -> Result<Polled> {
        let mut poll = self.connection.client.receive_message().queue_url(url);
        poll = poll
            .max_number_of_messages(max)
            .visibility_timeout(seconds(visibility))
            .wait_time_seconds(wait)
            .message_system_attribute_names(Name::ApproximateReceiveCount);
        let fifo = self.connection.names.is_fifo(queue);
        if fifo {
            // The id makes a repetition of the request give the same messages, not those behind them.
            poll = poll
                .receive_request_attempt_id(self.ids.next())
                .message_system_attribute_names(Name::SentTimestamp)
                .message_system_attribute_names(Name::ApproximateFirstReceiveTimestamp)
                .message_system_attribute_names(Name::MessageGroupId);
        }
        let answer_time = AnswerTime::default();
        let patience = self.connection.patience(whole(wait));
        let mut poll = poll.customize().config_override(patience);
        if fifo {
            poll = poll.interceptor(answer_time.clone());
        }
        let polled = poll.send().await.map_err(|error| error::from_sdk(OPERATION, &error));
        let polled = polled.map_err(|error| self.connection.noticed(queue, error))?;
        let messages = polled.messages.unwrap_or_default();
        Ok(Polled { messages, answered: answer_time.get() })
    }

    /// Tells what is due from what is early, and takes the former.
    fn sort(
        &self,
        queue: &QueueName,
        polled: Polled,
        now: Duration,
        visibility: Duration,
    ) -> Sorted {
        let mut sorted = Sorted::default();
        if !self.connection.names.is_fifo(queue) {
            let take = |message| self.take(message, now, visibility);
            sorted.due = polled.messages.into_iter().map(take).collect();
            return sorted;
        }
        let mut held_back: Vec<(String, Duration)> = Vec::new();
        for message in polled.messages {
            let group = group_of(&message);
            let of_group = |(held, left): &(String, Duration)| (*held == group).then_some(*left);
            let behind = held_back.iter().find_map(of_group);
            let delay = codec::decode(message.body.as_deref().unwrap_or_default()).delay;
            match behind.or_else(|| Times::of(&message).left_of(delay, polled.answered)) {
                // Nothing overtakes an early message of its group.
                Some(left) => {
                    held_back.push((group, left));
                    let token = message.receipt_handle.unwrap_or_default();
                    sorted.early.push((Receipt::new(token), left));
                }
                None => sorted.due.push(self.take(message, now, visibility)),
            }
        }
        sorted
    }

    /// Hides early messages until they are due.
    async fn put_off(&self, queue: &QueueName, early: &[(Receipt, Duration)]) -> Result<()> {
        let items: Vec<_> = early
            .iter()
            .enumerate()
            .map(|(place, (receipt, left))| (place, receipt, *left))
            .collect();
        self.change(OPERATION, queue, &items).await.map(drop)
    }

    fn take(&self, message: Message, now: Duration, visibility: Duration) -> Incoming {
        let times = Times::of(&message);
        let Body { payload, delay } = codec::decode(message.body.as_deref().unwrap_or_default());
        let token = message.receipt_handle.unwrap_or_default();
        self.held.hold(&token, now, visibility);
        Incoming::new(payload, times.attempt(delay), Receipt::new(token))
    }
}

fn group_of(message: &Message) -> String {
    let attributes = message.attributes.as_ref();
    attributes.and_then(|it| it.get(&Name::MessageGroupId)).cloned().unwrap_or_default()
}

fn whole(seconds: i32) -> Duration {
    Duration::from_secs(seconds.unsigned_abs().into())
}
