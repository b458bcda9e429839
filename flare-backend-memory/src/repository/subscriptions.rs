//! Takes clients' wishes; gives them by id, and who sits in which partition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{RwLock, RwLockReadGuard};

use async_trait::async_trait;
use flare_core::model::subscription::UrlTemplate;
use flare_core::model::{
    Generation, PartitionId, RecordName, ResourceId, SlotHash, Subscription, SubscriptionId,
    SubscriptionStatus, Unreadable,
};
use flare_core::port::{Listing, Member, Page, Replaced, Scan, SlotQuery, SubscriptionStore};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;

use super::MemoryRepository;
use super::resources::list;
use super::spoilt::unreadable;
use crate::{BACKEND, read, write};

/// How many subscriptions a scan copies at a time.
const SCAN_PAGE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Subscriptions(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: BTreeMap<SubscriptionId, Subscription>,
    by_hash: BTreeSet<Hashed>,
    /// Those that say which slot they are in, or leave.
    by_slot: BTreeSet<(u32, Hashed)>,
    by_resource: HashMap<ResourceId, Family>,
}

/// A subscription, in the order in which those of some slots are read.
type Hashed = (SlotHash, SubscriptionId);

fn hashed(id: SubscriptionId) -> Hashed {
    (SlotHash::of(id), id)
}

impl Table {
    fn store(&mut self, subscription: Subscription) {
        let id = subscription.id;
        self.remove(id);
        self.by_hash.insert(hashed(id));
        let slots = [subscription.slot, subscription.moving_from].into_iter().flatten();
        self.by_slot.extend(slots.map(|slot| (slot, hashed(id))));
        self.by_id.insert(id, subscription);
    }

    fn remove(&mut self, id: SubscriptionId) -> Option<Subscription> {
        let removed = self.by_id.remove(&id)?;
        self.by_hash.remove(&hashed(id));
        for slot in [removed.slot, removed.moving_from].into_iter().flatten() {
            self.by_slot.remove(&(slot, hashed(id)));
        }
        Some(removed)
    }

    /// The first subscriptions of some slots after one of them.
    fn in_slots(&self, query: &SlotQuery, after: Option<Hashed>) -> Vec<Subscription> {
        const LAST: SubscriptionId = SubscriptionId::from_bytes([u8::MAX; 16]);
        const FIRST: SubscriptionId = SubscriptionId::from_bytes([0; 16]);
        let later = |it: &&Hashed| after.is_none_or(|after| **it > after);
        let mut found = BTreeSet::new();
        for range in &query.hashes {
            let start = match after {
                Some(after) if after.0 > *range.end() => continue,
                Some(after) if after.0 >= *range.start() => Bound::Excluded(after),
                _ => Bound::Included((*range.start(), FIRST)),
            };
            let end = Bound::Included((*range.end(), LAST));
            let room = SCAN_PAGE.saturating_sub(found.len());
            found.extend(self.by_hash.range((start, end)).take(room).copied());
        }
        for slot in &query.slots {
            let least = |hash| (*slot, (SlotHash::new(hash), FIRST));
            let most = (*slot, (SlotHash::new(u32::MAX), LAST));
            let there = self.by_slot.range(least(0)..=most).map(|(_, it)| it);
            found.extend(there.filter(later).take(SCAN_PAGE).copied());
        }
        let first = found.into_iter().take(SCAN_PAGE);
        first.filter_map(|(_, id)| self.by_id.get(&id).cloned()).collect()
    }
}

/// Subscriptions that stay what they are while this is held.
pub(super) struct Unchanged<'a>(RwLockReadGuard<'a, Table>);

impl Subscriptions {
    pub(super) fn hold(&self) -> Unchanged<'_> {
        Unchanged(read(&self.0))
    }
}

impl Unchanged<'_> {
    pub(super) fn has(&self, id: SubscriptionId) -> bool {
        self.0.by_id.contains_key(&id)
    }
}

/// The subscriptions of one resource.
#[derive(Debug, Default)]
struct Family {
    partitions: BTreeMap<PartitionId, BTreeMap<SubscriptionId, Member>>,
    /// Who uses which url, deleting ones apart.
    urls: HashMap<String, SubscriptionId>,
}

#[async_trait]
impl SubscriptionStore for MemoryRepository {
    async fn insert_subscription(
        &self,
        mut subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription> {
        let mut table = write(&self.subscriptions.0);
        if let Some(stored) = table.by_id.get(&subscription.id) {
            return self.readable_subscription("insert_subscription", stored.clone());
        }
        let family = table.by_resource.entry(subscription.resource).or_default();
        family.check_urls("insert_subscription", &subscription)?;
        subscription.partition = family.free_partition(partition_limit.max(1) as usize);
        family.seat(&subscription);
        table.store(subscription.clone());
        Ok(subscription)
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>> {
        let found = read(&self.subscriptions.0).by_id.get(&id).cloned();
        found.map(|found| self.readable_subscription("subscription", found)).transpose()
    }

    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        let table = read(&self.subscriptions.0);
        let Some(family) = table.by_resource.get(&resource) else {
            return Ok(Listing::new(Vec::new(), 0));
        };
        let mut ids: Vec<SubscriptionId> = family.members().map(|it| it.subscription).collect();
        ids.sort_unstable();
        let subscriptions = ids.iter().filter_map(|id| table.by_id.get(id));
        let listing = list(subscriptions, ids.len(), page);
        let read = |it| self.readable_subscription("list_subscriptions", it);
        Listing::of_read(listing.items.into_iter().map(read), listing.total)
    }

    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        self.pages("scan_subscriptions", after, |table, after| {
            let start = after.map_or(Bound::Unbounded, Bound::Excluded);
            let range = table.by_id.range((start, Bound::Unbounded));
            range.take(SCAN_PAGE).map(|(_, it)| it.clone()).collect()
        })
    }

    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        self.pages("subscriptions_in", after, move |table, after| {
            table.in_slots(&slots, after.map(hashed))
        })
    }

    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>> {
        let table = read(&self.subscriptions.0);
        let family = table.by_resource.get(&resource);
        Ok(family.map(|family| family.partitions.keys().copied().collect()).unwrap_or_default())
    }

    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>> {
        let table = read(&self.subscriptions.0);
        let seats = table.by_resource.get(&resource).and_then(|it| it.partitions.get(&partition));
        Ok(seats.map(|seats| seats.values().copied().filter(is_told).collect()).unwrap_or_default())
    }

    fn scan_members(&self) -> Scan<'_, Member> {
        let table = read(&self.subscriptions.0);
        let members = table.by_resource.values().flat_map(Family::members);
        let told: Vec<Result<Member>> = members.copied().filter(is_told).map(Ok).collect();
        stream::iter(told).boxed()
    }

    async fn replace_subscription(
        &self,
        generation: Generation,
        mut subscription: Subscription,
    ) -> Result<Replaced> {
        let mut table = write(&self.subscriptions.0);
        let Some(stored) = table.by_id.get(&subscription.id).cloned() else {
            return Ok(Replaced::Missing);
        };
        let stored = self.readable_subscription("replace_subscription", stored)?;
        if stored.generation != generation {
            return Ok(Replaced::Conflict(stored));
        }
        subscription.generation = generation.next();
        subscription.resource = stored.resource;
        subscription.partition = stored.partition;
        subscription.created_at = stored.created_at;
        let family = table.by_resource.entry(stored.resource).or_default();
        family.check_urls("replace_subscription", &subscription)?;
        family.free_urls(&stored);
        family.seat(&subscription);
        table.store(subscription.clone());
        Ok(Replaced::Done(subscription))
    }

    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool> {
        let mut table = write(&self.subscriptions.0);
        let Some(stored) = table.by_id.get(&id).cloned() else { return Ok(false) };
        if stored.status == SubscriptionStatus::Deleting {
            return Ok(false);
        }
        let mut deleting = stored.clone();
        deleting.generation = stored.generation.next();
        deleting.status = SubscriptionStatus::Deleting;
        deleting.reason = None;
        let family = table.by_resource.entry(stored.resource).or_default();
        family.free_urls(&stored);
        family.seat(&deleting);
        table.store(deleting);
        Ok(true)
    }

    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()> {
        let mut table = write(&self.subscriptions.0);
        if let Some(stored) = table.remove(id)
            && let Some(family) = table.by_resource.get_mut(&stored.resource)
        {
            family.leave(&stored);
            if family.partitions.is_empty() {
                table.by_resource.remove(&stored.resource);
            }
        }
        drop(table);
        self.rows.forget_lanes(id);
        self.spoilt.forget_all(|name| match name {
            RecordName::Subscription(it) => *it == id,
            RecordName::Lane(lane) => lane.subscription == id,
            _ => false,
        });
        Ok(())
    }
}

impl MemoryRepository {
    /// How many partitions a resource has, and who sits in the only one.
    pub(super) fn seats(&self, resource: ResourceId) -> (usize, Vec<Member>) {
        let table = read(&self.subscriptions.0);
        let Some(family) = table.by_resource.get(&resource) else { return (0, Vec::new()) };
        let members = match family.partitions.len() {
            1 => family.members().copied().collect(),
            _ => Vec::new(),
        };
        (family.partitions.len(), members)
    }

    /// What `page` gives after one subscription, then after the last that it gave, and so on.
    fn pages<'a>(
        &'a self,
        operation: &'static str,
        after: Option<SubscriptionId>,
        page: impl Fn(&Table, Option<SubscriptionId>) -> Vec<Subscription> + Send + Sync + 'a,
    ) -> Scan<'a, Subscription> {
        let pages = stream::unfold((after, page), move |(after, page)| async move {
            let found = page(&read(&self.subscriptions.0), after);
            let last = found.last()?.id;
            let read = |it| self.readable_subscription(operation, it);
            let found: Vec<Result<Subscription>> = found.into_iter().map(read).collect();
            Some((stream::iter(found), (Some(last), page)))
        });
        pages.flatten().boxed()
    }

    fn readable_subscription(
        &self,
        operation: &'static str,
        subscription: Subscription,
    ) -> Result<Subscription> {
        match self.spoilt.why(|| RecordName::Subscription(subscription.id)) {
            None => Ok(subscription),
            Some(why) => {
                let record = Unreadable::new(RecordName::Subscription(subscription.id), why);
                let deleting = subscription.status == SubscriptionStatus::Deleting;
                let record = record.of(Some(subscription.resource)).deleted(deleting);
                Err(unreadable(operation, record))
            }
        }
    }
}

/// Deleting subscriptions keep their seat until they are removed, but are told nothing.
fn is_told(member: &Member) -> bool {
    member.status != SubscriptionStatus::Deleting
}

impl Family {
    fn members(&self) -> impl Iterator<Item = &Member> {
        self.partitions.values().flat_map(BTreeMap::values).filter(|member| is_told(member))
    }

    fn check_urls(&self, operation: &'static str, subscription: &Subscription) -> Result<()> {
        if subscription.status == SubscriptionStatus::Deleting {
            return Ok(());
        }
        for url in subscription.spec.urls() {
            if let Some(user) = self.urls.get(&url).filter(|user| **user != subscription.id) {
                let field = subscription.spec.field_of_url(&url);
                let url = UrlTemplate::show_key(&url);
                let detail = format!("{url} is used by subscription {user} of the same resource");
                return Err(Error::new(ErrorKind::Conflict, operation)
                    .with_backend(BACKEND)
                    .with_field(field)
                    .with_detail(detail));
            }
        }
        Ok(())
    }

    fn free_partition(&self, limit: usize) -> PartitionId {
        let free = self.partitions.iter().find(|(_, seats)| seats.len() < limit);
        free.map(|(partition, _)| *partition).unwrap_or_else(|| {
            // Numbers of partitions that were left are used again, lowest first.
            let taken = self.partitions.keys().zip(0..).take_while(|(it, n)| it.get() == *n);
            PartitionId::new(taken.count() as u32)
        })
    }

    fn seat(&mut self, subscription: &Subscription) {
        let member = Member::of(subscription);
        self.partitions.entry(subscription.partition).or_default().insert(subscription.id, member);
        if is_told(&member) {
            for url in subscription.spec.urls() {
                self.urls.insert(url, subscription.id);
            }
        }
    }

    fn free_urls(&mut self, subscription: &Subscription) {
        for url in subscription.spec.urls() {
            if self.urls.get(&url) == Some(&subscription.id) {
                self.urls.remove(&url);
            }
        }
    }

    fn leave(&mut self, subscription: &Subscription) {
        self.free_urls(subscription);
        if let Some(seats) = self.partitions.get_mut(&subscription.partition) {
            seats.remove(&subscription.id);
            if seats.is_empty() {
                self.partitions.remove(&subscription.partition);
            }
        }
    }
}
