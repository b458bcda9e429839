//! Breaks RC1 to RC8.

use std::mem;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::Result;
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, Reject, RejectId,
    SourceSettings, Timestamp,
};
use flare_core::port::{ConsumerStore, Listing, Page, Replaced, Scan};
use futures::TryStreamExt;

use super::{BrokenRepository, Fault, changed, one_more};

/// All that a consumer has, whatever it is.
const ALL: Page = Page::new(1_000, 0);

#[async_trait]
impl ConsumerStore for BrokenRepository {
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer> {
        if self.has(Fault::SecondInsertOfAConsumerReplaces) {
            self.inner.remove_consumer(consumer.id, None).await?;
        }
        self.memory().consumers.insert(consumer.id);
        let given = consumer.clone();
        let stored = self.inner.insert_consumer(consumer).await?;
        self.put_back(stored.id).await?;
        let returns_given = self.has(Fault::ConsumerInsertReturnsWhatWasGiven);
        Ok(if returns_given { given } else { stored })
    }

    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>> {
        let mut consumer = self.inner.consumer(id).await?;
        if let Some(found) = consumer.as_mut().filter(|_| self.has(Fault::ConsumersLoseNulls)) {
            let mut values = found.source.values();
            values.as_object_mut().unwrap().retain(|_, value| !value.is_null());
            found.source = SourceSettings::new(found.source.kind(), values).unwrap();
        }
        Ok(consumer)
    }

    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        let mut listing = self.inner.list_consumers(page).await?;
        if self.has(Fault::ConsumersNewestFirst) {
            listing.items.reverse();
        }
        if self.has(Fault::ConsumerTotalIsOfThePage) {
            listing.total = listing.items.len() as u64;
        }
        Ok(listing)
    }

    fn scan_consumers(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer> {
        match self.fault {
            Fault::ConsumerScanBackwards => {
                changed(self.inner.scan_consumers(after), |found| found.reverse())
            }
            Fault::ConsumerScanRepeatsTheLast => {
                changed(self.inner.scan_consumers(None), move |found| {
                    found.retain(|it| after.is_none_or(|after| it.id >= after));
                })
            }
            _ => self.inner.scan_consumers(after),
        }
    }

    async fn replace_consumer(
        &self,
        mut generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>> {
        let given = consumer.clone();
        if self.has(Fault::ConsumersReplacedAtAnyGeneration)
            && let Some(stored) = self.inner.consumer(consumer.id).await?
        {
            generation = stored.generation;
        }
        let answer = self.inner.replace_consumer(generation, consumer).await?;
        if let Replaced::Done(stored) = &answer {
            self.lose_what_is_held(stored.clone()).await?;
        }
        Ok(match answer {
            Replaced::Done(_) if self.has(Fault::ConsumersReplacedWithWhatWasGiven) => {
                Replaced::Done(given)
            }
            Replaced::Conflict(_) if self.has(Fault::BeatenReplacementLearnsNothing) => {
                Replaced::Conflict(given)
            }
            answer => answer,
        })
    }

    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool> {
        let states = self.inner.consumer_states(vec![id]).await?;
        let rejects = self.inner.list_rejects(id, ALL).await?.items;
        let at = match at {
            Some(_) if self.has(Fault::ConsumersRemovedAtAnyGeneration) => None,
            Some(at) if self.has(Fault::ConsumersRemovedAfterALook) => {
                let is_other =
                    |found: Option<Consumer>| found.is_some_and(|it| it.generation != at);
                if is_other(self.inner.consumer(id).await?) {
                    return Ok(false);
                }
                // Until somebody has replaced it, if anybody does.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                    if is_other(self.inner.consumer(id).await?) {
                        break;
                    }
                }
                None
            }
            at => at,
        };
        if !self.inner.remove_consumer(id, at).await? {
            return Ok(self.has(Fault::ConsumersLeftSayGone));
        }
        if self.has(Fault::StatesOutliveTheirConsumer) {
            self.memory().left_states.extend(states);
        }
        if self.has(Fault::RejectsOutliveTheirConsumer) {
            self.memory().left_rejects.extend(rejects);
        }
        Ok(true)
    }

    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied> {
        let stored = self.inner.consumer_states(vec![id]).await?.pop().map(|(_, epoch, _)| epoch);
        if self.has(Fault::StateFenceIgnored) {
            let epoch = epoch.max(stored.unwrap_or(epoch));
            return self.inner.store_consumer_state(epoch, id, state).await;
        }
        if self.has(Fault::EqualEpochsAreFenced) && stored == Some(epoch) {
            return Ok(Applied::Fenced { epoch });
        }
        let late = self.is_late(id, Fault::LateStatesStay, Fault::CrossingStatesStay).await?;
        let answer = self.inner.store_consumer_state(epoch, id, state.clone()).await?;
        if answer != Applied::Missing {
            return Ok(answer);
        }
        let mut memory = self.memory();
        if late {
            memory.left_states.push((id, epoch, state));
        }
        let says_done = self.has(Fault::LateStatesSayDone) && memory.consumers.contains(&id);
        Ok(if says_done { Applied::Done } else { answer })
    }

    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        if self.has(Fault::ClaimsFenceNothing) {
            let stored = self.inner.consumer_states(vec![id]).await?.pop();
            let there = self.inner.consumer(id).await?.is_some();
            return Ok(match stored {
                Some((_, by, _)) if by > epoch => None,
                Some((.., state)) => Some(state),
                None => there.then(ConsumerState::default),
            });
        }
        let claimed = self.inner.claim_consumer_state(epoch, id).await?;
        if claimed.is_some() && self.has(Fault::ClaimsForgetTheState) {
            let empty = ConsumerState::default();
            self.inner.store_consumer_state(epoch, id, empty.clone()).await?;
            return Ok(Some(empty));
        }
        Ok(claimed)
    }

    async fn consumer_states(
        &self,
        mut ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        if self.has(Fault::StatesOfOneConsumerAlone) {
            ids.truncate(1);
        }
        let mut states = self.inner.consumer_states(ids).await?;
        if self.has(Fault::StateEpochsLost) {
            states.iter_mut().for_each(|(_, epoch, _)| *epoch = Epoch::new(0));
        }
        Ok(states)
    }

    async fn insert_rejects(&self, mut rejects: Vec<Reject>, most: usize) -> Result<()> {
        self.leave_late_ones(&rejects).await?;
        if self.has(Fault::RejectsStayAsTheyWere) {
            let mut new = Vec::new();
            for reject in rejects {
                if self.inner.rejects(reject.consumer, vec![reject.id]).await?.is_empty() {
                    new.push(reject);
                }
            }
            rejects = new;
        }
        if self.has(Fault::RejectsKeptFirst) {
            let of: Vec<ConsumerId> = rejects.iter().map(|reject| reject.consumer).collect();
            self.inner.insert_rejects(rejects, usize::MAX).await?;
            return self.drop_beyond(of, |all| all.split_off(most.min(all.len()))).await;
        }
        self.inner
            .insert_rejects(rejects, one_more(most, self.has(Fault::OneRejectMoreIsKept)))
            .await?;
        if self.has(Fault::EveryConsumerKeepsTheLast) {
            let of = self.everyone().await?;
            let beyond = |all: &mut Vec<RejectId>| {
                all.truncate(all.len().saturating_sub(most));
                mem::take(all)
            };
            self.drop_beyond(of, beyond).await?;
        }
        Ok(())
    }

    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        let mut listing = self.inner.list_rejects(consumer, page).await?;
        if self.has(Fault::RejectsNewestFirst) {
            listing.items.reverse();
        }
        if self.has(Fault::RejectTotalIsOfThePage) {
            listing.total = listing.items.len() as u64;
        }
        if self.has(Fault::RejectBodiesAreText) {
            listing.items.iter_mut().for_each(as_text);
        }
        Ok(listing)
    }

    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>> {
        let mut rejects = Vec::new();
        for of in self.affected(consumer, Fault::RejectsOfAnyConsumer).await? {
            rejects.extend(self.inner.rejects(of, ids.clone()).await?);
        }
        Ok(rejects)
    }

    async fn remove_rejects(&self, consumer: ConsumerId, mut ids: Vec<RejectId>) -> Result<()> {
        if self.has(Fault::RemovesAllRejects) {
            let all = self.inner.list_rejects(consumer, ALL).await?.items;
            ids.extend(all.iter().map(|reject| reject.id));
        }
        for of in self.affected(consumer, Fault::RemovesRejectsOfAnyConsumer).await? {
            self.inner.remove_rejects(of, ids.clone()).await?;
        }
        Ok(())
    }

    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        mut before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        if self.has(Fault::ExpiresAtTheTimeItself) {
            before = Timestamp::from_unix_nanos(before.unix_nanos() + 1);
        }
        let most = one_more(limit, self.has(Fault::ExpiresOneRejectMore));
        let expired = self.inner.expire_rejects(consumer, before, most).await?;
        for of in self.affected(consumer, Fault::ExpiresRejectsOfAnyConsumer).await? {
            if of != consumer {
                self.inner.expire_rejects(of, before, most).await?;
            }
        }
        Ok(if self.has(Fault::ExpiringSaysTheLimit) { limit as u64 } else { expired })
    }
}

impl BrokenRepository {
    async fn everyone(&self) -> Result<Vec<ConsumerId>> {
        self.inner.scan_consumers(None).map_ok(|consumer| consumer.id).try_collect().await
    }

    /// The consumer named; with the fault everyone.
    async fn affected(&self, consumer: ConsumerId, fault: Fault) -> Result<Vec<ConsumerId>> {
        if self.has(fault) { self.everyone().await } else { Ok(vec![consumer]) }
    }

    /// Gives a consumer what was left under its id.
    async fn put_back(&self, id: ConsumerId) -> Result<()> {
        let (states, rejects) = {
            let mut memory = self.memory();
            (mem::take(&mut memory.left_states), mem::take(&mut memory.left_rejects))
        };
        for (of, epoch, state) in states {
            if of == id {
                self.inner.store_consumer_state(epoch, id, state).await?;
            }
        }
        let rejects = rejects.into_iter().filter(|reject| reject.consumer == id);
        self.inner.insert_rejects(rejects.collect(), usize::MAX).await
    }

    /// Stores a replaced consumer anew, without its state or without its rejects.
    async fn lose_what_is_held(&self, stored: Consumer) -> Result<()> {
        let [no_state, no_rejects] =
            [Fault::ReplacedConsumersLoseTheirState, Fault::ReplacedConsumersLoseTheirRejects]
                .map(|fault| self.has(fault));
        let id = stored.id;
        if no_state {
            let rejects = self.inner.list_rejects(id, ALL).await?.items;
            self.inner.remove_consumer(id, None).await?;
            self.inner.insert_consumer(stored).await?;
            self.inner.insert_rejects(rejects, usize::MAX).await?;
        } else if no_rejects {
            let rejects = self.inner.list_rejects(id, ALL).await?.items;
            let ids = rejects.iter().map(|reject| reject.id).collect();
            self.inner.remove_rejects(id, ids).await?;
        }
        Ok(())
    }

    /// Whether what is stored for a consumer that is gone is left there: always, or if it was still there just
    /// before.
    async fn is_late(&self, id: ConsumerId, always: Fault, crossing: Fault) -> Result<bool> {
        if self.has(crossing) {
            let there = self.inner.consumer(id).await?.is_some();
            // Whoever removes it has its chance now.
            tokio::task::yield_now().await;
            return Ok(there);
        }
        Ok(self.has(always) && self.memory().consumers.contains(&id))
    }

    /// Keeps rejects of consumers that are gone, or were never there, for when one gets their id.
    async fn leave_late_ones(&self, rejects: &[Reject]) -> Result<()> {
        for reject in rejects {
            let id = reject.consumer;
            let late = self.is_late(id, Fault::LateRejectsStay, Fault::CrossingRejectsStay).await?;
            let waits =
                self.has(Fault::RejectsOfNobodyWait) && !self.memory().consumers.contains(&id);
            if (late || waits) && self.inner.consumer(id).await?.is_none() {
                self.memory().left_rejects.push(reject.clone());
            }
        }
        Ok(())
    }

    /// Removes those of each consumer's rejects, the oldest first, that `beyond` gives.
    async fn drop_beyond(
        &self,
        of: Vec<ConsumerId>,
        beyond: impl Fn(&mut Vec<RejectId>) -> Vec<RejectId> + Send,
    ) -> Result<()> {
        for id in of {
            let all = self.inner.list_rejects(id, ALL).await?.items;
            let mut all = all.iter().map(|reject| reject.id).collect();
            self.inner.remove_rejects(id, beyond(&mut all)).await?;
        }
        Ok(())
    }
}

fn as_text(reject: &mut Reject) {
    let text = reject.body.take().map(|body| String::from_utf8_lossy(&body).into_owned());
    reject.body = text.map(Bytes::from);
}
