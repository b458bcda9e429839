//! Takes clients' wishes; gives them back by id, by resource and by partition.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::subscription::Mode;
use crate::model::{
    Generation, PartitionId, ResourceId, SlotHash, Subscription, SubscriptionId, SubscriptionStatus,
};
use crate::port::{Listing, Page, Scan};

/// Keeps subscriptions and the partitions they sit in.
///
/// # Contract
/// - **RS1** `insert_subscription` stores the subscription together with a partition of the
///   store's choice, in one write; what it returns is what is stored. Inserting the same id again
///   changes nothing and returns what is stored.
/// - **RS2** A partition never holds more than `partition_limit` subscriptions, however many are
///   inserted at once; seats that were left are taken again.
/// - **RS3** Among the subscriptions of a resource that are not deleting no url is used twice:
///   the later insert or replacement is [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) on the
///   field that has it ([`field_of_url`](crate::model::SubscriptionSpec::field_of_url)) and changes nothing.
/// - **RS4** `partitions` names every partition with a subscription whose insert returned before
///   the call.
/// - **RS5** `members` gives every subscription of the partition whose insert returned before the
///   call, with its generation, status, mode, number of lanes, the slot that is reserved for
///   them, and whether it has a filter, except deleting ones.
/// - **RS6** `replace_subscription` takes place only at the generation named and stores the next
///   one; of any number of concurrent replacements one succeeds, the others learn what is there.
///   Id, resource, partition and creation time stay; all else is what was given.
/// - **RS7** `list_subscriptions` gives those of the resource that are not deleting, oldest first
///   (by id), with their total; `scan_subscriptions` gives all of every resource, deleting ones
///   too, in id order after the one named.
/// - **RS8** `remove_subscription` forgets the subscription, its seat and its lanes' states, those too
///   that are being stored at the same time; one that is not there is no error.
/// - **RS9** Secrets, data and templates come back exactly as they were stored.
/// - **RS10** `subscriptions_in` gives every subscription, deleting ones too, whose insert returned
///   before the call and that [the query](SlotQuery::finds) finds: each once, and no others. Their
///   order is the store's own and never changes, so that a scan after one of them goes on where
///   another ended, also if that one is gone meanwhile. Its cost grows with what is found, not with
///   the subscriptions there are.
/// - **RS11** `scan_members` gives of the subscriptions of all partitions of all resources what
///   `members` gives, each once, in an order of its own. It is asked often: it reads no settings.
#[async_trait]
pub trait SubscriptionStore: fmt::Debug + Send + Sync + 'static {
    /// Stores a new subscription and finds it a partition; its own `partition` is ignored.
    async fn insert_subscription(
        &self,
        subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription>;

    /// Reads a subscription, in whatever state it is.
    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>>;

    /// Reads one page of a resource's subscriptions.
    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>>;

    /// Reads all subscriptions after `after`.
    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription>;

    /// Reads the subscriptions whose lanes may be in some slots, those after `after`.
    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription>;

    /// Names the partitions of a resource, in order.
    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>>;

    /// Reads who sits in a partition.
    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>>;

    /// Reads who sits in any partition of any resource.
    fn scan_members(&self) -> Scan<'_, Member>;

    /// Replaces a subscription (settings, status, reason) that is still at `generation`.
    async fn replace_subscription(
        &self,
        generation: Generation,
        subscription: Subscription,
    ) -> Result<Replaced>;

    /// Marks a subscription as deleting whatever its record holds, as a replacement would: it keeps
    /// its seat, frees its urls, and its generation rises. Tells whether it was there to be marked.
    ///
    /// For one that cannot be read, and so cannot be replaced (RU6).
    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool>;

    /// Forgets a subscription.
    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()>;
}

/// Asks for the subscriptions that belong to some slots, or have yet to leave them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotQuery {
    /// Those that are hashed onto them, and perhaps some more: in ascending order, with gaps between
    /// them.
    pub hashes: Vec<RangeInclusive<SlotHash>>,
    /// Those that are said to be in one of these, or to leave it.
    pub slots: BTreeSet<u32>,
}

impl SlotQuery {
    /// The slots named, where ids are hashed onto so many: what is reserved has a higher number.
    pub fn new(named: impl IntoIterator<Item = u32>, hashed: u32) -> Self {
        let slots: BTreeSet<u32> = named.into_iter().collect();
        Self { hashes: SlotHash::ranges(slots.iter().copied(), hashed), slots }
    }

    /// Whether a subscription is one of those asked for.
    pub fn finds(&self, subscription: &Subscription) -> bool {
        let numbers = [subscription.slot, subscription.moving_from];
        self.has_hash(SlotHash::of(subscription.id))
            || numbers.into_iter().flatten().any(|slot| self.slots.contains(&slot))
    }

    /// Whether subscriptions of this hash are asked for, whatever else is known of them.
    pub fn has_hash(&self, hash: SlotHash) -> bool {
        self.hashes.iter().any(|range| range.contains(&hash))
    }
}

/// Who sits in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Which subscription.
    pub subscription: SubscriptionId,
    /// Its generation, which spread copies into the rows.
    pub generation: Generation,
    /// Its status.
    pub status: SubscriptionStatus,
    /// How many lanes it has, so that spread knows whom to wake.
    pub lanes: u16,
    /// The slot that is reserved for them, if any, so that spread knows where.
    pub slot: Option<u32>,
    /// Whether its lanes send on their own.
    pub mode: Mode,
    /// Whether it has a filter, which spread asks before it makes a row.
    pub filtered: bool,
}

impl Member {
    /// A member as a backend hands it out.
    pub const fn new(
        subscription: SubscriptionId,
        generation: Generation,
        status: SubscriptionStatus,
        lanes: u16,
    ) -> Self {
        let (slot, mode, filtered) = (None, Mode::Active, false);
        Self { subscription, generation, status, lanes, slot, mode, filtered }
    }

    /// The same, with a slot reserved for its lanes.
    #[must_use]
    pub const fn pinned(mut self, slot: Option<u32>) -> Self {
        self.slot = slot;
        self
    }

    /// The same, in another mode than the active one.
    #[must_use]
    pub const fn in_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// The same, with a filter or without.
    #[must_use]
    pub const fn with_filter(mut self, filtered: bool) -> Self {
        self.filtered = filtered;
        self
    }

    /// What spread has to know of a subscription.
    pub fn of(subscription: &Subscription) -> Self {
        let lanes = subscription.spec.delivery().lanes();
        Self::new(subscription.id, subscription.generation, subscription.status, lanes)
            .pinned(subscription.slot)
            .in_mode(subscription.spec.mode())
            .with_filter(subscription.spec.filter().is_some())
    }
}

/// What became of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "one per call, and unboxed it is easier to use")]
pub enum Replaced<T = Subscription> {
    /// It took place; this is stored now.
    Done(T),
    /// Another change was faster; this is stored.
    Conflict(T),
    /// There is none of that id.
    Missing,
}
