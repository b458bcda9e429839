//! Takes a queue under trial; gives what its clauses need again and again. Polls without waiting,
//! tick by tick, so that only the clauses about waiting depend on waiting.

use std::time::Duration;

use bytes::Bytes;
use flare_core::model::{LaneId, SubscriptionId};
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueExt, QueueName, Receipt, Receive, Settlement,
};
use flare_core::{Error, ErrorKind};

use crate::Subject;

/// Ticks after which something that must come is given up: services are slow, never that slow.
pub(super) const PATIENCE: u32 = 10;

/// Far beyond every wait of a clause.
pub(super) const LONG: u32 = 60;

/// The queue most clauses use.
pub(super) const QUEUE: QueueName = QueueName::Slot(1);

/// A lane's queue.
pub(super) fn lane(shard: u16) -> QueueName {
    QueueName::Lane(LaneId::new(SubscriptionId::from_bytes([7; 16]), shard))
}

/// What the clauses ask of a subject beyond the port's own calls.
impl Subject<dyn Queue> {
    /// A long time that is still within what the queue can hold.
    pub(super) fn long(&self) -> Duration {
        self.ticks(LONG).min(self.facts().max_delay)
    }

    /// Creates [`QUEUE`].
    pub(super) async fn queue(&self) -> QueueName {
        self.make(&QUEUE).await;
        QUEUE
    }

    pub(super) async fn make(&self, queue: &QueueName) {
        self.create(queue).await.expect("a queue can be created");
    }

    /// Sends messages that must be taken.
    pub(super) async fn put(
        &self,
        queue: &QueueName,
        messages: impl IntoIterator<Item = Outgoing>,
    ) {
        let messages: Vec<_> = messages.into_iter().collect();
        let count = messages.len();
        let results = self.port().send_all(queue, messages).await;
        assert_eq!(results.len(), count, "one result per message");
        for result in results {
            result.expect("a message can be sent");
        }
    }

    /// What is there to receive right now, at most `max`.
    pub(super) async fn poll(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Duration,
    ) -> Vec<Incoming> {
        let receive = self.receive(queue, Receive::new(max, visibility));
        let received = self.within(PATIENCE, receive).await;
        received.expect("receive without waiting returns").expect("an existing queue can be read")
    }

    /// The next message, which must come within [`PATIENCE`].
    pub(super) async fn next(&self, queue: &QueueName, visibility: Duration) -> Incoming {
        self.next_within(queue, visibility, PATIENCE).await
    }

    pub(super) async fn next_within(
        &self,
        queue: &QueueName,
        visibility: Duration,
        ticks: u32,
    ) -> Incoming {
        for _ in 0..=ticks {
            if let Some(message) = self.poll(queue, 1, visibility).await.pop() {
                return message;
            }
            self.pass_ticks(1).await;
        }
        panic!("no message came within {ticks} ticks")
    }

    /// Exactly `count` messages, which must come within [`PATIENCE`] since the one before.
    pub(super) async fn collect(
        &self,
        queue: &QueueName,
        count: usize,
        visibility: Duration,
    ) -> Vec<Incoming> {
        let mut messages = Vec::with_capacity(count);
        let mut idle = 0;
        while messages.len() < count {
            let max = (count - messages.len()).min(self.facts().max_batch);
            let more = self.poll(queue, max, visibility).await;
            if more.is_empty() {
                assert!(idle < PATIENCE, "only {} of {count} messages came", messages.len());
                idle += 1;
                self.pass_ticks(1).await;
            } else {
                idle = 0;
                messages.extend(more);
            }
        }
        messages
    }

    /// Nothing must come, now and for `ticks`.
    pub(super) async fn nothing_for(&self, queue: &QueueName, ticks: u32) {
        for tick in 0..=ticks {
            if tick > 0 {
                self.pass_ticks(1).await;
            }
            let messages = self.poll(queue, 1, self.long()).await;
            assert!(messages.is_empty(), "received {messages:?} after {tick} ticks");
        }
    }

    /// Settles a receipt that must still be good.
    pub(super) async fn finish(&self, queue: &QueueName, receipt: Receipt, to: Settlement) {
        let mut results = self.settle(queue, vec![(receipt, to)]).await;
        assert_eq!(results.len(), 1, "one result per receipt");
        results.remove(0).expect("a good receipt can be settled");
    }

    /// Settles a receipt that must not be good any more, and must come back.
    pub(super) async fn refused(&self, queue: &QueueName, receipt: Receipt, to: Settlement) {
        let token = receipt.token().to_owned();
        let mut results = self.settle(queue, vec![(receipt, to)]).await;
        assert_eq!(results.len(), 1, "one result per receipt");
        let unsettled = results.remove(0).expect_err("a stale receipt settles nothing");
        assert_eq!(unsettled.error.kind(), ErrorKind::Lost, "{}", unsettled.error);
        assert_eq!(unsettled.receipt.token(), token, "the receipt comes back");
    }
}

/// Gives a message back to be received again at once.
pub(super) const AGAIN: Settlement = Settlement::Retry { after: Duration::ZERO };

/// Numbered messages.
pub(super) fn numbered(count: usize) -> impl Iterator<Item = Outgoing> {
    (0..count).map(|number| Outgoing::new(number.to_string()))
}

/// What messages say, sorted: most queues promise no order.
pub(super) fn payloads(messages: &[Incoming]) -> Vec<Bytes> {
    let mut payloads: Vec<_> = messages.iter().map(|message| message.payload.clone()).collect();
    payloads.sort();
    payloads
}

pub(super) fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}
