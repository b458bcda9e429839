//! A queue that knows what is done: a message is its receiver's for a time, groups are in order, and what is
//! left is put aside.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::{Checkpoint, Timestamp};
use flare_core::port::{
    Outgoing, Receipt, Source, SourceFacts, SourceLag, SourceMessage, SourceSettlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

use super::{Messages, Topic, full, lost, numbers, settle_each};
use crate::{BACKEND, lock};

/// How long a message is its receiver's.
const KEPT_FOR: Duration = Duration::from_secs(30);

/// The messages of a queue.
#[derive(Debug, Default)]
pub(super) struct QueuedMessages {
    /// Numbers messages, receipts and sources: each is used once.
    last: u64,
    messages: BTreeMap<u64, QueuedMessage>,
    left: Vec<Bytes>,
}

#[derive(Debug)]
struct QueuedMessage {
    body: Bytes,
    group: Option<String>,
    sent_at: Timestamp,
    held: Option<HeldMessage>,
}

/// Whose a message is.
#[derive(Debug, Clone, Copy)]
struct HeldMessage {
    receipt: u64,
    source: u64,
    until: Timestamp,
}

impl QueuedMessages {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn publish(&mut self, message: Outgoing, now: Timestamp) -> Result<()> {
        full(self.messages.len() + self.left.len())?;
        let number = self.number();
        let (body, group) = (message.payload, message.group);
        self.messages.insert(number, QueuedMessage { body, group, sent_at: now, held: None });
        Ok(())
    }

    pub(super) fn left(&self) -> &[Bytes] {
        &self.left
    }

    fn receive(&mut self, source: u64, max: usize, now: Timestamp) -> Vec<SourceMessage> {
        // What comes after a message of its group that is under way waits for it.
        let mut waiting: HashSet<&str> = HashSet::new();
        let mut free = Vec::new();
        for (number, message) in &self.messages {
            let held = message.held.is_some_and(|held| held.until > now);
            match &message.group {
                Some(group) if held => {
                    waiting.insert(group);
                }
                Some(group) if waiting.contains(group.as_str()) => {}
                _ if held => {}
                _ => free.push(*number),
            }
            if free.len() == max {
                break;
            }
        }
        let mut received = Vec::with_capacity(free.len());
        for number in free {
            let receipt = self.number();
            let Some(message) = self.messages.get_mut(&number) else { continue };
            message.held = Some(HeldMessage { receipt, source, until: now + KEPT_FOR });
            let token = Receipt::new(format!("{number}:{receipt}"));
            let given = SourceMessage::new(number.to_string(), message.body.clone(), token);
            received.push(given.sent_at(message.sent_at));
        }
        received
    }

    /// The message a receipt is good for: until another has it, a late one still is.
    fn held(&mut self, operation: &'static str, receipt: &Receipt) -> Result<u64> {
        let [number, receipt] = numbers(receipt).ok_or_else(|| lost(operation))?;
        let held = self.messages.get(&number).and_then(|message| message.held);
        held.filter(|held| held.receipt == receipt).map(|_| number).ok_or_else(|| lost(operation))
    }

    fn keep(&mut self, receipt: &Receipt, until: Timestamp) -> Result<()> {
        let number = self.held("keep", receipt)?;
        if let Some(held) = self.messages.get_mut(&number).and_then(|message| message.held.as_mut())
        {
            held.until = until;
        }
        Ok(())
    }

    fn settle(&mut self, receipt: &Receipt, to: SourceSettlement) -> Result<()> {
        let number = self.held("settle", receipt)?;
        match to {
            SourceSettlement::Done => {
                self.messages.remove(&number);
            }
            SourceSettlement::Leave => {
                self.left.extend(self.messages.remove(&number).map(|message| message.body));
            }
            SourceSettlement::Return => {
                if let Some(message) = self.messages.get_mut(&number) {
                    message.held = None;
                }
            }
        }
        Ok(())
    }

    fn give_back(&mut self, source: u64) {
        for message in self.messages.values_mut() {
            message.held = message.held.filter(|held| held.source != source);
        }
    }

    /// When a message next becomes free by itself.
    fn next_free(&self) -> Option<Timestamp> {
        self.messages.values().filter_map(|message| message.held).map(|held| held.until).min()
    }
}

/// A consumer's hold on a queue.
#[derive(Debug)]
pub(super) struct MemoryQueueSource {
    topic: Arc<Topic>,
    number: u64,
    closed: AtomicBool,
}

impl MemoryQueueSource {
    pub(super) fn open(topic: Arc<Topic>) -> Self {
        let number = with_queue(&topic, QueuedMessages::number);
        Self { topic, number, closed: AtomicBool::new(false) }
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Lost, operation)
                .with_backend(BACKEND)
                .with_detail("the source is closed"));
        }
        self.topic.away.check(operation)
    }

    fn end(&self) {
        self.closed.store(true, Ordering::SeqCst);
        with_queue(&self.topic, |queue| queue.give_back(self.number));
        self.topic.changed.notify_waiters();
    }
}

impl Drop for MemoryQueueSource {
    fn drop(&mut self) {
        self.end();
    }
}

/// Works on the messages of a topic that is a queue; a topic never becomes another kind.
fn with_queue<T: Default>(topic: &Topic, work: impl FnOnce(&mut QueuedMessages) -> T) -> T {
    match &mut *lock(&topic.messages) {
        Messages::Queue(queue) => work(queue),
        Messages::Stream(_) => T::default(),
    }
}

#[async_trait]
impl Source for MemoryQueueSource {
    fn facts(&self) -> SourceFacts {
        let mut facts = SourceFacts::queue(100);
        facts.ordered = true;
        facts.kept_for = Some(KEPT_FOR);
        facts
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        self.check("receive")?;
        let max = max.min(self.facts().max_batch);
        let take = |messages: &mut Messages, now| match messages {
            Messages::Queue(queue) => Ok(queue.receive(self.number, max, now)),
            Messages::Stream(_) => Ok(Vec::new()),
        };
        let next = |messages: &Messages| match messages {
            Messages::Queue(queue) => queue.next_free(),
            Messages::Stream(_) => None,
        };
        self.topic.receive(self.topic.time.now() + wait, take, next).await
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let until = self.topic.time.now() + KEPT_FOR;
        let keep = |receipt| {
            self.check("keep")?;
            let mut kept = Ok(());
            with_queue(&self.topic, |queue| kept = queue.keep(receipt, until));
            kept
        };
        receipts.into_iter().map(keep).collect()
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let results = settle_each(settlements, |receipt, to| {
            self.check("settle")?;
            let mut settled = Ok(());
            with_queue(&self.topic, |queue| settled = queue.settle(receipt, to));
            settled
        });
        self.topic.changed.notify_waiters();
        results
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        Vec::new()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        self.check("lag")?;
        let messages = with_queue(&self.topic, |queue| queue.messages.len());
        Ok(Some(SourceLag::Messages(messages as u64)))
    }

    async fn close(&self) {
        self.end();
    }
}
