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
    Incoming, Outgoing, Queue, QueueFacts, QueueName, Receipt, Receive, Settlement, Unsettled,
};
use flare_testkit::intercept::{self, Call, Hooks, QueueHooks};
use flare_testkit::{Fixture, ManualClock};

/// Bytes in front of a payload: its number.
const FRAME: usize = 8;

type Group = (QueueName, String);

/// Gives only the first unsettled message of each group.
#[derive(Debug, Default)]
struct Ordered(Mutex<State>);

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

impl Hooks for Ordered {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        if call.name == "delete" {
            self.0.lock().unwrap().unsettled.retain(|(other, _), _| Some(other) != call.queue);
        }
        Ok(())
    }
}

#[async_trait]
impl QueueHooks for Ordered {
    fn facts(&self, inner: &dyn Queue) -> QueueFacts {
        let mut facts = QueueFacts::new(10, inner.facts().max_delay, 256 << 10);
        facts.ordered = true;
        facts
    }

    async fn send(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        let facts = self.facts(inner);
        if let Err(error) = facts.check_batch("send", messages.len()) {
            return messages.iter().map(|_| Err(error.clone())).collect();
        }
        let mut results = Vec::new();
        for mut message in messages {
            if let Err(error) = facts.check(&message) {
                results.push(Err(error));
                continue;
            }
            let number = {
                let mut state = self.0.lock().unwrap();
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
            let result = inner.send(queue, vec![message]).await.remove(0);
            if result.is_err() {
                self.0.lock().unwrap().settled(number);
            }
            results.push(result);
        }
        results
    }

    async fn receive(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        mut request: Receive,
    ) -> Result<Vec<Incoming>> {
        let max = request.max.min(self.facts(inner).max_batch);
        request.max = inner.facts().max_batch;
        let (mut given, mut back) = (Vec::new(), Vec::new());
        let received = inner.receive(queue, request).await?;
        {
            let mut state = self.0.lock().unwrap();
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
        drop(inner.settle(queue, back).await);
        Ok(given)
    }

    async fn settle(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let all = settlements.iter();
        let done = all.map(|(receipt, to)| (receipt.token().to_owned(), *to == Settlement::Done));
        let done: Vec<_> = done.collect();
        let results = inner.settle(queue, settlements).await;
        let mut state = self.0.lock().unwrap();
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
        (Arc::new(intercept::queue(inner, Ordered::default())), ())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time).await;
    }
}

flare_testkit::queue_suite!(Fixed(ManualClock::new(Timestamp::EPOCH)));
