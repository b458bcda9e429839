//! Takes clients' wishes; gives them by id, by resource and by partition.
//!
//! A record: `{_id, resource, partition, generation, status, told, urls, lanes, slotHash, reason?, spec
//! (JSON), createdAt, updatedAt, resumedAt?, slot?, movingFrom?, leastEpoch?, leftAt?, needs?}`; who sits where is
//! said there and nowhere else. The records of `flare_partitions` (`{_id: {resource, number}, seats, takenAt}`) only count seats: one
//! is taken there before the subscription is stored and left after it is removed, so the count is
//! never too low. Above the sixteen bits that `lanes` needs it says which slot is reserved for them, plus
//! one, and above that whether they send on their own: so the index that `members` is answered from need
//! not be made anew.

use async_trait::async_trait;
use flare_core::model::subscription::{Mode, UrlTemplate};
use flare_core::model::{
    Epoch, Generation, PartitionId, RecordKind, ResourceId, Subscription, SubscriptionId,
    SubscriptionSpec, SubscriptionStatus,
};
use flare_core::port::{Listing, Member, Page, Replaced, Scan, SlotQuery, SubscriptionStore};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;

use super::slots::stored_hash;
use super::{MongoRepository, ids_after, lost_race};
use crate::BACKEND;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record};

const KIND: RecordKind = RecordKind::Subscription;

/// In `lanes`: they do not send on their own.
const PASSIVE: i64 = 1 << 52;
/// And one with a filter by this.
const FILTERED: i64 = 1 << 53;

/// More than there are partitions to look through.
const SEAT_RACES: usize = 64;

fn status_text(status: SubscriptionStatus) -> Result<String> {
    match serde_json::to_value(status) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        _ => Err(Error::new(ErrorKind::Internal, "subscription").with_backend(BACKEND)),
    }
}

fn read_status(record: Record<'_>) -> Result<SubscriptionStatus> {
    let text = serde_json::Value::String(record.text("status")?.to_owned());
    serde_json::from_value(text).map_err(|error| record.corrupt("status").with_source(error))
}

pub(super) fn read_subscription(record: Record<'_>) -> Result<Subscription> {
    let spec = SubscriptionSpec::from_stored(record.text("spec")?)
        .map_err(|error| record.corrupt("spec").with_source(error))?;
    let mut subscription = Subscription::new(
        SubscriptionId::from_bytes(record.id("_id")?),
        ResourceId::from_bytes(record.id("resource")?),
        spec,
        record.time("createdAt")?,
    );
    subscription.partition = PartitionId::new(record.small("partition")?);
    subscription.generation = Generation::new(record.small("generation")?);
    subscription.status = read_status(record)?;
    subscription.reason = record.text_if_any("reason")?.map(str::to_owned);
    subscription.updated_at = record.time("updatedAt")?;
    subscription.resumed_at = record.time_if_any("resumedAt")?;
    subscription.slot = read_slot(record, "slot")?;
    subscription.moving_from = read_slot(record, "movingFrom")?;
    if let Some(epoch) = record.number_if_any("leastEpoch")? {
        let epoch = u64::try_from(epoch).map_err(|_| record.corrupt("leastEpoch"))?;
        subscription.least_epoch = Epoch::new(epoch);
    }
    subscription.left_at = record.time_if_any("leftAt")?;
    Ok(subscription)
}

/// A slot, if there is one: records from before slots could be reserved have none.
fn read_slot(record: Record<'_>, field: &str) -> Result<Option<u32>> {
    let slot = record.number_if_any(field)?;
    slot.map(|slot| u32::try_from(slot).map_err(|_| record.corrupt(field))).transpose()
}

/// What the index holds of a subscription. What cannot be read of it is for those to know who can
/// read the record: its rows are made all the same, and nobody is woken.
pub(super) fn read_member(record: Record<'_>) -> Result<Member> {
    let id = SubscriptionId::from_bytes(record.id("_id")?);
    let generation = record.small("generation").unwrap_or_default();
    let status = read_status(record).unwrap_or(SubscriptionStatus::Unreadable);
    let unknown = (1, None, Mode::Active, false);
    let (lanes, slot, mode, filtered) = read_indexed_lanes(record).unwrap_or(unknown);
    let member = Member::new(id, Generation::new(generation), status, lanes);
    Ok(member.pinned(slot).in_mode(mode).with_filter(filtered))
}

/// The number of lanes, the slot that is reserved for them, the mode and whether there is a filter, as the
/// index has them.
fn indexed_lanes(subscription: &Subscription) -> i64 {
    let slot = subscription.slot.map_or(0, |slot| i64::from(slot) + 1);
    let mode = if subscription.spec.mode() == Mode::Passive { PASSIVE } else { 0 };
    let filter = if subscription.spec.filter().is_some() { FILTERED } else { 0 };
    filter | mode | (slot << 16) | i64::from(subscription.spec.delivery().lanes())
}

fn read_indexed_lanes(record: Record<'_>) -> Result<(u16, Option<u32>, Mode, bool)> {
    let corrupt = || record.corrupt("lanes");
    let number = record.number("lanes")?;
    let mode = if number & PASSIVE == 0 { Mode::Active } else { Mode::Passive };
    let lanes = u16::try_from(number & 0xffff).map_err(|_| corrupt())?;
    let slot = match (number & !(PASSIVE | FILTERED)) >> 16 {
        0 => None,
        slot => Some(u32::try_from(slot - 1).map_err(|_| corrupt())?),
    };
    Ok((lanes, slot, mode, number & FILTERED != 0))
}

pub(super) fn write_subscription(
    operation: &'static str,
    subscription: &Subscription,
) -> Result<Document> {
    let spec = serde_json::to_string(&subscription.spec.stored()).map_err(|error| {
        Error::new(ErrorKind::Internal, operation).with_backend(BACKEND).with_source(error)
    })?;
    let urls = subscription.spec.urls();
    let mut record = doc! {
        "_id": record::id(subscription.id.as_bytes()),
        "resource": record::id(subscription.resource.as_bytes()),
        "partition": i64::from(subscription.partition.get()),
        "generation": record::count(subscription.generation.get()),
        "status": status_text(subscription.status)?,
        "told": subscription.status != SubscriptionStatus::Deleting,
        "urls": urls,
        "lanes": indexed_lanes(subscription),
        "slotHash": stored_hash(subscription.id),
        "spec": spec,
        "createdAt": record::time(subscription.created_at),
        "updatedAt": record::time(subscription.updated_at),
    };
    if subscription.spec.needs() > 1 {
        record.insert("needs", i64::from(subscription.spec.needs()));
    }
    if let Some(reason) = &subscription.reason {
        record.insert("reason", reason);
    }
    if let Some(resumed) = subscription.resumed_at {
        record.insert("resumedAt", record::time(resumed));
    }
    if let Some(slot) = subscription.slot {
        record.insert("slot", i64::from(slot));
    }
    if let Some(slot) = subscription.moving_from {
        record.insert("movingFrom", i64::from(slot));
    }
    if subscription.least_epoch > Epoch::ZERO {
        record.insert("leastEpoch", record::count(subscription.least_epoch.get()));
    }
    if let Some(left) = subscription.left_at {
        record.insert("leftAt", record::time(left));
    }
    Ok(record)
}

fn seat_id(resource: ResourceId, partition: PartitionId) -> Document {
    doc! { "resource": record::id(resource.as_bytes()), "number": i64::from(partition.get()) }
}

impl MongoRepository {
    /// Takes a seat in the first partition that has one, or in a new one.
    async fn take_seat(&self, resource: ResourceId, most: u32) -> Result<PartitionId> {
        const OPERATION: &str = "insert_subscription";
        let partitions = &self.stored.partitions;
        let all = ids_after("resource", record::id(resource.as_bytes()), "number", None);
        for _ in 0..SEAT_RACES {
            let free = doc! { "_id": all.clone(), "seats": { "$lt": i64::from(most.max(1)) } };
            let take = partitions
                .find_one_and_update(free, taken())
                .sort(doc! { "_id": 1 })
                .return_document(ReturnDocument::After);
            if let Some(seat) = self.connection.run(OPERATION, take).await? {
                let id = Record::new(OPERATION, &seat).inner("_id")?;
                return Ok(PartitionId::new(id.small("number")?));
            }
            let last = partitions.find_one(doc! { "_id": all.clone() }).sort(doc! { "_id": -1 });
            let last = self.connection.run(OPERATION, last).await?;
            let next = match &last {
                None => 0,
                Some(last) => {
                    Record::new(OPERATION, last).inner("_id")?.small::<u32>("number")? + 1
                }
            };
            let new = PartitionId::new(next);
            let call = partitions
                .update_one(doc! { "_id": seat_id(resource, new), "seats": 0 }, taken())
                .upsert(true);
            match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
                Ok(_) => return Ok(new),
                // Somebody else has just opened it: there may be seats in it.
                Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {}
                Err(error) => return Err(error::from_driver(OPERATION, error)),
            }
        }
        Err(lost_race(OPERATION))
    }

    async fn leave_seat(
        &self,
        operation: &'static str,
        resource: ResourceId,
        partition: PartitionId,
    ) -> Result<()> {
        let seat = doc! { "_id": seat_id(resource, partition), "seats": { "$gt": 0 } };
        let leave = doc! { "$inc": { "seats": -1_i64 } };
        let call = self.stored.partitions.update_one(seat, leave);
        self.connection.run(operation, call).await.map(|_| ())
    }

    /// The refusal of a url that another subscription has.
    async fn url_taken(&self, operation: &'static str, refused: &Subscription) -> Error {
        let urls = refused.spec.urls();
        let other = doc! {
            "resource": record::id(refused.resource.as_bytes()),
            "told": true,
            "urls": { "$in": &urls },
            "_id": { "$ne": record::id(refused.id.as_bytes()) },
        };
        let subscriptions = &self.stored.subscriptions;
        let question = subscriptions.find_one(other).projection(doc! { "_id": 1, "urls": 1 });
        // Which of them it is, and who has it, is a courtesy; that one is taken is known.
        let found = self.connection.run(operation, question).await.ok().flatten();
        let user = found.as_ref().and_then(|found| Record::new(operation, found).id("_id").ok());
        let user = user.map_or_else(
            || "another subscription".to_owned(),
            |id| format!("subscription {}", SubscriptionId::from_bytes(id)),
        );
        let theirs = found.as_ref().and_then(|found| found.get_array("urls").ok());
        let theirs = |url: &&String| {
            theirs.is_none_or(|all| all.iter().any(|it| it.as_str() == Some(url.as_str())))
        };
        let taken: Vec<&String> = urls.iter().filter(theirs).collect();
        let field = refused.spec.field_of_url(taken.first().map_or("", |url| url.as_str()));
        let shown: Vec<String> = taken.iter().map(|url| UrlTemplate::show_key(url)).collect();
        let detail = format!("{} is used by {user} of the same resource", shown.join(" or "));
        Error::new(ErrorKind::Conflict, operation)
            .with_backend(BACKEND)
            .with_field(field)
            .with_detail(detail)
    }
}

/// One seat more, now.
fn taken() -> Document {
    doc! { "$inc": { "seats": 1_i64 }, "$currentDate": { "takenAt": true } }
}

#[async_trait]
impl SubscriptionStore for MongoRepository {
    async fn insert_subscription(
        &self,
        mut subscription: Subscription,
        partition_limit: u32,
    ) -> Result<Subscription> {
        const OPERATION: &str = "insert_subscription";
        if let Some(stored) = self.subscription(subscription.id).await? {
            return Ok(stored);
        }
        subscription.partition = self.take_seat(subscription.resource, partition_limit).await?;
        let record = write_subscription(OPERATION, &subscription)?;
        let subscriptions = &self.stored.subscriptions;
        let call = subscriptions.insert_one(record);
        match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
            Ok(_) => Ok(subscription),
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
                self.leave_seat(OPERATION, subscription.resource, subscription.partition).await?;
                // By its id, at the same time, or by one of its urls.
                match self.subscription(subscription.id).await? {
                    Some(stored) => Ok(stored),
                    None => Err(self.url_taken(OPERATION, &subscription).await),
                }
            }
            // Whether it is stored is unknown, so its seat stays taken: too many is harmless.
            Err(error) => Err(error::from_driver(OPERATION, error)),
        }
    }

    async fn subscription(&self, id: SubscriptionId) -> Result<Option<Subscription>> {
        let subscriptions = &self.stored.subscriptions;
        let question = subscriptions.find(doc! { "_id": record::id(id.as_bytes()) }).limit(1);
        self.connection
            .each("subscription", KIND, question, read_subscription)
            .await?
            .pop()
            .transpose()
    }

    async fn list_subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        const OPERATION: &str = "list_subscriptions";
        let subscriptions = &self.stored.subscriptions;
        let told = doc! { "resource": record::id(resource.as_bytes()), "told": true };
        let total =
            self.connection.run(OPERATION, subscriptions.count_documents(told.clone())).await?;
        if page.limit == 0 || page.offset >= total {
            return Ok(Listing::new(Vec::new(), total));
        }
        let question = subscriptions
            .find(told)
            .sort(doc! { "_id": 1 })
            .skip(page.offset)
            .limit(i64::from(page.limit));
        let read = self.connection.each(OPERATION, KIND, question, read_subscription).await?;
        Listing::of_read(read, total)
    }

    fn scan_subscriptions(&self, after: Option<SubscriptionId>) -> Scan<'_, Subscription> {
        // Ids alone, whatever else somebody may have put there: only after those can a scan go on.
        let later = match after {
            None => doc! { "_id": { "$gte": record::bytes(&[]) } },
            Some(after) => doc! { "_id": { "$gt": record::id(after.as_bytes()) } },
        };
        let found = &self.stored.subscriptions;
        let question = async move { found.find(later).sort(doc! { "_id": 1 }).await };
        self.connection.scan("scan_subscriptions", KIND, question, read_subscription)
    }

    fn subscriptions_in(
        &self,
        slots: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        self.in_slots(slots, after)
    }

    async fn partitions(&self, resource: ResourceId) -> Result<Vec<PartitionId>> {
        const OPERATION: &str = "partitions";
        let told = doc! { "resource": record::id(resource.as_bytes()), "told": true };
        let question = self.stored.subscriptions.distinct("partition", told);
        let numbers: Vec<Bson> = self.connection.run(OPERATION, question).await?;
        let mut partitions = Vec::with_capacity(numbers.len());
        for number in numbers {
            let record = doc! { "partition": number };
            // Whoever sits in none that can be read is in nobody's way.
            if let Ok(number) = Record::new(OPERATION, &record).small("partition") {
                partitions.push(PartitionId::new(number));
            }
        }
        partitions.sort_unstable();
        Ok(partitions)
    }

    async fn members(&self, resource: ResourceId, partition: PartitionId) -> Result<Vec<Member>> {
        let seated = doc! {
            "resource": record::id(resource.as_bytes()),
            "told": true,
            "partition": i64::from(partition.get()),
        };
        // Just what the index holds, so that no record is read.
        let known = doc! { "_id": 1, "generation": 1, "status": 1, "lanes": 1 };
        let question = self.stored.subscriptions.find(seated).projection(known);
        let members = self.connection.each("members", KIND, question, read_member).await?;
        // What has no id of ours nobody can be told of.
        Ok(members.into_iter().flatten().collect())
    }

    fn scan_members(&self) -> Scan<'_, Member> {
        // Of all resources, and just what the index holds, so that no record is read.
        let seated = doc! { "resource": { "$gte": record::bytes(&[]) }, "told": true };
        let known = doc! { "_id": 1, "generation": 1, "status": 1, "lanes": 1 };
        let found = &self.stored.subscriptions;
        let question = async move { found.find(seated).projection(known).await };
        let members = self.connection.scan("scan_members", KIND, question, read_member);
        // What has no id of ours nobody can be told of.
        let known = |read: &Result<Member>| {
            let nobody = read.as_ref().is_err_and(|error| error.unreadable().is_some());
            std::future::ready(!nobody)
        };
        members.filter(known).boxed()
    }

    async fn replace_subscription(
        &self,
        generation: Generation,
        mut subscription: Subscription,
    ) -> Result<Replaced> {
        const OPERATION: &str = "replace_subscription";
        subscription.generation = generation.next();
        let mut set = write_subscription(OPERATION, &subscription)?;
        // What a replacement never changes.
        for kept in ["_id", "resource", "partition", "createdAt"] {
            set.remove(kept);
        }
        let mut update = doc! { "$set": set };
        let absent = [
            ("needs", subscription.spec.needs() <= 1),
            ("reason", subscription.reason.is_none()),
            ("resumedAt", subscription.resumed_at.is_none()),
            ("slot", subscription.slot.is_none()),
            ("movingFrom", subscription.moving_from.is_none()),
            ("leastEpoch", subscription.least_epoch == Epoch::ZERO),
            ("leftAt", subscription.left_at.is_none()),
        ];
        let unset: Document = absent
            .into_iter()
            .filter(|(_, absent)| *absent)
            .map(|(field, _)| (field.to_owned(), Bson::from("")))
            .collect();
        if !unset.is_empty() {
            update.insert("$unset", unset);
        }
        let filter = doc! {
            "_id": record::id(subscription.id.as_bytes()),
            "generation": record::count(generation.get()),
        };
        let call = self
            .stored
            .subscriptions
            .find_one_and_update(filter, update)
            .return_document(ReturnDocument::After);
        match self.connection.reach(OPERATION, async { Ok(call.await) }).await? {
            Ok(Some(stored)) => {
                let read = Record::new(OPERATION, &stored).whole(KIND, read_subscription)?;
                Ok(Replaced::Done(read))
            }
            Ok(None) => Ok(match self.subscription(subscription.id).await? {
                Some(stored) => Replaced::Conflict(stored),
                None => Replaced::Missing,
            }),
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => {
                Err(self.url_taken(OPERATION, &subscription).await)
            }
            Err(error) => Err(error::from_driver(OPERATION, error)),
        }
    }

    async fn discard_subscription(&self, id: SubscriptionId) -> Result<bool> {
        let next = doc! { "$add": ["$generation", 1_i64] };
        let first = record::count(Generation::new(1).get());
        let next = doc! { "$cond": [{ "$isNumber": "$generation" }, next, first] };
        let marked = doc! { "$set": {
            "status": status_text(SubscriptionStatus::Deleting)?,
            "told": false,
            "generation": next,
            "reason": "$$REMOVE",
        } };
        let there = doc! {
            "_id": record::id(id.as_bytes()),
            "status": { "$ne": status_text(SubscriptionStatus::Deleting)? },
        };
        let call = self.stored.subscriptions.update_one(there, vec![marked]);
        Ok(self.connection.run("discard_subscription", call).await?.matched_count == 1)
    }

    async fn remove_subscription(&self, id: SubscriptionId) -> Result<()> {
        const OPERATION: &str = "remove_subscription";
        let id = record::id(id.as_bytes());
        let lanes = ids_after("subscription", id.clone(), "shard", None);
        let call = self.stored.subscriptions.find_one_and_delete(doc! { "_id": id });
        let removed = self.connection.run(OPERATION, call).await?;
        // After the subscription: who makes a state then looks for that, and takes it back.
        let call = self.stored.lanes.delete_many(doc! { "_id": lanes });
        self.connection.run(OPERATION, call).await?;
        // Only who removed it leaves its seat.
        if let Some(removed) = removed {
            let record = Record::new(OPERATION, &removed);
            // Where one sat that is damaged is not known: a fixup counts the seats anew.
            if let (Ok(resource), Ok(partition)) =
                (record.id("resource"), record.small("partition"))
            {
                let (resource, partition) =
                    (ResourceId::from_bytes(resource), PartitionId::new(partition));
                self.leave_seat(OPERATION, resource, partition).await?;
            }
        }
        Ok(())
    }
}
