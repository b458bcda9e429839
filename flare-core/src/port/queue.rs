//! Takes messages; gives each to a receiver, at least once. A queue is a wake-up, never the truth.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::Scan;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{Invalid, LaneId};

/// Moves messages from those that have work to those that do it.
///
/// # Contract
/// - **Q1** At least once: a message whose send returned is received by some receiver, unless it was
///   coalesced, or its queue was deleted or lost. It is received again after its visibility ends
///   without settlement.
/// - **Q2** A message settled as done is never received again.
/// - **Q3** A message settled as retry is not received before its delay has passed, and is
///   received after it.
/// - **Q4** A delayed message is not received before its delay has passed.
/// - **Q5** A received message is invisible to others until its visibility ends; extending counts
///   from the time of the extension.
/// - **Q6** A receipt that is no longer good (visibility ended and another receiver has it, or its
///   queue is gone) settles as [`ErrorKind::Lost`] and changes nothing. The receipt comes back
///   with the error, so that nothing is settled twice by mistake.
/// - **Q7** Where the facts say `coalesces`, a message whose key equals that of one *waiting* in
///   the same queue is absorbed by it; the earlier of the two due times holds. It is never
///   absorbed by one that is in flight.
/// - **Q8** `receive` waits up to `wait` for a first message, returns at once when one arrives or
///   becomes visible, and never returns more than `max`.
/// - **Q9** Sending to, receiving from or counting a queue that was never created, or was
///   deleted, is [`ErrorKind::NotFound`]. Creating one that exists and deleting one that does not
///   are no errors. `list` names the queues that were created and not deleted.
/// - **Q10** Queues are apart: what is sent to one is received from no other.
/// - **Q11** A payload beyond `max_payload` is [`ErrorKind::TooLarge`], a delay beyond `max_delay`
///   or a batch beyond `max_batch` is [`ErrorKind::Invalid`]; nothing of that item (of that
///   batch) is sent.
/// - **Q12** `attempt` is 1 at the first receipt of a message and grows with each further one.
/// - **Q13** Payloads come back byte for byte.
/// - **Q14** `depth` counts waiting, delayed and in-flight messages; where it is approximate it
///   says so and settles to the truth once the queue is idle. One that is ordered and approximate
///   may count what is delayed as ready.
/// - **Q15** Where the facts say `ordered`, messages of one group are received in the order they
///   were sent, and none while an earlier one of its group is in flight.
///
/// Time is the queue's own; nothing here depends on the caller's clock.
#[async_trait]
pub trait Queue: fmt::Debug + Send + Sync + 'static {
    /// What this backend can do; read once, honoured above the port.
    fn facts(&self) -> QueueFacts;

    /// Makes sure the queue exists.
    async fn create(&self, queue: &QueueName) -> Result<()>;

    /// Makes sure the queue and what is in it do not exist.
    async fn delete(&self, queue: &QueueName) -> Result<()>;

    /// All queues there are, in no particular order.
    fn list(&self) -> Scan<'_, QueueName>;

    /// How much is in it.
    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth>;

    /// Sends a batch; one result per message.
    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>>;

    /// Takes up to `request.max` messages.
    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>>;

    /// Keeps messages invisible for `visibility` from now on; one result per receipt.
    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>>;

    /// Settles a batch; one result per receipt. A failed one gives its receipt back.
    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>>;
}

/// What every caller of a [`Queue`] would otherwise write again.
#[async_trait]
pub trait QueueExt: Queue {
    /// Sends any number of messages, in batches the backend accepts, with delays it can hold
    /// (what is due later is sent with the longest delay there is: its receiver sees that it is
    /// not due and waits on).
    async fn send_all(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        let facts = self.facts();
        let mut results = Vec::with_capacity(messages.len());
        let mut messages = messages.into_iter().map(|mut message| {
            message.delay = message.delay.min(facts.max_delay);
            message
        });
        loop {
            let batch: Vec<Outgoing> = messages.by_ref().take(facts.max_batch.max(1)).collect();
            if batch.is_empty() {
                return results;
            }
            results.extend(self.send(queue, batch).await);
        }
    }

    /// Settles any number of receipts, in batches the backend accepts.
    async fn settle_all(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let facts = self.facts();
        let mut results = Vec::with_capacity(settlements.len());
        let mut settlements = settlements.into_iter().map(|(receipt, settlement)| {
            let settlement = match settlement {
                Settlement::Retry { after } => {
                    Settlement::Retry { after: after.min(facts.max_delay) }
                }
                other => other,
            };
            (receipt, settlement)
        });
        loop {
            let batch: Vec<_> = settlements.by_ref().take(facts.max_batch.max(1)).collect();
            if batch.is_empty() {
                return results;
            }
            results.extend(self.settle(queue, batch).await);
        }
    }
}

impl<Q: Queue + ?Sized> QueueExt for Q {}

/// What a queue backend can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueFacts {
    /// Messages per call of send, extend and settle, and the most one receive returns.
    pub max_batch: usize,
    /// Longest delay of a message, and longest delay and visibility of a retry.
    pub max_delay: Duration,
    /// Bytes per payload.
    pub max_payload: usize,
    /// Whether groups are kept in order.
    pub ordered: bool,
    /// Whether coalescing keys are honoured; elsewhere they are ignored.
    pub coalesces: bool,
    /// Slots that suit it, where the host does not say: each is a queue that a node waits for all
    /// the time.
    pub slots: u32,
}

impl QueueFacts {
    /// The facts of an unordered queue without coalescing.
    pub const fn new(max_batch: usize, max_delay: Duration, max_payload: usize) -> Self {
        let (ordered, coalesces, slots) = (false, false, 1_024);
        Self { max_batch, max_delay, max_payload, ordered, coalesces, slots }
    }

    /// Checks a message against the facts (Q11), for backends to use before they send.
    pub fn check(&self, message: &Outgoing) -> Result<()> {
        if message.payload.len() > self.max_payload {
            let detail =
                format!("{} bytes, at most {} fit", message.payload.len(), self.max_payload);
            return Err(Error::new(ErrorKind::TooLarge, "send")
                .with_field("payload")
                .with_detail(detail));
        }
        if message.delay > self.max_delay {
            let detail =
                format!("{:?} is beyond the longest delay of {:?}", message.delay, self.max_delay);
            return Err(Error::new(ErrorKind::Invalid, "send")
                .with_field("delay")
                .with_detail(detail));
        }
        Ok(())
    }

    /// Checks a batch's length against the facts (Q11).
    pub fn check_batch(&self, operation: &'static str, len: usize) -> Result<()> {
        if len > self.max_batch {
            let detail = format!("{len} items, at most {} fit in a batch", self.max_batch);
            return Err(Error::new(ErrorKind::Invalid, operation)
                .with_field("batch")
                .with_detail(detail));
        }
        Ok(())
    }
}

/// A queue, named by what it is for; backends turn it into whatever their system calls queues.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueName {
    /// Documents whose partitions are to be found.
    Partition,
    /// Partitions whose rows are to be written.
    Spread,
    /// Wake-ups for the lanes of one slot.
    Slot(u32),
    /// Wake-ups for one lane.
    Lane(LaneId),
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partition => f.write_str("partition"),
            Self::Spread => f.write_str("spread"),
            Self::Slot(slot) => write!(f, "slot-{slot}"),
            Self::Lane(lane) => write!(f, "lane-{lane}"),
        }
    }
}

impl FromStr for QueueName {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let name = match text.split_once('-') {
            None if text == "partition" => Some(Self::Partition),
            None if text == "spread" => Some(Self::Spread),
            Some(("slot", slot)) => slot.parse().ok().map(Self::Slot),
            Some(("lane", lane)) => lane.parse().ok().map(Self::Lane),
            _ => None,
        };
        name.filter(|name| name.to_string() == text)
            .ok_or_else(|| Invalid::new("queue", format!("{text:?} is no queue of Flare's")))
    }
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// What it says.
    pub payload: Bytes,
    /// Not to be received before this time has passed.
    pub delay: Duration,
    /// Messages with the same key say the same, so one of them waiting is enough.
    pub coalesce: Option<String>,
    /// Messages of one group are kept in order, where the backend can.
    pub group: Option<String>,
}

impl Outgoing {
    /// A message to be received at once.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self { payload: payload.into(), delay: Duration::ZERO, coalesce: None, group: None }
    }

    /// The same message, due after `delay`.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same message, absorbed by a waiting one with the same key.
    #[must_use]
    pub fn coalesce(mut self, key: impl Into<String>) -> Self {
        self.coalesce = Some(key.into());
        self
    }

    /// The same message, in order within `group`.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }
}

/// What to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receive {
    /// At most this many messages (and no more than `max_batch`).
    pub max: usize,
    /// How long they are the receiver's alone.
    pub visibility: Duration,
    /// How long to wait for the first one.
    pub wait: Duration,
}

impl Receive {
    /// Up to `max` messages, the receiver's alone for `visibility`, without waiting.
    pub const fn new(max: usize, visibility: Duration) -> Self {
        Self { max, visibility, wait: Duration::ZERO }
    }

    /// The same, waiting up to `wait` for the first message.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// A message that was received.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// What it says.
    pub payload: Bytes,
    /// How often it has been received, this time included.
    pub attempt: u32,
    /// What settles it.
    pub receipt: Receipt,
}

impl Incoming {
    /// A message as a backend hands it out.
    pub fn new(payload: Bytes, attempt: u32, receipt: Receipt) -> Self {
        Self { payload, attempt, receipt }
    }
}

/// The right to settle one received message, once: settling consumes it.
#[derive(PartialEq, Eq, Hash)]
pub struct Receipt(Box<str>);

impl Receipt {
    /// A receipt a backend recognises by `token`.
    pub fn new(token: impl Into<Box<str>>) -> Self {
        Self(token.into())
    }

    /// The backend's token.
    pub fn token(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt(…)")
    }
}

/// What becomes of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// The work is done: never again.
    Done,
    /// Give it to a receiver after this time.
    Retry {
        /// How long it stays invisible.
        after: Duration,
    },
}

/// A receipt that could not be settled, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Unsettled {
    /// Why not.
    #[source]
    pub error: Error,
    /// The receipt, to try again with.
    pub receipt: Receipt,
}

impl Unsettled {
    /// A receipt that could not be settled because of `error`.
    pub fn new(error: Error, receipt: Receipt) -> Self {
        Self { error, receipt }
    }
}

/// How much is in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueDepth {
    /// Messages that could be received now.
    pub ready: u64,
    /// Messages whose delay has not passed.
    pub delayed: u64,
    /// Messages received and not settled.
    pub in_flight: u64,
    /// Whether the figures may lag behind.
    pub approximate: bool,
}

impl QueueDepth {
    /// Exact figures.
    pub const fn exact(ready: u64, delayed: u64, in_flight: u64) -> Self {
        Self { ready, delayed, in_flight, approximate: false }
    }
}
