//! A queue of another kind keeps the contract too: small batches, groups in order, no coalescing.
//! What the memory queue's facts deny is tried here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::Result;
use flare_core::model::Timestamp;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_testkit::{Fixture, ManualClock};

/// Bytes in front of a payload: its number.
const FRAME: usize = 8;

type Group = (QueueName, String);

/// The memory queue, giving only the first unsettled message of each group.
#[derive(Debug)]
struct Ordered {
    inner: Arc<dyn Queue>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: u64,
    groups: HashMap<u64, Group>,
    unsettled: HashMap<Group, BTreeSet<u64>>,
    out: HashMap<String, u64>,
}

impl State {
    fn is_first(&self, number: u64) -> bool {
        let group = self.groups.get(&number).and_then(|group| self.unsettled.get(group));
        group.is_none_or(|group| group.first() == Some(&number))
    }

    fn settled(&mut self, number: u64) {
        if let Some(group) = self.groups.remove(&number) {
            self.unsettled.entry(group).or_default().remove(&number);
        }
    }
}

#[async_trait]
impl Queue for Ordered {
    fn facts(&self) -> QueueFacts {
        let inner = self.inner.facts();
        let mut facts = QueueFacts::new(10, inner.max_delay, 256 << 10);
        facts.ordered = true;
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        self.inner.create(queue).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        self.state.lock().unwrap().unsettled.retain(|(other, _), _| other != queue);
        self.inner.delete(queue).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        self.inner.list()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        self.inner.depth(queue).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        if let Err(error) = self.facts().check_batch("send", messages.len()) {
            return messages.iter().map(|_| Err(error.clone())).collect();
        }
        let mut results = Vec::new();
        for mut message in messages {
            if let Err(error) = self.facts().check(&message) {
                results.push(Err(error));
                continue;
            }
            let number = {
                let mut state = self.state.lock().unwrap();
                state.last += 1;
                let number = state.last;
                if let Some(group) = message.group.take() {
                    let group = (queue.clone(), group);
                    state.unsettled.entry(group.clone()).or_default().insert(number);
                    state.groups.insert(number, group);
                }
                number
            };
            message.coalesce = None;
            message.payload = [&number.to_be_bytes()[..], &message.payload].concat().into();
            let result = self.inner.send(queue, vec![message]).await.remove(0);
            if result.is_err() {
                self.state.lock().unwrap().settled(number);
            }
            results.push(result);
        }
        results
    }

    async fn receive(&self, queue: &QueueName, mut request: Receive) -> Result<Vec<Incoming>> {
        let max = request.max.min(self.facts().max_batch);
        request.max = self.inner.facts().max_batch;
        let (mut given, mut back) = (Vec::new(), Vec::new());
        let received = self.inner.receive(queue, request).await?;
        {
            let mut state = self.state.lock().unwrap();
            for mut message in received {
                let number = message.payload.split_to(FRAME);
                let number = u64::from_be_bytes(number[..].try_into().unwrap());
                if given.len() < max && state.is_first(number) {
                    state.out.insert(message.receipt.token().to_owned(), number);
                    given.push(message);
                } else {
                    let again = Settlement::Retry { after: Duration::ZERO };
                    back.push((message.receipt, again));
                }
            }
        }
        drop(self.inner.settle(queue, back).await);
        Ok(given)
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.inner.extend(queue, receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let all = settlements.iter();
        let done = all.map(|(receipt, to)| (receipt.token().to_owned(), *to == Settlement::Done));
        let done: Vec<_> = done.collect();
        let results = self.inner.settle(queue, settlements).await;
        let mut state = self.state.lock().unwrap();
        for ((token, done), result) in done.into_iter().zip(&results) {
            if result.is_ok()
                && let Some(number) = state.out.remove(&token).filter(|_| done)
            {
                state.settled(number);
            }
        }
        drop(state);
        results
    }
}

struct Fixed(ManualClock);

#[async_trait]
impl Fixture for Fixed {
    type Port = dyn Queue;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Queue>, ()) {
        let inner = MemoryBackend::with_clock(Arc::new(self.0.clone())).queue();
        (Arc::new(Ordered { inner, state: Mutex::default() }), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

flare_testkit::queue_suite!(Fixed(ManualClock::new(Timestamp::EPOCH)));
