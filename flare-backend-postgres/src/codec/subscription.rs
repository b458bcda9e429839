//! Takes subscriptions' records; gives subscriptions, and of one that cannot be read what spread needs.

use flare_core::Result;
use flare_core::model::subscription::Mode;
use flare_core::model::{
    Epoch, Generation, LaneId, LaneState, PartitionId, RecordName, ResourceId, SlotHash,
    Subscription, SubscriptionId, SubscriptionSpec, SubscriptionStatus, Unreadable, WhyUnreadable,
};
use flare_core::port::{Member, SlotQuery};
use tokio_postgres::Row;
use uuid::Uuid;

use super::resource::internal;
use super::{
    Decoded, check_needs, damaged, read_epoch, read_generation, read_small, read_time, read_word,
    unreadable,
};

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredSubscription {
    id: Uuid,
    resource: Uuid,
    partition: i64,
    generation: i64,
    status: String,
    slot: Option<i64>,
    moving_from: Option<i64>,
    least_epoch: i64,
    reason: Option<String>,
    created: i64,
    updated: i64,
    resumed: Option<i64>,
    spec: String,
    needs: Option<i32>,
    left_at: Option<i64>,
}

impl StoredSubscription {
    /// Reads `id, resource, partition, generation, status, slot, moving_from, least_epoch, reason, created,
    /// updated, resumed, spec, needs, left_at`.
    pub(crate) fn of(row: &Row) -> std::result::Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            resource: row.try_get(1)?,
            partition: row.try_get(2)?,
            generation: row.try_get(3)?,
            status: row.try_get(4)?,
            slot: row.try_get(5)?,
            moving_from: row.try_get(6)?,
            least_epoch: row.try_get(7)?,
            reason: row.try_get(8)?,
            created: row.try_get(9)?,
            updated: row.try_get(10)?,
            resumed: row.try_get(11)?,
            spec: row.try_get(12)?,
            needs: row.try_get(13)?,
            left_at: row.try_get(14)?,
        })
    }

    /// Its id, after which a scan goes on.
    pub(crate) fn id(&self) -> SubscriptionId {
        SubscriptionId::from_bytes(self.id.into_bytes())
    }

    /// Whether it is said to be in one of these slots, or to leave it, and is not found by its hash.
    pub(crate) fn is_placed_in(&self, slots: &SlotQuery) -> bool {
        let named = |slot: Option<i64>| {
            slot.and_then(|slot| u32::try_from(slot).ok())
                .is_some_and(|it| slots.slots.contains(&it))
        };
        !slots.has_hash(SlotHash::of(self.id())) && (named(self.slot) || named(self.moving_from))
    }

    /// The subscription, or the error that names it.
    pub(crate) fn subscription(&self, operation: &'static str) -> Result<Subscription> {
        self.read().map_err(|why| unreadable(operation, self.unreadable(why)))
    }

    fn read(&self) -> Decoded<Subscription> {
        check_needs(self.needs)?;
        let spec: SubscriptionSpec = read_spec(&self.spec)?;
        let mut subscription = Subscription::new(
            self.id(),
            ResourceId::from_bytes(self.resource.into_bytes()),
            spec,
            read_time(self.created),
        );
        subscription.partition = PartitionId::new(read_small(self.partition, "partition")?);
        subscription.generation = read_generation(self.generation)?;
        subscription.status = read_word(&self.status, "status")?;
        subscription.reason.clone_from(&self.reason);
        subscription.updated_at = read_time(self.updated);
        subscription.resumed_at = self.resumed.map(read_time);
        subscription.slot = read_slot(self.slot, "slot")?;
        subscription.moving_from = read_slot(self.moving_from, "moving_from")?;
        subscription.least_epoch = read_epoch(self.least_epoch)?;
        subscription.left_at = self.left_at.map(read_time);
        Ok(subscription)
    }

    fn unreadable(&self, why: WhyUnreadable) -> Unreadable {
        let name = RecordName::Subscription(self.id());
        let resource = Some(ResourceId::from_bytes(self.resource.into_bytes()));
        let deleted = self.status == SubscriptionStatus::Deleting.as_str();
        Unreadable::new(name, why).of(resource).deleted(deleted)
    }
}

fn read_slot(slot: Option<i64>, column: &str) -> Decoded<Option<u32>> {
    slot.map(|slot| read_small(slot, column)).transpose()
}

/// The settings in the form that stores keep: it holds the secrets, and what a newer version put there.
pub(crate) fn spec(operation: &'static str, subscription: &Subscription) -> Result<String> {
    serde_json::to_string(&subscription.spec.stored()).map_err(|error| internal(operation, error))
}

fn read_spec(text: &str) -> Decoded<SubscriptionSpec> {
    SubscriptionSpec::from_stored(text).map_err(|_| damaged("spec"))
}

/// The bits of the column `marks`.
const PASSIVE: i16 = 1;
const FILTERED: i16 = 2;

/// What the column `marks` holds.
pub(crate) fn marks(subscription: &Subscription) -> i16 {
    let spec = &subscription.spec;
    let passive = if spec.mode() == Mode::Passive { PASSIVE } else { 0 };
    passive | if spec.filter().is_some() { FILTERED } else { 0 }
}

/// What spread has to know of a subscription, from `id, generation, status, lanes, slot, marks`. What cannot be read
/// of it is for those to know who can read the record: its rows are made all the same.
pub(crate) fn member(row: &Row) -> std::result::Result<Member, tokio_postgres::Error> {
    let (id, generation): (Uuid, i64) = (row.try_get(0)?, row.try_get(1)?);
    let (status, lanes): (String, i64) = (row.try_get(2)?, row.try_get(3)?);
    let (slot, marks): (Option<i64>, i16) = (row.try_get(4)?, row.try_get(5)?);
    let id = SubscriptionId::from_bytes(id.into_bytes());
    let generation = read_generation(generation).unwrap_or(Generation::new(0));
    let status = read_word(&status, "status").unwrap_or(SubscriptionStatus::Unreadable);
    let lanes = read_small(lanes, "lanes").unwrap_or(1);
    let member = Member::new(id, generation, status, lanes);
    let mode = if marks & PASSIVE == 0 { Mode::Active } else { Mode::Passive };
    let member = member.pinned(read_slot(slot, "slot").unwrap_or(None)).in_mode(mode);
    Ok(member.with_filter(marks & FILTERED != 0))
}

/// A lane's state as JSON, under the epoch that stores it.
pub(crate) fn lane(state: &LaneState, epoch: Epoch) -> Result<String> {
    let mut state = state.clone();
    state.epoch = epoch;
    serde_json::to_string(&state).map_err(|error| internal("store_lanes", error))
}

/// A lane's state, or the error that names it.
pub(crate) fn read_lane(
    operation: &'static str,
    lane: LaneId,
    text: &str,
    needs: Option<i32>,
) -> Result<LaneState> {
    let read = || -> Decoded<LaneState> {
        check_needs(needs)?;
        serde_json::from_str(text).map_err(|_| damaged("state"))
    };
    read().map_err(|why| super::unreadable_record(operation, RecordName::Lane(lane), why))
}
