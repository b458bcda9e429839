//! Takes a queue and a plan; gives a queue that fails, loses, doubles, delays and shuffles as the
//! plan says. Never loses what the plan does not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, Result};

use crate::FaultPlan;

/// A queue as bad as queues are in the worst of times.
///
/// Calls fail before or after their effect by the plan's own probabilities; what else goes wrong
/// is set here. Losing and doubling break the contract on purpose: Flare has to bear it.
#[derive(Debug)]
pub struct FaultyQueue {
    inner: Arc<dyn Queue>,
    plan: FaultPlan,
    lose: f64,
    duplicate: f64,
    reorder: f64,
    delay: (f64, Duration),
}

impl FaultyQueue {
    /// `inner`, with the plan's errors and no other faults yet.
    pub fn new(inner: Arc<dyn Queue>, plan: FaultPlan) -> Self {
        let delay = (0.0, Duration::ZERO);
        Self { inner, plan, lose: 0.0, duplicate: 0.0, reorder: 0.0, delay }
    }

    /// The same; a message that was sent is lost with this probability.
    #[must_use]
    pub fn losing(mut self, probability: f64) -> Self {
        self.lose = probability;
        self
    }

    /// The same; a message is sent twice with this probability.
    #[must_use]
    pub fn duplicating(mut self, probability: f64) -> Self {
        self.duplicate = probability;
        self
    }

    /// The same; what one receive gives is shuffled with this probability.
    #[must_use]
    pub fn reordering(mut self, probability: f64) -> Self {
        self.reorder = probability;
        self
    }

    /// The same; a message is late by up to `longest` with this probability.
    #[must_use]
    pub fn delaying(mut self, probability: f64, longest: Duration) -> Self {
        self.delay = (probability, longest);
        self
    }

    /// Throws away everything in a queue, which goes on existing.
    pub async fn purge(&self, queue: &QueueName) -> Result<()> {
        self.inner.delete(queue).await?;
        self.inner.create(queue).await
    }

    /// Throws away everything in every queue.
    pub async fn purge_all(&self) -> Result<()> {
        let queues: Vec<QueueName> = futures::TryStreamExt::try_collect(self.inner.list()).await?;
        for queue in &queues {
            self.purge(queue).await?;
        }
        Ok(())
    }

    /// The plan, to heal it or to count what it did.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// What really is sent for a message, and how many times.
    fn distort(&self, mut message: Outgoing) -> (Outgoing, usize) {
        if self.plan.roll(self.lose) {
            return (message, 0);
        }
        let (probability, longest) = self.delay;
        if self.plan.roll(probability) {
            let nanos = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
            let late = Duration::from_nanos(self.plan.below(nanos));
            message.delay = (message.delay + late).min(self.inner.facts().max_delay);
        }
        let copies = if self.plan.roll(self.duplicate) { 2 } else { 1 };
        (message, copies)
    }
}

#[async_trait]
impl Queue for FaultyQueue {
    fn facts(&self) -> QueueFacts {
        self.inner.facts()
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.plan.before("create")?;
        self.inner.create(queue).await?;
        self.plan.after("create")
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.plan.before("delete")?;
        self.inner.delete(queue).await?;
        self.plan.after("delete")
    }

    fn list(&self) -> Scan<'_, QueueName> {
        match self.plan.before("list") {
            Ok(()) => self.inner.list(),
            Err(error) => Box::pin(futures::stream::iter([Err(error)])),
        }
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        self.plan.before("depth")?;
        let depth = self.inner.depth(queue).await?;
        self.plan.after("depth").map(|()| depth)
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        let count = messages.len();
        let all = |error: Error| (0..count).map(|_| Err(error.clone())).collect();
        if let Err(error) = self.plan.before("send") {
            return all(error);
        }
        // Beyond the facts the inner queue refuses: nothing to distort there.
        let facts = self.inner.facts();
        if facts.check_batch("send", count).is_err() {
            return self.inner.send(queue, messages).await;
        }
        let mut results: Vec<Result<()>> = (0..count).map(|_| Ok(())).collect();
        let (mut origins, mut once, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for (index, message) in messages.into_iter().enumerate() {
            let (message, copies) = match facts.check(&message) {
                Ok(()) => self.distort(message),
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
            let sent = self.inner.send(queue, once).await;
            for (index, result) in origins.into_iter().zip(sent) {
                results[index] = result;
            }
        }
        if !again.is_empty() {
            // What becomes of a copy is nobody's business.
            drop(self.inner.send(queue, again).await);
        }
        match self.plan.after("send") {
            Ok(()) => results,
            Err(error) => all(error),
        }
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        self.plan.before("receive")?;
        let mut received = self.inner.receive(queue, request).await?;
        if received.len() > 1 && self.plan.roll(self.reorder) {
            self.plan.shuffle(&mut received);
        }
        // Received and never told: the messages come back when their visibility ends.
        self.plan.after("receive").map(|()| received)
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let count = receipts.len();
        let all = |error: Error| (0..count).map(|_| Err(error.clone())).collect();
        if let Err(error) = self.plan.before("extend") {
            return all(error);
        }
        let results = self.inner.extend(queue, receipts, visibility).await;
        match self.plan.after("extend") {
            Ok(()) => results,
            Err(error) => all(error),
        }
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        if let Err(error) = self.plan.before("settle") {
            let back = settlements.into_iter();
            return back.map(|(receipt, _)| Err(Unsettled::new(error.clone(), receipt))).collect();
        }
        let tokens: Vec<Box<str>> =
            settlements.iter().map(|(receipt, _)| receipt.token().into()).collect();
        let results = self.inner.settle(queue, settlements).await;
        match self.plan.after("settle") {
            Ok(()) => results,
            Err(error) => {
                let back = tokens.into_iter().map(Receipt::new);
                back.map(|receipt| Err(Unsettled::new(error.clone(), receipt))).collect()
            }
        }
    }
}
