//! Takes messages into plain lists behind one lock; gives each to one receiver at a time.
//!
//! Somebody else's queue: written against the contract of [`Queue`] alone, and tried by the
//! testkit (`tests/custom_queue.rs`). A start for a backend of your own; it scans its lists, so
//! it is no match for long ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::Timestamp;
use flare_core::port::{
    Clock, Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};
use tokio::sync::Notify;

/// What Flare has to keep to; it cuts batches and delays accordingly.
const FACTS: QueueFacts = QueueFacts::new(10, Duration::from_secs(15 * 60), 256 * 1024);

/// Queues that are lists. Neither ordered nor coalescing, as its facts say.
#[derive(Debug)]
pub struct ListQueue {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Told whenever there may be something to receive.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    receipts: u64,
    queues: BTreeMap<QueueName, Vec<Message>>,
}

#[derive(Debug)]
struct Message {
    payload: Bytes,
    attempt: u32,
    /// Not to be received before.
    visible_at: Timestamp,
    /// The receipt of whoever had it last.
    receipt: Option<String>,
}

impl ListQueue {
    /// No queues yet; time is the clock's.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default(), changed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the message a receipt is good for.
    fn with_held(
        &self,
        operation: &'static str,
        queue: &QueueName,
        receipt: &Receipt,
        act: impl FnOnce(&mut Vec<Message>, usize),
    ) -> Result<()> {
        let lost =
            || fault(ErrorKind::Lost, operation).with_detail("somebody else has the message");
        let mut state = self.lock();
        let messages = state.queues.get_mut(queue).ok_or_else(lost)?;
        let held = |message: &Message| message.receipt.as_deref() == Some(receipt.token());
        let place = messages.iter().position(held).ok_or_else(lost)?;
        act(messages, place);
        Ok(())
    }
}

fn fault(kind: ErrorKind, operation: &'static str) -> Error {
    Error::new(kind, operation).with_backend("list")
}

fn missing(operation: &'static str, queue: &QueueName) -> Error {
    fault(ErrorKind::NotFound, operation).with_detail(format!("there is no queue {queue}"))
}

#[async_trait]
impl Queue for ListQueue {
    fn facts(&self) -> QueueFacts {
        FACTS
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.lock().queues.entry(queue.clone()).or_default();
        Ok(())
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.lock().queues.remove(queue);
        self.changed.notify_waiters();
        Ok(())
    }

    fn list(&self) -> Scan<'_, QueueName> {
        let names: Vec<QueueName> = self.lock().queues.keys().cloned().collect();
        stream::iter(names.into_iter().map(Ok)).boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        let now = self.clock.now();
        let state = self.lock();
        let messages = state.queues.get(queue).ok_or_else(|| missing("depth", queue))?;
        let mut depth = QueueDepth::exact(0, 0, 0);
        for message in messages {
            match &message.receipt {
                _ if message.visible_at <= now => depth.ready += 1,
                None => depth.delayed += 1,
                Some(_) => depth.in_flight += 1,
            }
        }
        Ok(depth)
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        if let Err(error) = FACTS.check_batch("send", messages.len()) {
            return messages.iter().map(|_| Err(error.clone())).collect();
        }
        let now = self.clock.now();
        let send = |message: Outgoing| {
            FACTS.check(&message)?;
            let mut state = self.lock();
            let waiting = state.queues.get_mut(queue).ok_or_else(|| missing("send", queue))?;
            let visible_at = now + message.delay;
            let payload = message.payload;
            waiting.push(Message { payload, attempt: 0, visible_at, receipt: None });
            Ok(())
        };
        let results = messages.into_iter().map(send).collect();
        self.changed.notify_waiters();
        results
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        let give_up_at = self.clock.now() + request.wait;
        loop {
            // Listening starts before looking: what is sent in between is not missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let now = self.clock.now();
            let next = {
                let mut state = self.lock();
                let received = state.take(queue, &request, now)?;
                if !received.is_empty() || now >= give_up_at {
                    return Ok(received);
                }
                state.next_visible(queue).map_or(give_up_at, |next| next.min(give_up_at))
            };
            tokio::select! {
                () = &mut changed => {}
                () = self.clock.sleep_until(next) => {}
            }
        }
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let until = self.clock.now() + visibility;
        let fits = FACTS.check_batch("extend", receipts.len());
        let extend = |receipt: &Receipt| {
            fits.clone()?;
            self.with_held("extend", queue, receipt, |held, at| held[at].visible_at = until)
        };
        let results = receipts.into_iter().map(extend).collect();
        // It may have become shorter.
        self.changed.notify_waiters();
        results
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let now = self.clock.now();
        let fits = FACTS.check_batch("settle", settlements.len());
        let settle = |receipt: &Receipt, settlement| {
            fits.clone()?;
            let after = match settlement {
                Settlement::Done => None,
                Settlement::Retry { after } => Some(after),
            };
            self.with_held("settle", queue, receipt, |held, at| match after {
                None => drop(held.remove(at)),
                Some(after) => {
                    held[at].visible_at = now + after;
                    held[at].receipt = None;
                }
            })
        };
        let results = settlements
            .into_iter()
            .map(|(receipt, settlement)| {
                settle(&receipt, settlement).map_err(|error| Unsettled::new(error, receipt))
            })
            .collect();
        self.changed.notify_waiters();
        results
    }
}

impl State {
    fn take(
        &mut self,
        queue: &QueueName,
        request: &Receive,
        now: Timestamp,
    ) -> Result<Vec<Incoming>> {
        let messages = self.queues.get_mut(queue).ok_or_else(|| missing("receive", queue))?;
        let visible = messages.iter_mut().filter(|message| message.visible_at <= now);
        let mut received = Vec::new();
        for message in visible.take(request.max.min(FACTS.max_batch)) {
            // A fresh receipt makes those before it worthless.
            self.receipts += 1;
            let token = self.receipts.to_string();
            message.receipt = Some(token.clone());
            message.visible_at = now + request.visibility;
            message.attempt += 1;
            let payload = message.payload.clone();
            received.push(Incoming::new(payload, message.attempt, Receipt::new(token)));
        }
        Ok(received)
    }

    fn next_visible(&self, queue: &QueueName) -> Option<Timestamp> {
        self.queues.get(queue)?.iter().map(|message| message.visible_at).min()
    }
}
