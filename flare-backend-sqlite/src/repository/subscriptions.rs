//! Takes clients' wishes; gives them by id, by resource and by partition. Seats are counted in the same
//! transaction that takes or leaves one, so a count is never wrong.

use std::sync::Arc;

use async_trait::async_trait;
use flare_core::model::subscription::UrlTemplate;
use flare_core::model::{
    Generation, PartitionId, ResourceId, SlotHash, Subscription, SubscriptionId, SubscriptionStatus,
};
use flare_core::port::{Listing, Member, Page, Replaced, Scan, SlotQuery, SubscriptionStore};
use flare_core::{ErrorKind, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteRepository;
use super::documents::{ScanPage, pages};
use crate::codec::subscription::{COLUMNS, FROM, StoredSubscription, marks, member, spec};
use crate::codec::{count, counted, time};
use crate::engine::{Effort, Reader, Tx, names};
use crate::error;
use crate::fault::Worked;

/// Subscriptions of a page of a scan.
const PAGE: usize = 256;

#[async_trait]
impl SubscriptionStore for SqliteRepository {
    async fn insert_subscription(
        &self,
        subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription> {
        let effort = Effort::durable("insert_subscription");
        let insert = move |tx: &mut Tx<'_>| insert(tx, &subscription, partition_limit.max(1));
        self.engine.write(effort, insert).await
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>> {
        let read = move |reader: &Reader<'_>| {
            let found = stored(reader.connection, id)?;
            Ok(found.map(|found| found.subscription("subscription")).transpose()?)
        };
        self.engine.read("subscription", read).await
    }

    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        const OPERATION: &str = "list_subscriptions";
        let read = move |reader: &Reader<'_>| {
            let Some(n) = names::resource(reader.connection, resource)? else {
                return Ok(Listing::new(Vec::new(), 0));
            };
            let mut count = reader
                .sql("SELECT count(*) FROM subscriptions WHERE resource = ?1 AND told = 1")?;
            let total = count.query_row([n], counted)?;
            let sql = format!(
                "SELECT {COLUMNS} {FROM} WHERE s.resource = ?1 AND s.told = 1 \
                 ORDER BY s.id LIMIT ?2 OFFSET ?3"
            );
            let mut list = reader.sql(&sql)?;
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let found = list.query_map(params![n, page.limit, offset], StoredSubscription::of)?;
            let found: Vec<StoredSubscription> = found.collect::<rusqlite::Result<_>>()?;
            let read = found.iter().map(|found| found.subscription(OPERATION));
            Ok(Listing::of_read(read, total)?)
        };
        self.engine.read(OPERATION, read).await
    }

    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        const OPERATION: &str = "scan_subscriptions";
        let start = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
        pages(start, move |after| {
            let read = move |reader: &Reader<'_>| {
                let sql =
                    format!("SELECT {COLUMNS} {FROM} WHERE s.id > ?1 ORDER BY s.id LIMIT {PAGE}");
                let mut find = reader.sql(&sql)?;
                let found = find.query_map([after], StoredSubscription::of)?;
                let found: Vec<StoredSubscription> = found.collect::<rusqlite::Result<_>>()?;
                let last = found.last().filter(|_| found.len() == PAGE);
                let next = last.map(|last| last.id().to_vec());
                Ok((found.iter().map(|found| found.subscription(OPERATION)).collect(), next))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }

    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        const OPERATION: &str = "subscriptions_in";
        let slots = Arc::new(slots);
        let start = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
        pages(start, move |after| {
            let slots = Arc::clone(&slots);
            let read = move |reader: &Reader<'_>| in_slots(reader, OPERATION, &slots, &after);
            Box::pin(self.engine.read(OPERATION, read))
        })
    }

    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>> {
        let read = move |reader: &Reader<'_>| {
            let Some(n) = names::resource(reader.connection, resource)? else {
                return Ok(Vec::new());
            };
            Ok(partitions_of(reader.connection, n)?)
        };
        self.engine.read("partitions", read).await
    }

    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>> {
        let read = move |reader: &Reader<'_>| {
            let Some(n) = names::resource(reader.connection, resource)? else {
                return Ok(Vec::new());
            };
            Ok(members_of(reader.connection, n, partition)?)
        };
        self.engine.read("members", read).await
    }

    fn scan_members(&self) -> Scan<'_, Member> {
        const OPERATION: &str = "scan_members";
        // Few bytes each, and from an index alone: all of them at once.
        pages((), |()| {
            let read = |reader: &Reader<'_>| {
                let mut find = reader.sql(
                    "SELECT id, generation, status, lanes, slot, marks FROM subscriptions \
                     INDEXED BY subscriptions_members WHERE told = 1",
                )?;
                let found = find.query_map([], member)?;
                let found: Vec<Option<Member>> = found.collect::<rusqlite::Result<_>>()?;
                Ok((found.into_iter().flatten().map(Ok).collect(), None))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }

    async fn replace_subscription(
        &self,
        generation: Generation,
        subscription: Subscription,
    ) -> Result<Replaced> {
        let replace = move |tx: &mut Tx<'_>| replace(tx, generation, &subscription);
        self.engine.write(Effort::durable("replace_subscription"), replace).await
    }

    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool> {
        let discard = move |tx: &mut Tx<'_>| {
            let deleting = SubscriptionStatus::Deleting.as_str();
            let mut mark = tx.sql(
                "UPDATE subscriptions SET status = ?2, told = 0, reason = NULL, \
                 generation = max(generation, 0) + 1 WHERE id = ?1 AND status <> ?2 RETURNING n",
            )?;
            let n: Option<i64> =
                mark.query_row(params![id.as_bytes(), deleting], |row| row.get(0)).optional()?;
            let Some(n) = n else { return Ok(false) };
            free_urls(tx, n)?;
            Ok(true)
        };
        self.engine.write(Effort::durable("discard_subscription"), discard).await
    }

    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()> {
        self.engine.write(Effort::durable("remove_subscription"), move |tx| remove(tx, id)).await
    }
}

/// The partitions of the resource with this number, in order.
pub(super) fn partitions_of(
    connection: &Connection,
    resource: i64,
) -> rusqlite::Result<Vec<PartitionId>> {
    let mut find = connection.prepare_cached(
        "SELECT number FROM partitions WHERE resource = ?1 AND seats > 0 ORDER BY number",
    )?;
    find.query_map([resource], |row| row.get(0).map(PartitionId::new))?.collect()
}

/// Who sits in a partition of the resource with this number.
pub(super) fn members_of(
    connection: &Connection,
    resource: i64,
    partition: PartitionId,
) -> rusqlite::Result<Vec<Member>> {
    let mut find = connection.prepare_cached(
        "SELECT id, generation, status, lanes, slot, marks FROM subscriptions \
         INDEXED BY subscriptions_members WHERE resource = ?1 AND partition = ?2 AND told = 1",
    )?;
    let found = find.query_map(params![resource, partition.get()], member)?;
    let found: Vec<Option<Member>> = found.collect::<rusqlite::Result<_>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn stored(
    connection: &Connection,
    id: SubscriptionId,
) -> rusqlite::Result<Option<StoredSubscription>> {
    let sql = format!("SELECT {COLUMNS} {FROM} WHERE s.id = ?1");
    let mut find = connection.prepare_cached(&sql)?;
    find.query_row([id.as_bytes()], StoredSubscription::of).optional()
}

fn is_told(subscription: &Subscription) -> bool {
    subscription.status != SubscriptionStatus::Deleting
}

/// Which format a worker must know, if it is not the first one.
fn needs(subscription: &Subscription) -> Option<u32> {
    Some(subscription.spec.needs()).filter(|needs| *needs > 1)
}

/// A page of the subscriptions of some slots, after one of them: those that are hashed onto them, by
/// hash and id; then those that are said to be in one, or to leave it, by id.
fn in_slots(
    reader: &Reader<'_>,
    operation: &'static str,
    slots: &SlotQuery,
    after: &[u8],
) -> Worked<ScanPage<Subscription, Vec<u8>>> {
    let last = <[u8; 16]>::try_from(after).ok().map(SubscriptionId::from_bytes);
    let hash = last.map(SlotHash::of);
    let hashed = hash.is_none_or(|hash| slots.has_hash(hash));
    let mut found: Vec<StoredSubscription> = Vec::new();
    if hashed {
        let from = hash.map_or(-1, |hash| i64::from(hash.number()));
        let sql = format!(
            "SELECT {COLUMNS} {FROM} WHERE s.slot_hash BETWEEN ?1 AND ?2 \
             AND (s.slot_hash, s.id) > (?3, ?4) ORDER BY s.slot_hash, s.id LIMIT ?5"
        );
        let mut find = reader.sql(&sql)?;
        for range in &slots.hashes {
            let (start, end) = (range.start().number(), range.end().number());
            if found.len() >= PAGE || i64::from(end) < from {
                continue;
            }
            let room = i64::try_from(PAGE - found.len()).unwrap_or(i64::MAX);
            let values = params![start, end, from, after, room];
            let part = find.query_map(values, StoredSubscription::of)?;
            found.extend(part.collect::<rusqlite::Result<Vec<_>>>()?);
        }
    }
    if found.len() < PAGE {
        let from: &[u8] = if hashed { &[] } else { after };
        let sql = format!(
            "SELECT {COLUMNS} {FROM} WHERE (s.slot IS NOT NULL OR s.moving_from IS NOT NULL) \
             AND s.id > ?1 ORDER BY s.id"
        );
        let mut find = reader.sql(&sql)?;
        let mut placed = find.query([from])?;
        while let Some(row) = placed.next()? {
            let one = StoredSubscription::of(row)?;
            if found.len() < PAGE && one.is_placed_in(slots) {
                found.push(one);
            }
        }
    }
    let next = found.last().filter(|_| found.len() == PAGE).map(|last| last.id().to_vec());
    Ok((found.iter().map(|found| found.subscription(operation)).collect(), next))
}

fn insert(tx: &mut Tx<'_>, given: &Subscription, most: u32) -> Worked<Subscription> {
    const OPERATION: &str = "insert_subscription";
    if let Some(stored) = stored(tx.connection, given.id)? {
        return Ok(stored.subscription(OPERATION)?);
    }
    let text = spec(OPERATION, given)?;
    let known = tx.resource(given.resource)?;
    if let Some(resource) = known {
        check_urls(tx, OPERATION, resource, given)?;
    }
    let resource = match known {
        Some(resource) => resource,
        None => tx.resource_or_new(given.resource)?,
    };
    let mut subscription = given.clone();
    subscription.partition = take_seat(tx, resource, most)?;
    let n = tx.subscriber_of(given.id, resource)?.n;
    let mut insert = tx.sql(
        "INSERT INTO subscriptions (n, id, resource, partition, created, generation, status, told, \
         lanes, slot, moving_from, least_epoch, reason, updated, resumed, spec, marks, slot_hash, needs, \
         left_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    )?;
    insert.execute(params![
        n,
        subscription.id.as_bytes(),
        resource,
        subscription.partition.get(),
        time(subscription.created_at),
        count(subscription.generation.get()),
        subscription.status.as_str(),
        is_told(&subscription),
        subscription.spec.delivery().lanes(),
        subscription.slot,
        subscription.moving_from,
        count(subscription.least_epoch.get()),
        subscription.reason,
        time(subscription.updated_at),
        subscription.resumed_at.map(time),
        text,
        marks(&subscription),
        SlotHash::of(subscription.id).number(),
        needs(&subscription),
        subscription.left_at.map(time),
    ])?;
    use_urls(tx, resource, n, &subscription)?;
    Ok(subscription)
}

fn replace(tx: &mut Tx<'_>, generation: Generation, given: &Subscription) -> Worked<Replaced> {
    const OPERATION: &str = "replace_subscription";
    let Some(stored) = stored(tx.connection, given.id)? else { return Ok(Replaced::Missing) };
    let stored = stored.subscription(OPERATION)?;
    if stored.generation != generation {
        return Ok(Replaced::Conflict(stored));
    }
    let mut next = given.clone();
    next.generation = generation.next();
    next.resource = stored.resource;
    next.partition = stored.partition;
    next.created_at = stored.created_at;
    let text = spec(OPERATION, &next)?;
    let resource = tx.resource_or_new(stored.resource)?;
    check_urls(tx, OPERATION, resource, &next)?;
    let mut update = tx.sql(
        "UPDATE subscriptions SET generation = ?2, status = ?3, told = ?4, lanes = ?5, slot = ?6, \
         moving_from = ?7, least_epoch = ?8, reason = ?9, updated = ?10, resumed = ?11, spec = ?12, \
         marks = ?13, needs = ?14, left_at = ?15 WHERE id = ?1 RETURNING n",
    )?;
    let values = params![
        next.id.as_bytes(),
        count(next.generation.get()),
        next.status.as_str(),
        is_told(&next),
        next.spec.delivery().lanes(),
        next.slot,
        next.moving_from,
        count(next.least_epoch.get()),
        next.reason,
        time(next.updated_at),
        next.resumed_at.map(time),
        text,
        marks(&next),
        needs(&next),
        next.left_at.map(time),
    ];
    let n = update.query_row(values, |row| row.get(0))?;
    free_urls(tx, n)?;
    use_urls(tx, resource, n, &next)?;
    Ok(Replaced::Done(next))
}

fn remove(tx: &mut Tx<'_>, id: SubscriptionId) -> Worked<()> {
    let mut delete =
        tx.sql("DELETE FROM subscriptions WHERE id = ?1 RETURNING n, resource, partition")?;
    let removed: Option<(i64, i64, i64)> = delete
        .query_row([id.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((n, resource, partition)) = removed else { return Ok(()) };
    free_urls(tx, n)?;
    tx.sql("DELETE FROM lanes WHERE subscription = ?1")?.execute([n])?;
    let seat = [resource, partition];
    tx.sql("UPDATE partitions SET seats = seats - 1 WHERE resource = ?1 AND number = ?2")?
        .execute(seat)?;
    tx.sql("DELETE FROM partitions WHERE resource = ?1 AND number = ?2 AND seats <= 0")?
        .execute(seat)?;
    tx.after.freed = true;
    Ok(tx.forget_subscriber(id)?)
}

/// Takes a seat in the first partition that has one, or opens the first number that is free.
fn take_seat(tx: &Tx<'_>, resource: i64, most: u32) -> rusqlite::Result<PartitionId> {
    let mut free = tx.sql(
        "SELECT number FROM partitions WHERE resource = ?1 AND seats < ?2 ORDER BY number LIMIT 1",
    )?;
    let number: Option<i64> =
        free.query_row(params![resource, most], |row| row.get(0)).optional()?;
    let number = match number {
        Some(number) => number,
        None => first_free(tx, resource)?,
    };
    let mut take = tx.sql(
        "INSERT INTO partitions (resource, number, seats) VALUES (?1, ?2, 1) \
         ON CONFLICT (resource, number) DO UPDATE SET seats = seats + 1",
    )?;
    take.execute([resource, number])?;
    Ok(PartitionId::new(u32::try_from(number).unwrap_or(u32::MAX)))
}

/// The lowest number that no partition has.
fn first_free(tx: &Tx<'_>, resource: i64) -> rusqlite::Result<i64> {
    let mut numbers =
        tx.sql("SELECT number FROM partitions WHERE resource = ?1 ORDER BY number")?;
    let mut taken = numbers.query([resource])?;
    let mut next = 0;
    while let Some(row) = taken.next()? {
        if row.get::<_, i64>(0)? != next {
            break;
        }
        next += 1;
    }
    Ok(next)
}

/// Refuses a url that another subscription of the resource has.
fn check_urls(
    tx: &Tx<'_>,
    operation: &'static str,
    resource: i64,
    subscription: &Subscription,
) -> Worked<()> {
    if !is_told(subscription) {
        return Ok(());
    }
    let mut find = tx.sql(
        "SELECT i.id FROM subscription_urls u JOIN subscription_ids i ON i.n = u.subscription \
         WHERE u.resource = ?1 AND u.url = ?2",
    )?;
    for url in subscription.spec.urls() {
        let user: Option<[u8; 16]> =
            find.query_row(params![resource, url], |row| row.get(0)).optional()?;
        let Some(user) = user.map(SubscriptionId::from_bytes) else { continue };
        if user != subscription.id {
            let field = subscription.spec.field_of_url(&url);
            let url = UrlTemplate::show_key(&url);
            let detail = format!("{url} is used by subscription {user} of the same resource");
            let taken = error::of(ErrorKind::Conflict, operation, detail);
            return Err(taken.with_field(field).into());
        }
    }
    Ok(())
}

fn use_urls(
    tx: &Tx<'_>,
    resource: i64,
    n: i64,
    subscription: &Subscription,
) -> rusqlite::Result<()> {
    if is_told(subscription) {
        let mut note = tx.sql(
            "INSERT INTO subscription_urls (resource, url, subscription) VALUES (?1, ?2, ?3)",
        )?;
        for url in subscription.spec.urls() {
            note.execute(params![resource, url, n])?;
        }
    }
    Ok(())
}

fn free_urls(tx: &Tx<'_>, n: i64) -> rusqlite::Result<()> {
    tx.sql("DELETE FROM subscription_urls WHERE subscription = ?1")?.execute([n])?;
    Ok(())
}
