//! Takes a queue; gives the same with small batches, every call counted, and a word on whether
//! queues may be made.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

/// Messages per call.
pub(crate) const BATCH: usize = 10;

#[derive(Debug)]
pub(crate) struct Watched {
    inner: Arc<dyn Queue>,
    calls: Mutex<HashMap<(&'static str, QueueName), usize>>,
    /// Messages received and not settled yet, and the most there ever were.
    held: AtomicUsize,
    pub(crate) most_held: AtomicUsize,
    /// As a queue system that wants some time between a deletion and a creation.
    pub(crate) refuses_queues: AtomicBool,
    /// How long messages were asked for last.
    pub(crate) visibility: Mutex<Duration>,
    /// Takes messages, and loses them.
    pub(crate) loses: AtomicBool,
}

impl Watched {
    pub(crate) fn new(inner: Arc<dyn Queue>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            calls: Mutex::default(),
            held: AtomicUsize::default(),
            most_held: AtomicUsize::default(),
            refuses_queues: AtomicBool::default(),
            visibility: Mutex::default(),
            loses: AtomicBool::default(),
        })
    }

    /// How often something was asked of a queue.
    pub(crate) fn calls(&self, call: &'static str, queue: &QueueName) -> usize {
        self.calls.lock().unwrap().get(&(call, queue.clone())).copied().unwrap_or_default()
    }

    /// How often something was asked of all queues together.
    pub(crate) fn all(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|((it, _), _)| *it == call).map(|it| it.1).sum()
    }

    fn count(&self, call: &'static str, queue: &QueueName) {
        *self.calls.lock().unwrap().entry((call, queue.clone())).or_default() += 1;
    }
}

#[async_trait]
impl Queue for Watched {
    fn facts(&self) -> QueueFacts {
        let mut facts = self.inner.facts();
        (facts.max_batch, facts.coalesces) = (BATCH, false);
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.count("create", queue);
        if self.refuses_queues.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Busy, "create").with_detail("deleted a moment ago"));
        }
        // Long enough for everybody to miss it.
        tokio::task::yield_now().await;
        self.inner.create(queue).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.inner.delete(queue).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        self.inner.list()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        self.inner.depth(queue).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.count("send", queue);
        if self.loses.load(Ordering::Relaxed) {
            return messages.iter().map(|_| Ok(())).collect();
        }
        // Without keys nothing is absorbed.
        let plain = |message: Outgoing| Outgoing::new(message.payload).delay(message.delay);
        self.inner.send(queue, messages.into_iter().map(plain).collect()).await
    }

    async fn receive(&self, queue: &QueueName, mut request: Receive) -> Result<Vec<Incoming>> {
        self.count("receive", queue);
        request.max = request.max.min(BATCH);
        *self.visibility.lock().unwrap() = request.visibility;
        let received = self.inner.receive(queue, request).await?;
        let held = self.held.fetch_add(received.len(), Ordering::Relaxed) + received.len();
        self.most_held.fetch_max(held, Ordering::Relaxed);
        Ok(received)
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.count("extend", queue);
        self.inner.extend(queue, receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.count("settle", queue);
        self.held.fetch_sub(settlements.len(), Ordering::Relaxed);
        self.inner.settle(queue, settlements).await
    }
}
