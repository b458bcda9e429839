//! Takes a queue; gives the same with small batches, every call counted, and a word on whether
//! queues may be made.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{Incoming, Outgoing, Queue, QueueFacts, QueueName, Receive};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::intercept::{Call, Hooks, QueueHooks};

/// Messages per call.
pub(crate) const BATCH: usize = 10;

#[derive(Debug, Default)]
pub(crate) struct Watched {
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
    /// How often something was asked of a queue.
    pub(crate) fn calls(&self, call: &'static str, queue: &QueueName) -> usize {
        self.calls.lock().unwrap().get(&(call, queue.clone())).copied().unwrap_or_default()
    }

    /// How often something was asked of all queues together.
    pub(crate) fn all(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|((it, _), _)| *it == call).map(|it| it.1).sum()
    }
}

impl Hooks for Watched {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        if let Some(queue) = call.queue {
            *self.calls.lock().unwrap().entry((call.name, queue.clone())).or_default() += 1;
        }
        match call.name {
            "create" if self.refuses_queues.load(Ordering::Relaxed) => {
                let error = Error::new(ErrorKind::Busy, "create");
                return Err(error.with_detail("deleted a moment ago"));
            }
            // Long enough for everybody to miss it.
            "create" => tokio::task::yield_now().await,
            "settle" => _ = self.held.fetch_sub(call.items, Ordering::Relaxed),
            _ => {}
        }
        Ok(())
    }
}

#[async_trait]
impl QueueHooks for Watched {
    fn facts(&self, inner: &dyn Queue) -> QueueFacts {
        let mut facts = inner.facts();
        (facts.max_batch, facts.coalesces) = (BATCH, false);
        facts
    }

    async fn send(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        if self.loses.load(Ordering::Relaxed) {
            return messages.iter().map(|_| Ok(())).collect();
        }
        // Without keys nothing is absorbed.
        let plain = |message: Outgoing| Outgoing::new(message.payload).delay(message.delay);
        inner.send(queue, messages.into_iter().map(plain).collect()).await
    }

    async fn receive(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        mut request: Receive,
    ) -> Result<Vec<Incoming>> {
        request.max = request.max.min(BATCH);
        *self.visibility.lock().unwrap() = request.visibility;
        let received = inner.receive(queue, request).await?;
        let held = self.held.fetch_add(received.len(), Ordering::Relaxed) + received.len();
        self.most_held.fetch_max(held, Ordering::Relaxed);
        Ok(received)
    }
}
