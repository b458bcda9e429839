//! Takes which subscriptions somebody looks for; gives them as they are stored, or the error that names one.

use std::sync::Arc;

use flare_core::Result;
use flare_core::model::{PartitionId, ResourceId, SlotHash, Subscription, SubscriptionId};
use flare_core::port::{Listing, Member, Page, Scan, SlotQuery};
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::subscription::{StoredSubscription, member};
use crate::codec::{counted, id as uuid, limit, offset};
use crate::connection::{Session, Value};
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

/// Subscriptions of a page of a scan.
const PAGE: usize = 256;

/// The columns that [`StoredSubscription::of`] reads.
macro_rules! columns {
    () => {
        "s.id, s.resource, s.partition, s.generation, s.status, s.slot, s.moving_from, s.least_epoch, \
         s.reason, s.created, s.updated, s.resumed, s.spec, s.needs, s.left_at FROM flare.subscriptions s "
    };
}

/// The record of a subscription.
pub(super) const BY_ID: &str = concat!("SELECT ", columns!(), "WHERE s.id = $1");
/// The same, for whoever is to change it.
pub(super) const BY_ID_TO_CHANGE: &str =
    concat!("SELECT ", columns!(), "WHERE s.id = $1 FOR UPDATE");

/// The partitions of a resource, in order.
pub(in super::super) async fn partitions_of(
    session: &mut Session<'_>,
    resource: ResourceId,
) -> Worked<Vec<PartitionId>> {
    const SQL: &str =
        "SELECT number FROM flare.partitions WHERE resource = $1 AND seats > 0 ORDER BY number";
    let found = session.query(SQL, &[&uuid(resource.as_bytes())]).await?;
    let number = |row: &tokio_postgres::Row| -> Worked<PartitionId> {
        let number: i64 = row.try_get(0)?;
        Ok(PartitionId::new(u32::try_from(number).unwrap_or(u32::MAX)))
    };
    found.iter().map(number).collect()
}

/// Who sits in a partition of a resource.
pub(in super::super) async fn members_of(
    session: &mut Session<'_>,
    resource: ResourceId,
    partition: PartitionId,
) -> Worked<Vec<Member>> {
    const SQL: &str = "SELECT id, generation, status, lanes, slot, marks FROM flare.subscriptions \
         WHERE resource = $1 AND partition = $2 AND told ORDER BY id";
    let values: [&dyn Value; 2] = [&uuid(resource.as_bytes()), &i64::from(partition.get())];
    let found = session.query(SQL, &values).await?;
    Ok(found.iter().map(member).collect::<std::result::Result<_, _>>()?)
}

fn stored(rows: &[tokio_postgres::Row]) -> Worked<Vec<StoredSubscription>> {
    Ok(rows.iter().map(StoredSubscription::of).collect::<std::result::Result<_, _>>()?)
}

impl PostgresRepository {
    pub(super) async fn read_subscription(
        &self,
        id: SubscriptionId,
    ) -> Worked<Option<Subscription>> {
        const OPERATION: &str = "subscription";
        let found = self.database.one(OPERATION, BY_ID, &[&uuid(id.as_bytes())]).await?;
        let found = found.as_ref().map(StoredSubscription::of).transpose()?;
        Ok(found.map(|found| found.subscription(OPERATION)).transpose()?)
    }

    pub(super) async fn page_of(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Worked<Listing<Subscription>> {
        const OPERATION: &str = "list_subscriptions";
        const COUNT: &str = "SELECT count(*) FROM flare.subscriptions WHERE resource = $1 AND told";
        const LIST: &str = concat!(
            "SELECT ",
            columns!(),
            "WHERE s.resource = $1 AND s.told ORDER BY s.id LIMIT $2 OFFSET $3"
        );
        let resource = uuid(resource.as_bytes());
        let mut session = self.database.session(OPERATION).await?;
        let total = counted(session.query_opt(COUNT, &[&resource]).await?.as_ref())?;
        let (most, skipped) = (i64::from(page.limit), offset(page.offset));
        let found = stored(&session.query(LIST, &[&resource, &most, &skipped]).await?)?;
        Ok(Listing::of_read(found.iter().map(|found| found.subscription(OPERATION)), total)?)
    }

    pub(super) fn scan_all(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        const OPERATION: &str = "scan_subscriptions";
        let start = after.map(|after| uuid(after.as_bytes()));
        pages(start, move |after| {
            let read = move || self.page_after(after);
            Box::pin(async move { self.database.attempts(OPERATION, read).await })
        })
    }

    async fn page_after(
        &self,
        after: Option<Uuid>,
    ) -> Worked<ScanPage<Subscription, Option<Uuid>>> {
        const OPERATION: &str = "scan_subscriptions";
        const SQL: &str = concat!(
            "SELECT ",
            columns!(),
            "WHERE $1::uuid IS NULL OR s.id > $1 ORDER BY s.id LIMIT $2"
        );
        let found = stored(&self.database.all(OPERATION, SQL, &[&after, &limit(PAGE)]).await?)?;
        let last = found.last().filter(|_| found.len() == PAGE);
        let next = last.map(|last| Some(uuid(last.id().as_bytes())));
        Ok((found.iter().map(|found| found.subscription(OPERATION)).collect(), next))
    }

    /// Who sits anywhere: few bytes each, so all of them at once.
    pub(super) fn scan_all_members(&self) -> Scan<'_, Member> {
        const OPERATION: &str = "scan_members";
        const SQL: &str =
            "SELECT id, generation, status, lanes, slot, marks FROM flare.subscriptions WHERE told";
        pages((), move |()| {
            let read = move || async {
                let found = self.database.all(OPERATION, SQL, &[]).await?;
                let found = found.iter().map(member);
                let found: Vec<Member> = found.collect::<std::result::Result<_, _>>()?;
                Ok((found.into_iter().map(Ok).collect(), None))
            };
            Box::pin(async move { self.database.attempts(OPERATION, read).await })
        })
    }

    pub(super) fn scan_slots(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        const OPERATION: &str = "subscriptions_in";
        let slots = Arc::new(slots);
        pages(after, move |after| {
            let slots = Arc::clone(&slots);
            Box::pin(async move {
                self.database.attempts(OPERATION, || self.page_in_slots(&slots, after)).await
            })
        })
    }

    /// A page of the subscriptions of some slots, after one of them: those that are hashed onto them, by
    /// hash and id; then those that are said to be in one, or to leave it, by id.
    async fn page_in_slots(
        &self,
        slots: &SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Worked<ScanPage<Subscription, Option<SubscriptionId>>> {
        const OPERATION: &str = "subscriptions_in";
        const HASHED: &str = concat!(
            "SELECT ",
            columns!(),
            "JOIN unnest($1::bigint[], $2::bigint[]) h(first, last) ON s.slot_hash BETWEEN h.first AND h.last \
             WHERE (s.slot_hash, s.id) > ($3, $4) ORDER BY s.slot_hash, s.id LIMIT $5"
        );
        const PLACED: &str = concat!(
            "SELECT ",
            columns!(),
            "WHERE (s.slot IS NOT NULL OR s.moving_from IS NOT NULL) AND s.id > $1 ORDER BY s.id"
        );
        let hash = after.map(SlotHash::of);
        let hashed = hash.is_none_or(|hash| slots.has_hash(hash));
        let place = after.map_or(Uuid::nil(), |after| uuid(after.as_bytes()));
        let mut session = self.database.session(OPERATION).await?;
        let mut found: Vec<StoredSubscription> = Vec::new();
        if hashed {
            let from = hash.map_or(-1, |hash| i64::from(hash.number()));
            let ranges =
                slots.hashes.iter().filter(|range| i64::from(range.end().number()) >= from);
            let ends = ranges
                .map(|range| (i64::from(range.start().number()), i64::from(range.end().number())));
            let (first, last): (Vec<i64>, Vec<i64>) = ends.unzip();
            let values: [&dyn Value; 5] = [&first, &last, &from, &place, &limit(PAGE)];
            found = stored(&session.query(HASHED, &values).await?)?;
        }
        if found.len() < PAGE {
            let from = if hashed { Uuid::nil() } else { place };
            let placed = stored(&session.query(PLACED, &[&from]).await?)?;
            let room = PAGE - found.len();
            found.extend(placed.into_iter().filter(|one| one.is_placed_in(slots)).take(room));
        }
        let next = found.last().filter(|_| found.len() == PAGE).map(|last| Some(last.id()));
        let read: Vec<Result<Subscription>> =
            found.iter().map(|found| found.subscription(OPERATION)).collect();
        Ok((read, next))
    }
}
