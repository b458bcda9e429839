//! Takes messages; gives each to one receiver at a time until it is settled. Wakes those who
//! wait, by the injected clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::Timestamp;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;
use tokio::sync::Notify;

use crate::time::StoreTime;
use crate::{BACKEND, MemoryConfig, lock, read, write};

/// Queues in memory.
#[derive(Debug)]
pub struct MemoryQueue {
    time: StoreTime,
    max_messages: usize,
    queues: RwLock<BTreeMap<QueueName, Arc<Channel>>>,
}

/// One queue.
#[derive(Debug, Default)]
struct Channel {
    state: Mutex<State>,
    /// Told whenever a message may have become receivable, or the queue was deleted.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    deleted: bool,
    /// Numbers messages and receipts: each is used once.
    next: u64,
    messages: HashMap<u64, Message>,
    /// The messages that wait, by when they may be received.
    waiting: BTreeSet<(Timestamp, u64)>,
    /// The messages that somebody has, by when they come back.
    in_flight: BTreeSet<(Timestamp, u64)>,
    /// Who among those that wait absorbs a key.
    by_key: HashMap<String, u64>,
}

#[derive(Debug)]
struct Message {
    payload: Bytes,
    key: Option<String>,
    attempt: u32,
    /// When it may be received, or comes back.
    at: Timestamp,
    /// The receipt it is out under.
    receipt: Option<u64>,
}

impl MemoryQueue {
    pub(crate) fn new(config: &MemoryConfig, time: StoreTime) -> Self {
        Self { time, max_messages: config.max_messages, queues: RwLock::default() }
    }

    fn channel(&self, operation: &'static str, queue: &QueueName) -> Result<Arc<Channel>> {
        read(&self.queues).get(queue).cloned().ok_or_else(|| missing(operation, queue))
    }
}

fn missing(operation: &'static str, queue: &QueueName) -> Error {
    let detail = format!("there is no queue {queue}");
    Error::new(ErrorKind::NotFound, operation).with_backend(BACKEND).with_detail(detail)
}

#[async_trait]
impl Queue for MemoryQueue {
    fn facts(&self) -> QueueFacts {
        let mut facts = QueueFacts::new(1_000, Duration::from_secs(7 * 24 * 3600), 1 << 20);
        facts.coalesces = true;
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        write(&self.queues).entry(queue.clone()).or_default();
        Ok(())
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        if let Some(channel) = write(&self.queues).remove(queue) {
            *lock(&channel.state) = State { deleted: true, ..State::default() };
            channel.changed.notify_waiters();
        }
        Ok(())
    }

    fn list(&self) -> Scan<'_, QueueName> {
        let names: Vec<QueueName> = read(&self.queues).keys().cloned().collect();
        stream::iter(names.into_iter().map(Ok)).boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        let channel = self.channel("depth", queue)?;
        let now = self.time.now();
        let mut state = lock(&channel.state);
        state.bring_back(now);
        let ready = state.waiting.iter().take_while(|(at, _)| *at <= now).count();
        let delayed = state.waiting.len() - ready;
        Ok(QueueDepth::exact(ready as u64, delayed as u64, state.in_flight.len() as u64))
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        let facts = self.facts();
        let sendable = facts.check_batch("send", messages.len());
        let channel = match sendable.and_then(|()| self.channel("send", queue)) {
            Ok(channel) => channel,
            Err(error) => return messages.iter().map(|_| Err(error.clone())).collect(),
        };
        let now = self.time.now();
        let results = {
            let mut state = lock(&channel.state);
            let send = |message: Outgoing| {
                facts.check(&message)?;
                if state.deleted {
                    return Err(missing("send", queue));
                }
                if state.messages.len() >= self.max_messages {
                    let detail = format!("queue {queue} holds {} messages", self.max_messages);
                    return Err(Error::new(ErrorKind::Busy, "send")
                        .with_backend(BACKEND)
                        .with_detail(detail));
                }
                state.send(message, now);
                Ok(())
            };
            messages.into_iter().map(send).collect()
        };
        channel.changed.notify_waiters();
        results
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        let channel = self.channel("receive", queue)?;
        let max = request.max.min(self.facts().max_batch);
        let give_up_at = self.time.now() + request.wait;
        loop {
            // Listening starts before looking: what is sent in between is not missed.
            let changed = channel.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.time.now();
            let next = {
                let mut state = lock(&channel.state);
                if state.deleted {
                    return Err(missing("receive", queue));
                }
                let received = state.receive(max, now, now + request.visibility);
                if !received.is_empty() || now >= give_up_at || max == 0 {
                    return Ok(received);
                }
                state.next_at()
            };
            let wake_at = next.map_or(give_up_at, |next| next.min(give_up_at));
            tokio::select! {
                biased;
                () = &mut changed => {}
                () = self.time.sleep_until(wake_at) => {}
            }
        }
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let now = self.time.now();
        let channel = self.facts().check_batch("extend", receipts.len());
        let channel = channel.and_then(|()| self.channel("extend", queue));
        let extend = |receipt: &Receipt| {
            let channel = channel.as_ref().map_err(|error| lost_queue("extend", error))?;
            let mut state = lock(&channel.state);
            let id = state.held("extend", receipt, now)?;
            state.put_in_flight(id, now + visibility);
            Ok(())
        };
        receipts.into_iter().map(extend).collect()
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let now = self.time.now();
        let channel = self.facts().check_batch("settle", settlements.len());
        let channel = channel.and_then(|()| self.channel("settle", queue));
        let settle = |(receipt, settlement): (Receipt, Settlement)| {
            let settled = channel
                .as_ref()
                .map_err(|error| lost_queue("settle", error))
                .and_then(|channel| lock(&channel.state).settle(&receipt, settlement, now));
            settled.map_err(|error| Unsettled::new(error, receipt))
        };
        let results = settlements.into_iter().map(settle).collect();
        if let Ok(channel) = &channel {
            channel.changed.notify_waiters();
        }
        results
    }
}

/// A receipt whose queue is gone is lost with it; any other fault stays what it is.
fn lost_queue(operation: &'static str, error: &Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => lost(operation, "its queue is gone"),
        _ => error.clone(),
    }
}

fn lost(operation: &'static str, detail: &'static str) -> Error {
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn send(&mut self, message: Outgoing, now: Timestamp) {
        let at = now + message.delay;
        if let Some(id) = message.coalesce.as_ref().and_then(|key| self.by_key.get(key)).copied() {
            // Absorbed: the one that waits says the same, and the earlier time holds.
            if let Some(waiting) = self.messages.get(&id)
                && at < waiting.at
            {
                self.put_waiting(id, at);
            }
            return;
        }
        let id = self.number();
        let key = message.coalesce;
        if let Some(key) = &key {
            self.by_key.insert(key.clone(), id);
        }
        let message = Message { payload: message.payload, key, attempt: 0, at, receipt: None };
        self.messages.insert(id, message);
        self.put_waiting(id, at);
    }

    fn receive(&mut self, max: usize, now: Timestamp, until: Timestamp) -> Vec<Incoming> {
        self.bring_back(now);
        let due = self.waiting.iter().take_while(|(at, _)| *at <= now);
        let ids: Vec<u64> = due.map(|(_, id)| *id).take(max).collect();
        let mut received = Vec::with_capacity(ids.len());
        for id in ids {
            self.put_in_flight(id, until);
            let receipt = self.number();
            let Some(message) = self.messages.get_mut(&id) else { continue };
            message.receipt = Some(receipt);
            message.attempt = message.attempt.saturating_add(1);
            let token = format!("{id}:{receipt}");
            received.push(Incoming::new(
                message.payload.clone(),
                message.attempt,
                Receipt::new(token),
            ));
        }
        received
    }

    fn settle(&mut self, receipt: &Receipt, settlement: Settlement, now: Timestamp) -> Result<()> {
        let id = self.held("settle", receipt, now)?;
        match settlement {
            Settlement::Done => self.remove(id),
            Settlement::Retry { after } => self.release(id, now + after),
        }
        Ok(())
    }

    /// The message a receipt is good for. Until somebody else has it a late receipt still is: the
    /// work was done, and doing it again would help nobody.
    fn held(&mut self, operation: &'static str, receipt: &Receipt, now: Timestamp) -> Result<u64> {
        self.bring_back(now);
        let gone = || lost(operation, "the message is settled, or somebody else's by now");
        let (id, number) = receipt.token().split_once(':').ok_or_else(gone)?;
        let (id, number) = (id.parse().map_err(|_| gone())?, number.parse().map_err(|_| gone())?);
        match self.messages.get(&id) {
            Some(message) if message.receipt == Some(number) => Ok(id),
            _ => Err(gone()),
        }
    }

    /// Makes messages whose receivers took too long receivable again.
    fn bring_back(&mut self, now: Timestamp) {
        while let Some((at, id)) = self.in_flight.first().copied().filter(|(at, _)| *at <= now) {
            self.put_waiting(id, at);
        }
    }

    fn release(&mut self, id: u64, at: Timestamp) {
        if let Some(message) = self.messages.get_mut(&id) {
            message.receipt = None;
        }
        self.put_waiting(id, at);
    }

    fn put_waiting(&mut self, id: u64, at: Timestamp) {
        self.unlist(id);
        if let Some(message) = self.messages.get_mut(&id) {
            message.at = at;
            self.waiting.insert((at, id));
            // It waits again, so it may absorb again, unless another does already.
            if let Some(key) = &message.key {
                self.by_key.entry(key.clone()).or_insert(id);
            }
        }
    }

    fn put_in_flight(&mut self, id: u64, until: Timestamp) {
        self.unlist(id);
        if let Some(message) = self.messages.get_mut(&id) {
            message.at = until;
            self.in_flight.insert((until, id));
            // Whoever says the same from now on says something new.
            if let Some(key) = &message.key
                && self.by_key.get(key) == Some(&id)
            {
                self.by_key.remove(key);
            }
        }
    }

    fn unlist(&mut self, id: u64) {
        if let Some(message) = self.messages.get(&id) {
            self.waiting.remove(&(message.at, id));
            self.in_flight.remove(&(message.at, id));
        }
    }

    fn remove(&mut self, id: u64) {
        self.unlist(id);
        if let Some(Message { key: Some(key), .. }) = self.messages.remove(&id)
            && self.by_key.get(&key) == Some(&id)
        {
            self.by_key.remove(&key);
        }
    }

    /// When a message may next become receivable.
    fn next_at(&self) -> Option<Timestamp> {
        let firsts = [self.waiting.first(), self.in_flight.first()];
        firsts.into_iter().flatten().map(|(at, _)| *at).min()
    }
}
