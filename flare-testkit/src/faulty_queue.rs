//! Takes a queue and a plan; gives a queue that fails, loses, doubles, delays and shuffles as the
//! plan says. Never loses what the plan does not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{Incoming, Outgoing, Queue, QueueName, Receive};
use futures::TryStreamExt;

use crate::FaultPlan;
use crate::intercept::{self, Call, Hooks, Intercepted, QueueHooks};

/// A queue as bad as queues are in the worst of times.
///
/// Calls fail before or after their effect by the plan's own probabilities; what else goes wrong
/// is set here. Losing and doubling break the contract on purpose: Flare has to bear it.
pub type FaultyQueue = Intercepted<dyn Queue, QueueFaults>;

impl FaultyQueue {
    /// `inner`, with the plan's errors and no other faults yet.
    pub fn new(inner: Arc<dyn Queue>, plan: FaultPlan) -> Self {
        let delay = (0.0, Duration::ZERO);
        let faults = QueueFaults { plan, lose: 0.0, duplicate: 0.0, reorder: 0.0, delay };
        intercept::queue(inner, faults)
    }

    /// The same; a message that was sent is lost with this probability.
    #[must_use]
    pub fn losing(self, probability: f64) -> Self {
        self.changed(|faults| faults.lose = probability)
    }

    /// The same; a message is sent twice with this probability.
    #[must_use]
    pub fn duplicating(self, probability: f64) -> Self {
        self.changed(|faults| faults.duplicate = probability)
    }

    /// The same; what one receive gives is shuffled with this probability.
    #[must_use]
    pub fn reordering(self, probability: f64) -> Self {
        self.changed(|faults| faults.reorder = probability)
    }

    /// The same; a message is late by up to `longest` with this probability.
    #[must_use]
    pub fn delaying(self, probability: f64, longest: Duration) -> Self {
        self.changed(|faults| faults.delay = (probability, longest))
    }

    /// Throws away everything in a queue, which goes on existing.
    pub async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.inner.delete(queue).await?;
        self.inner.create(queue).await
    }

    /// Throws away everything in every queue.
    pub async fn purge_all(&self) -> Result<()> {
        let queues: Vec<QueueName> = self.inner.list().try_collect().await?;
        for queue in &queues {
            self.purge(queue).await?;
        }
        Ok(())
    }

    /// The plan, to heal it or to count what it did.
    pub fn plan(&self) -> &FaultPlan {
        &self.hooks.plan
    }
}

/// The faults of a [`FaultyQueue`].
#[derive(Debug, Clone)]
pub struct QueueFaults {
    plan: FaultPlan,
    lose: f64,
    duplicate: f64,
    reorder: f64,
    delay: (f64, Duration),
}

impl QueueFaults {
    /// What really is sent for a message, and how many times.
    fn distort(&self, mut message: Outgoing, longest_delay: Duration) -> (Outgoing, usize) {
        if self.plan.roll(self.lose) {
            return (message, 0);
        }
        let (probability, longest) = self.delay;
        if self.plan.roll(probability) {
            let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
            let late = Duration::from_nanos(self.plan.below(nanos));
            message.delay = (message.delay + late).min(longest_delay);
        }
        let copies = if self.plan.roll(self.duplicate) { 2 } else { 1 };
        (message, copies)
    }
}

impl Hooks for QueueFaults {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.plan.before(call.name)
    }

    async fn after(&self, call: &Call<'_>) -> Result<()> {
        // Received and never told: the messages come back when their visibility ends.
        self.plan.after(call.name)
    }
}

#[async_trait]
impl QueueHooks for QueueFaults {
    async fn send(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        // Beyond the facts the inner queue refuses: nothing to distort there.
        let facts = inner.facts();
        if facts.check_batch("send", messages.len()).is_err() {
            return inner.send(queue, messages).await;
        }
        let mut results: Vec<Result<()>> = messages.iter().map(|_| Ok(())).collect();
        let (mut origins, mut once, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for (index, message) in messages.into_iter().enumerate() {
            let (message, copies) = match facts.check(&message) {
                Ok(()) => self.distort(message, facts.max_delay),
                Err(_) => (message, 1),
            };
            if copies > 1 {
                // A copy with its key would be absorbed.
                let mut copy = message.clone();
                copy.coalesce = None;
                again.push(copy);
            }
            if copies > 0 {
                origins.push(index);
                once.push(message);
            }
        }
        if !once.is_empty() {
            let sent = inner.send(queue, once).await;
            for (index, result) in origins.into_iter().zip(sent) {
                results[index] = result;
            }
        }
        if !again.is_empty() {
            // What becomes of a copy is nobody's business.
            drop(inner.send(queue, again).await);
        }
        results
    }

    async fn receive(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        let mut received = inner.receive(queue, request).await?;
        if received.len() > 1 && self.plan.roll(self.reorder) {
            self.plan.shuffle(&mut received);
        }
        Ok(received)
    }
}
