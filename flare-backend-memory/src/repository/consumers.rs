//! Takes inputs that documents are pulled from; gives them back, with their owners' states and their rejects.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, RecordName, Reject, RejectId,
    Timestamp, Unreadable,
};
use flare_core::port::{ConsumerStore, Listing, Page, Replaced, Scan};
use futures::{StreamExt, stream};

use super::MemoryRepository;
use super::spoilt::unreadable;
use crate::lock;

#[derive(Debug, Default)]
pub(super) struct Consumers(Mutex<BTreeMap<ConsumerId, Held>>);

/// A consumer, with all that is stored for it.
#[derive(Debug)]
struct Held {
    consumer: Consumer,
    state: Option<(Epoch, ConsumerState)>,
    rejects: BTreeMap<RejectId, Reject>,
}

impl Held {
    /// In the order of their rejection.
    fn in_order(&self) -> Vec<&Reject> {
        let mut rejects: Vec<&Reject> = self.rejects.values().collect();
        rejects.sort_by_key(|reject| (reject.rejected_at, reject.id));
        rejects
    }

    fn keep_last(&mut self, most: usize) {
        let beyond = self.rejects.len().saturating_sub(most);
        let oldest: Vec<RejectId> = self.in_order()[..beyond].iter().map(|it| it.id).collect();
        self.rejects.retain(|id, _| !oldest.contains(id));
    }
}

impl MemoryRepository {
    /// A consumer, unless it cannot be read: then what is known of it all the same.
    fn readable_consumer(&self, operation: &'static str, consumer: Consumer) -> Result<Consumer> {
        let name = || RecordName::Consumer(consumer.id);
        match self.spoilt.why(name) {
            None => Ok(consumer),
            Some(why) => {
                let record = Unreadable::new(name(), why).of(Some(consumer.resource));
                Err(unreadable(operation, record))
            }
        }
    }
}

#[async_trait]
impl ConsumerStore for MemoryRepository {
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer> {
        let mut held = lock(&self.consumers.0);
        let new = || Held { consumer: consumer.clone(), state: None, rejects: BTreeMap::new() };
        Ok(held.entry(consumer.id).or_insert_with(new).consumer.clone())
    }

    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>> {
        let found = lock(&self.consumers.0).get(&id).map(|held| held.consumer.clone());
        found.map(|found| self.readable_consumer("consumer", found)).transpose()
    }

    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        let held = lock(&self.consumers.0);
        let read = |held: &Held| self.readable_consumer("list_consumers", held.consumer.clone());
        let found: Vec<_> = within(held.values(), page).map(read).collect();
        Listing::of_read(found, held.len() as u64)
    }

    fn scan_consumers(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer> {
        let held = lock(&self.consumers.0);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = held.range((from, Bound::Unbounded)).map(|(_, held)| held.consumer.clone());
        let read = |found| self.readable_consumer("scan_consumers", found);
        let found: Vec<_> = found.map(read).collect();
        stream::iter(found).boxed()
    }

    async fn replace_consumer(
        &self,
        generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>> {
        let mut held = lock(&self.consumers.0);
        let Some(held) = held.get_mut(&consumer.id) else { return Ok(Replaced::Missing) };
        let stored = self.readable_consumer("replace_consumer", held.consumer.clone())?;
        if stored.generation != generation {
            return Ok(Replaced::Conflict(stored));
        }
        held.consumer = stored.replaced_by(consumer);
        Ok(Replaced::Done(held.consumer.clone()))
    }

    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool> {
        let mut held = lock(&self.consumers.0);
        let is_another = |held: &Held| at.is_some_and(|at| held.consumer.generation != at);
        if held.get(&id).is_some_and(is_another) {
            return Ok(false);
        }
        held.remove(&id);
        self.spoilt.forget(|| RecordName::Consumer(id));
        Ok(true)
    }

    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied> {
        let mut held = lock(&self.consumers.0);
        let Some(held) = held.get_mut(&id) else { return Ok(Applied::Missing) };
        match held.state {
            Some((stored, _)) if stored > epoch => Ok(Applied::Fenced { epoch: stored }),
            _ => {
                held.state = Some((epoch, state));
                Ok(Applied::Done)
            }
        }
    }

    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        let mut held = lock(&self.consumers.0);
        let Some(held) = held.get_mut(&id) else { return Ok(None) };
        let (stored, state) = held.state.get_or_insert_with(|| (epoch, ConsumerState::default()));
        if *stored > epoch {
            return Ok(None);
        }
        *stored = epoch;
        Ok(Some(state.clone()))
    }

    async fn consumer_states(
        &self,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        let held = lock(&self.consumers.0);
        let state = |id: ConsumerId| {
            let (epoch, state) = held.get(&id)?.state.clone()?;
            Some((id, epoch, state))
        };
        Ok(ids.into_iter().filter_map(state).collect())
    }

    async fn insert_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()> {
        let mut held = lock(&self.consumers.0);
        for reject in rejects {
            if let Some(held) = held.get_mut(&reject.consumer) {
                self.spoilt.forget(|| RecordName::Reject(reject.id));
                held.rejects.insert(reject.id, reject);
                held.keep_last(most);
            }
        }
        Ok(())
    }

    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        let held = lock(&self.consumers.0);
        let Some(held) = held.get(&consumer) else { return Ok(Listing::new(Vec::new(), 0)) };
        let rejects = held.in_order();
        let total = rejects.len() as u64;
        let name = |reject: &Reject| RecordName::Reject(reject.id);
        let read = |reject: &Reject| self.spoilt.read("list_rejects", name, reject.clone());
        let read: Vec<_> = within(rejects.into_iter(), page).map(read).collect();
        Listing::of_read(read, total)
    }

    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>> {
        let held = lock(&self.consumers.0);
        let Some(held) = held.get(&consumer) else { return Ok(Vec::new()) };
        Ok(ids.iter().filter_map(|id| held.rejects.get(id).cloned()).collect())
    }

    async fn remove_rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<()> {
        if let Some(held) = lock(&self.consumers.0).get_mut(&consumer) {
            held.rejects.retain(|id, _| !ids.contains(id));
            ids.into_iter().for_each(|id| self.spoilt.forget(|| RecordName::Reject(id)));
        }
        Ok(())
    }

    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let mut held = lock(&self.consumers.0);
        let Some(held) = held.get_mut(&consumer) else { return Ok(0) };
        let rejects = held.in_order().into_iter();
        let old = rejects.take_while(|reject| reject.rejected_at < before).take(limit);
        let old: Vec<RejectId> = old.map(|reject| reject.id).collect();
        held.rejects.retain(|id, _| !old.contains(id));
        Ok(old.len() as u64)
    }
}

fn within<T>(all: impl Iterator<Item = T>, page: Page) -> impl Iterator<Item = T> {
    let offset = usize::try_from(page.offset).unwrap_or(usize::MAX);
    all.skip(offset).take(usize::try_from(page.limit).unwrap_or(usize::MAX))
}
