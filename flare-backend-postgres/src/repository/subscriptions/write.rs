//! Takes subscriptions as they are to be; stores them with their seats and urls. Seats are counted in the same
//! transaction that takes or leaves one, so a count is never wrong.

use flare_core::model::subscription::UrlTemplate;
use flare_core::model::{Generation, PartitionId, SlotHash, Subscription, SubscriptionId};
use flare_core::model::{ResourceId, SubscriptionStatus};
use flare_core::port::Replaced;
use flare_core::{ErrorKind, Result};
use uuid::Uuid;

use super::super::PostgresRepository;
use super::read::{BY_ID, BY_ID_TO_CHANGE};
use crate::codec::subscription::{StoredSubscription, marks, spec};
use crate::codec::{count, id as uuid, time};
use crate::connection::{Session, Value};
use crate::error;
use crate::fault::Worked;

fn is_told(subscription: &Subscription) -> bool {
    subscription.status != SubscriptionStatus::Deleting
}

/// Which format a worker must know, if it is not the first one.
fn needs(subscription: &Subscription) -> Option<i32> {
    Some(subscription.spec.needs()).filter(|needs| *needs > 1).map(u32::cast_signed)
}

fn refuse(result: Result<Subscription>) -> Worked<Subscription> {
    Ok(result?)
}

impl PostgresRepository {
    pub(super) async fn insert_with_seat(
        &self,
        given: &Subscription,
        most: u32,
    ) -> Worked<Subscription> {
        const OPERATION: &str = "insert_subscription";
        const INSERT: &str = "WITH number AS (INSERT INTO flare.subscription_ids (id) VALUES ($1) \
             ON CONFLICT DO NOTHING) \
             INSERT INTO flare.subscriptions (id, resource, partition, created, generation, status, told, \
             lanes, slot, moving_from, least_epoch, reason, updated, resumed, spec, marks, slot_hash, needs, \
             left_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
        let id = uuid(given.id.as_bytes());
        let mut session = self.database.session(OPERATION).await?;
        let there = session.begin(BY_ID, &[&id]).await?;
        if let Some(there) = there.first() {
            session.roll_back().await?;
            return refuse(StoredSubscription::of(there)?.subscription(OPERATION));
        }
        let text = spec(OPERATION, given)?;
        check_urls(&mut session, OPERATION, given.resource, given).await?;
        let mut subscription = given.clone();
        subscription.partition = take_seat(&mut session, given.resource, most).await?;
        let stored = Stored::of(&subscription, text);
        let resource = uuid(subscription.resource.as_bytes());
        let partition = i64::from(subscription.partition.get());
        let (created, hash) =
            (time(subscription.created_at), i64::from(SlotHash::of(subscription.id).number()));
        let values: [&dyn Value; 19] = [
            &id,
            &resource,
            &partition,
            &created,
            &stored.generation,
            &stored.status,
            &stored.told,
            &stored.lanes,
            &stored.slot,
            &stored.moving_from,
            &stored.least_epoch,
            &stored.reason,
            &stored.updated,
            &stored.resumed,
            &stored.spec,
            &stored.marks,
            &hash,
            &stored.needs,
            &stored.left_at,
        ];
        session.query(INSERT, &values).await?;
        use_urls(&mut session, &subscription).await?;
        session.commit().await?;
        Ok(subscription)
    }

    pub(super) async fn replace(
        &self,
        generation: Generation,
        given: &Subscription,
    ) -> Worked<Replaced> {
        const OPERATION: &str = "replace_subscription";
        const UPDATE: &str = "UPDATE flare.subscriptions SET generation = $2, status = $3, told = $4, \
             lanes = $5, slot = $6, moving_from = $7, least_epoch = $8, reason = $9, updated = $10, \
             resumed = $11, spec = $12, marks = $13, needs = $14, left_at = $15 WHERE id = $1";
        const FREE: &str = "DELETE FROM flare.subscription_urls WHERE subscription = $1";
        let id = uuid(given.id.as_bytes());
        let mut session = self.database.session(OPERATION).await?;
        let there = session.begin(BY_ID_TO_CHANGE, &[&id]).await?;
        let Some(there) = there.first() else {
            session.roll_back().await?;
            return Ok(Replaced::Missing);
        };
        let there = StoredSubscription::of(there)?.subscription(OPERATION)?;
        if there.generation != generation {
            session.roll_back().await?;
            return Ok(Replaced::Conflict(there));
        }
        let mut next = given.clone();
        next.generation = generation.next();
        next.resource = there.resource;
        next.partition = there.partition;
        next.created_at = there.created_at;
        let text = spec(OPERATION, &next)?;
        check_urls(&mut session, OPERATION, next.resource, &next).await?;
        let stored = Stored::of(&next, text);
        let values: [&dyn Value; 15] = [
            &id,
            &stored.generation,
            &stored.status,
            &stored.told,
            &stored.lanes,
            &stored.slot,
            &stored.moving_from,
            &stored.least_epoch,
            &stored.reason,
            &stored.updated,
            &stored.resumed,
            &stored.spec,
            &stored.marks,
            &stored.needs,
            &stored.left_at,
        ];
        session.query(UPDATE, &values).await?;
        session.query(FREE, &[&id]).await?;
        use_urls(&mut session, &next).await?;
        session.commit().await?;
        Ok(Replaced::Done(next))
    }

    pub(super) async fn remove_with_seat(&self, id: SubscriptionId) -> Worked<()> {
        const OPERATION: &str = "remove_subscription";
        // Lanes are stored while the record is locked: none can come after this.
        const REMOVE: &str = "WITH gone AS (DELETE FROM flare.subscriptions WHERE id = $1 \
                 RETURNING id, resource, partition), \
             freed AS (DELETE FROM flare.subscription_urls u USING gone g WHERE u.subscription = g.id) \
             UPDATE flare.partitions p SET seats = seats - 1 FROM gone g \
             WHERE p.resource = g.resource AND p.number = g.partition \
             RETURNING p.resource, p.number";
        const LANES: &str = "DELETE FROM flare.lanes WHERE subscription = $1";
        const EMPTY: &str = "DELETE FROM flare.partitions \
             WHERE resource = $1 AND number = $2 AND seats <= 0";
        let id = uuid(id.as_bytes());
        let mut session = self.database.session(OPERATION).await?;
        let seat = session.begin(REMOVE, &[&id]).await?;
        session.query(LANES, &[&id]).await?;
        match seat.first() {
            Some(seat) => {
                let (resource, number): (Uuid, i64) = (seat.try_get(0)?, seat.try_get(1)?);
                session.finish(EMPTY, &[&resource, &number]).await?;
            }
            None => session.commit().await?,
        }
        Ok(())
    }
}

/// What is stored of a subscription beside what never changes.
struct Stored<'a> {
    generation: i64,
    status: &'a str,
    told: bool,
    lanes: i64,
    slot: Option<i64>,
    moving_from: Option<i64>,
    least_epoch: i64,
    reason: Option<String>,
    updated: i64,
    resumed: Option<i64>,
    spec: String,
    marks: i16,
    needs: Option<i32>,
    left_at: Option<i64>,
}

impl<'a> Stored<'a> {
    fn of(subscription: &'a Subscription, spec: String) -> Self {
        Self {
            generation: count(subscription.generation.get()),
            status: subscription.status.as_str(),
            told: is_told(subscription),
            lanes: subscription.spec.delivery().lanes().into(),
            slot: subscription.slot.map(i64::from),
            moving_from: subscription.moving_from.map(i64::from),
            least_epoch: count(subscription.least_epoch.get()),
            reason: subscription.reason.clone(),
            updated: time(subscription.updated_at),
            resumed: subscription.resumed_at.map(time),
            spec,
            marks: marks(subscription),
            needs: needs(subscription),
            left_at: subscription.left_at.map(time),
        }
    }
}

/// Takes a seat in the first partition that has one, or opens the first number that is free. Whoever takes one
/// at the same time waits for the partition, or loses the race for a new one and tries again.
async fn take_seat(
    session: &mut Session<'_>,
    resource: ResourceId,
    most: u32,
) -> Worked<PartitionId> {
    const TAKEN: &str =
        "SELECT number, seats FROM flare.partitions WHERE resource = $1 ORDER BY number FOR UPDATE";
    const SIT: &str =
        "UPDATE flare.partitions SET seats = seats + 1 WHERE resource = $1 AND number = $2";
    const OPEN: &str = "INSERT INTO flare.partitions (resource, number, seats) VALUES ($1, $2, 1)";
    let resource = uuid(resource.as_bytes());
    let mut next = 0;
    for row in session.query(TAKEN, &[&resource]).await? {
        let (number, seats): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if seats < i64::from(most) {
            session.query(SIT, &[&resource, &number]).await?;
            return Ok(PartitionId::new(u32::try_from(number).unwrap_or(u32::MAX)));
        }
        next += i64::from(number == next);
    }
    session.query(OPEN, &[&resource, &next]).await?;
    Ok(PartitionId::new(u32::try_from(next).unwrap_or(u32::MAX)))
}

/// Refuses a url that another subscription of the resource has.
async fn check_urls(
    session: &mut Session<'_>,
    operation: &'static str,
    resource: ResourceId,
    subscription: &Subscription,
) -> Worked<()> {
    const SQL: &str = "SELECT k.i, u.subscription FROM unnest($2::text[]) WITH ORDINALITY k(url, i) \
         JOIN flare.subscription_urls u ON u.resource = $1 AND u.digest = sha256(convert_to(k.url, 'UTF8')) \
         WHERE u.subscription <> $3 ORDER BY k.i LIMIT 1";
    if !is_told(subscription) {
        return Ok(());
    }
    let urls: Vec<String> = subscription.spec.urls().into_iter().collect();
    let values: [&dyn Value; 3] =
        [&uuid(resource.as_bytes()), &urls, &uuid(subscription.id.as_bytes())];
    let Some(row) = session.query_opt(SQL, &values).await? else { return Ok(()) };
    let (place, user): (i64, Uuid) = (row.try_get(0)?, row.try_get(1)?);
    let url = usize::try_from(place - 1).ok().and_then(|place| urls.get(place));
    let url = url.map_or("", String::as_str);
    let field = subscription.spec.field_of_url(url);
    let url = UrlTemplate::show_key(url);
    let user = SubscriptionId::from_bytes(user.into_bytes());
    let detail = format!("{url} is used by subscription {user} of the same resource");
    let taken = error::of(ErrorKind::Conflict, operation, detail);
    Err(taken.with_field(field).into())
}

async fn use_urls(session: &mut Session<'_>, subscription: &Subscription) -> Worked<()> {
    const SQL: &str = "INSERT INTO flare.subscription_urls (resource, digest, subscription) \
         SELECT $1, digest, $3 FROM (SELECT DISTINCT sha256(convert_to(url, 'UTF8')) AS digest \
             FROM unnest($2::text[]) k(url)) d ORDER BY digest";
    if is_told(subscription) {
        let urls: Vec<String> = subscription.spec.urls().into_iter().collect();
        let resource = uuid(subscription.resource.as_bytes());
        session.query(SQL, &[&resource, &urls, &uuid(subscription.id.as_bytes())]).await?;
    }
    Ok(())
}
