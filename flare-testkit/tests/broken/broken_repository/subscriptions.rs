//! Breaks RS1 to RS11, and of RU what is about subscriptions.

use async_trait::async_trait;
use flare_core::model::subscription::Mode;
use flare_core::model::{
    Generation, PartitionId, ResourceId, Subscription, SubscriptionId, SubscriptionInput,
    SubscriptionSpec, SubscriptionStatus,
};
use flare_core::port::{Listing, Member, Page, Replaced, Scan, SlotQuery, SubscriptionStore};
use flare_core::{Error, Result};
use futures::{StreamExt, TryStreamExt, stream};

use super::{BrokenRepository, Fault, changed, ending};

#[async_trait]
impl SubscriptionStore for BrokenRepository {
    async fn insert_subscription(
        &self,
        subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription> {
        let given = subscription.clone();
        let limit = partition_limit + u32::from(self.has(Fault::PartitionOverItsLimit));
        match self.inner.insert_subscription(subscription, limit).await {
            Ok(_) if self.has(Fault::InsertReturnsWhatWasGiven) => Ok(given),
            Err(_) if self.has(Fault::UrlConflictPasses) => Ok(given),
            answer => answer,
        }
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>> {
        let mut subscription = self.inner.subscription(id).await?;
        if let Some(subscription) = subscription.as_mut().filter(|_| self.has(Fault::SecretsLost)) {
            let input = SubscriptionInput::from(subscription.spec.clone());
            subscription.spec = input.without_signing().create();
        }
        Ok(subscription)
    }

    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        let mut listing = self.inner.list_subscriptions(resource, page).await?;
        if let Some(unreadable) = listing.unreadable.first()
            && self.has(Fault::ListFailsWithUnreadable)
        {
            return Err(Error::of_record("list_subscriptions", unreadable.clone()));
        }
        if self.has(Fault::SubscriptionsNewestFirst) {
            listing.items.reverse();
        }
        Ok(listing)
    }

    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        if self.has(Fault::ScanEndsAtUnreadable) {
            return ending(self.inner.scan_subscriptions(after));
        }
        let skips = self.has(Fault::ScanSkipsDeletingOnes);
        changed(self.inner.scan_subscriptions(after), move |found| {
            found.retain(|it| !skips || it.status != SubscriptionStatus::Deleting);
        })
    }

    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        let after = after.filter(|_| !self.has(Fault::SlotScanBeginsAnew));
        if self.has(Fault::SlotsGiveEverybody) {
            return self.inner.subscriptions_in(SlotQuery::new([0], 1), after);
        }
        if self.has(Fault::ScanEndsAtUnreadable) {
            return ending(self.inner.subscriptions_in(slots, after));
        }
        let [leaving, reserved] =
            [Fault::SlotsForgetWhoLeaves, Fault::SlotsForgetWhoIsReserved].map(|it| self.has(it));
        let asked = slots.clone();
        changed(self.inner.subscriptions_in(slots, after), move |found| {
            found.retain(|it| {
                let mut seen = it.clone();
                seen.moving_from = seen.moving_from.filter(|_| !leaving);
                seen.slot = seen.slot.filter(|_| !reserved);
                asked.finds(&seen)
            });
        })
    }

    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>> {
        let mut partitions = self.inner.partitions(resource).await?;
        if self.has(Fault::NewestPartitionUnnamed) {
            partitions.pop();
        }
        Ok(partitions)
    }

    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>> {
        let mut members = self.inner.members(resource, partition).await?;
        if self.has(Fault::MembersAtTheFirstGeneration) {
            members.iter_mut().for_each(|member| member.generation = Generation::new(1));
        }
        if self.has(Fault::MembersAreActive) {
            members.iter_mut().for_each(|member| member.mode = Mode::Active);
        }
        if self.has(Fault::MembersAreUnfiltered) {
            members.iter_mut().for_each(|member| member.filtered = false);
        }
        if self.has(Fault::UnreadableIsNoMember) {
            let mut readable = Vec::new();
            for member in members {
                if self.inner.subscription(member.subscription).await.is_ok() {
                    readable.push(member);
                }
            }
            members = readable;
        }
        if self.has(Fault::DeletingOnesAreMembers) {
            let everybody: Vec<_> = self.inner.scan_subscriptions(None).try_collect().await?;
            let deleting = everybody.iter().filter(|it| {
                it.resource == resource
                    && it.partition == partition
                    && it.status == SubscriptionStatus::Deleting
            });
            members.extend(deleting.map(Member::of));
        }
        Ok(members)
    }

    fn scan_members(&self) -> Scan<'_, Member> {
        let inner = &self.inner;
        let (alone, deleting, twice) = (
            self.has(Fault::MembersOfOneResourceAlone),
            self.has(Fault::DeletingOnesAreScanned),
            self.has(Fault::MembersScannedTwice),
        );
        let read = async move {
            let mut members: Vec<Member> = inner.scan_members().try_collect().await?;
            let everybody: Vec<_> = if alone || deleting {
                inner.scan_subscriptions(None).try_collect().await?
            } else {
                Vec::new()
            };
            if let Some(first) = everybody.first().filter(|_| alone) {
                let its =
                    |id| everybody.iter().any(|it| it.id == id && it.resource == first.resource);
                members.retain(|member| its(member.subscription));
            }
            if deleting {
                let going = everybody.iter().filter(|it| it.status == SubscriptionStatus::Deleting);
                members.extend(going.map(Member::of));
            }
            if twice {
                members.extend(members.first().copied());
            }
            Ok::<_, Error>(stream::iter(members.into_iter().map(Ok)))
        };
        stream::once(read).try_flatten().boxed()
    }

    async fn replace_subscription(
        &self,
        mut generation: Generation,
        subscription: Subscription,
    ) -> Result<Replaced> {
        if self.has(Fault::ReplacesAtAnyGeneration)
            && let Some(stored) = self.inner.subscription(subscription.id).await?
        {
            generation = stored.generation;
        }
        let given = subscription.clone();
        if self.has(Fault::ReplacementInsertsAnew) {
            let mut anew = subscription;
            anew.generation = generation.next();
            self.inner.remove_subscription(anew.id).await?;
            return self.inner.insert_subscription(anew, 1_000).await.map(Replaced::Done);
        }
        match self.inner.replace_subscription(generation, subscription).await {
            Err(_) if self.has(Fault::ReplacementTakesUrls) => Ok(Replaced::Done(given)),
            Ok(Replaced::Conflict(_)) if self.has(Fault::LoserLearnsNothing) => {
                Ok(Replaced::Conflict(given))
            }
            answer => answer,
        }
    }

    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool> {
        if self.has(Fault::DiscardReadsFirst) {
            self.inner.subscription(id).await?;
        }
        self.inner.discard_subscription(id).await
    }

    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()> {
        let stored = self.inner.subscription(id).await.unwrap_or_default();
        let lanes = self.inner.lanes(id).await?.items;
        self.inner.remove_subscription(id).await?;
        if self.has(Fault::LanesOutliveTheirSubscription) {
            self.memory().outlived.extend(lanes);
        }
        if let Some(stored) = stored.filter(|_| self.has(Fault::SeatsStayEmpty)) {
            self.seat_a_ghost(stored).await?;
        }
        Ok(())
    }
}

impl BrokenRepository {
    /// Takes the seat of a subscription that left with one nobody sees.
    async fn seat_a_ghost(&self, mut ghost: Subscription) -> Result<()> {
        let number = {
            let mut memory = self.memory();
            memory.ghosts += 1;
            memory.ghosts
        };
        let mut id = *ghost.id.as_bytes();
        id[8..].copy_from_slice(&number.to_be_bytes());
        ghost.id = SubscriptionId::from_bytes(id);
        let url = format!("http://ghost.example/{number}");
        ghost.spec = SubscriptionSpec::post(url).build().unwrap();
        let mut ghost = self.inner.insert_subscription(ghost, 2).await?;
        ghost.status = SubscriptionStatus::Deleting;
        self.inner.replace_subscription(ghost.generation, ghost).await?;
        Ok(())
    }
}
