//! Takes requests as they leave for SQS, repetitions included; gives how many of each kind have left. AWS
//! bills requests, so this is what the bill follows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_sqs::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_sqs::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sqs::error::BoxError;

/// How many requests have left for SQS, by kind. AWS counts a request of more than 64 KiB several times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqsRequests {
    /// Batches of messages sent.
    pub send: u64,
    /// Polls, also those that brought nothing.
    pub receive: u64,
    /// Batches of messages settled as done.
    pub delete: u64,
    /// Batches of messages extended, retried or put off.
    pub change: u64,
    /// About queues: created, found, listed, counted, deleted.
    pub other: u64,
}

impl SqsRequests {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.send + self.receive + self.delete + self.change + self.other
    }
}

/// Counts; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    send: AtomicU64,
    receive: AtomicU64,
    delete: AtomicU64,
    change: AtomicU64,
    other: AtomicU64,
}

impl Counter {
    pub(crate) fn read(&self) -> SqsRequests {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SqsRequests {
            send: read(&self.0.send),
            receive: read(&self.0.receive),
            delete: read(&self.0.delete),
            change: read(&self.0.change),
            other: read(&self.0.other),
        }
    }

    /// Counts a request by what it asks for, as its header says: `AmazonSQS.SendMessageBatch`.
    fn count(&self, target: &str) {
        let count = match target.rsplit('.').next().unwrap_or_default() {
            "SendMessage" | "SendMessageBatch" => &self.0.send,
            "ReceiveMessage" => &self.0.receive,
            "DeleteMessage" | "DeleteMessageBatch" => &self.0.delete,
            "ChangeMessageVisibility" | "ChangeMessageVisibilityBatch" => &self.0.change,
            _ => &self.0.other,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Intercept for Counter {
    fn name(&self) -> &'static str {
        "flare-request-counter"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        self.count(context.request().headers().get("x-amz-target").unwrap_or_default());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_what_they_ask_for() {
        let counter = Counter::default();
        for target in ["SendMessageBatch", "ReceiveMessage", "ReceiveMessage", "ListQueues"] {
            counter.clone().count(&format!("AmazonSQS.{target}"));
        }
        counter.count("AmazonSQS.DeleteMessageBatch");
        counter.count("AmazonSQS.ChangeMessageVisibilityBatch");
        counter.count("");
        let read = counter.read();
        let expected = SqsRequests { send: 1, receive: 2, delete: 1, change: 1, other: 2 };
        assert_eq!((read, read.total()), (expected, 7));
    }
}
