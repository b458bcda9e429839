//! Takes the counts of seats and the subscriptions that sit there; gives the counts that are wrong
//! or missing, and corrects them.
//!
//! A seat is taken before its subscription is stored, and left after it is removed, so for a moment
//! a count may be too high: one that was raised within the last minute is passed over, and one that
//! is corrected is looked at twice.

use std::cmp::Ordering;
use std::time::Duration;

use flare_core::Result;
use flare_core::model::{RecordKind, ResourceId};
use flare_core::port::Step;
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};

use super::MongoUpkeep;
use crate::error::{self, DUPLICATE_KEY};
use crate::record::{self, Record};

const APPLY: &str = "apply";
const PLAN: &str = "plan";
const PARTITIONS: &str = "partitions";
const SUBSCRIPTIONS: &str = "subscriptions";

/// A subscription is stored within this time of taking its seat, or never.
const STORED_WITHIN: Duration = Duration::from_secs(60);
/// Whoever removes a subscription leaves its seat within this time, unless it died.
const LEFT_WITHIN: Duration = Duration::from_millis(250);

/// A partition of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Partition {
    resource: ResourceId,
    number: u32,
}

/// A count to correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seats {
    partition: Partition,
    /// What the count says, if there is one.
    taken: Option<i64>,
    /// How many subscriptions sit there.
    seated: i64,
}

/// What is said about one partition.
#[derive(Debug, Clone, Copy)]
struct Count {
    partition: Partition,
    count: i64,
    /// Whether nobody can be on the way to a seat.
    quiet: bool,
}

impl Partition {
    /// From an id laid out as Flare's are: the order of the fields matters.
    fn read(id: &Bson) -> Option<Self> {
        let id = id.as_document().filter(|id| id.keys().eq(["resource", "number"]))?;
        let record = Record::new(PLAN, id);
        let resource = ResourceId::from_bytes(record.id("resource").ok()?);
        Some(Self { resource, number: record.small("number").ok()? })
    }

    fn id(&self) -> Document {
        let resource = record::id(self.resource.as_bytes());
        doc! { "resource": resource, "number": i64::from(self.number) }
    }

    fn subject(&self) -> String {
        format!("seats of partition {} of resource {}", self.number, self.resource)
    }
}

impl Seats {
    fn step(&self) -> Step {
        let Self { partition, taken, seated } = self;
        match taken {
            None => {
                let reason = format!("{seated} subscriptions sit there, and nobody counts them");
                Step::create(partition.subject(), reason)
            }
            Some(taken) => {
                let reason =
                    format!("{taken} are counted as taken, and {seated} subscriptions sit there");
                let state = format_args!("{taken} taken, {seated} seated");
                Step::update(partition.subject(), reason).planned_from(state)
            }
        }
    }

    /// What a step corrects, if it is one that [`MongoUpkeep::miscounted`] could have planned.
    pub(super) fn of_step(step: &Step) -> Option<Self> {
        let (kind, rest) = step.id.split_once(" seats of partition ")?;
        let (number, rest) = rest.split_once(" of resource ")?;
        let (resource, taken, seated) = match kind {
            "create" => (rest, None, 0),
            "update" => {
                let (resource, state) = rest.split_once(", from ")?;
                let (taken, seated) = state.strip_suffix(" seated")?.split_once(" taken, ")?;
                (resource, Some(taken.parse().ok()?), seated.parse().ok()?)
            }
            _ => return None,
        };
        let partition =
            Partition { resource: resource.parse().ok()?, number: number.parse().ok()? };
        let seats = Self { partition, taken, seated };
        let possible = taken != Some(seated) && seats.step().id == step.id;
        possible.then_some(seats)
    }
}

/// What is wrong where so many seats are taken and so many are sat on.
fn wrong(taken: Option<Count>, seated: Option<Count>) -> Option<Seats> {
    match (taken, seated) {
        (Some(taken), seated) => {
            let seated = seated.map_or(0, |seated| seated.count);
            let Count { partition, count, quiet } = taken;
            let wrong = quiet && count != seated;
            wrong.then_some(Seats { partition, taken: Some(count), seated })
        }
        (None, Some(Count { partition, count, .. })) => {
            Some(Seats { partition, taken: None, seated: count })
        }
        (None, None) => None,
    }
}

/// Whether nobody took a seat lately, in a pipeline.
fn quiet() -> Document {
    let lately = i64::try_from(STORED_WITHIN.as_millis()).unwrap_or(i64::MAX);
    doc! { "$lt": ["$takenAt", { "$subtract": ["$$NOW", lately] }] }
}

fn read_count(record: Record<'_>) -> Result<Option<Count>> {
    let Some(partition) = record.any("_id").and_then(Partition::read) else { return Ok(None) };
    let Ok(count) = record.number("count") else { return Ok(None) };
    Ok(Some(Count { partition, count, quiet: record.flag("quiet")? }))
}

impl MongoUpkeep {
    /// The counts that are wrong, by resource and partition. Both sides come in the same order, so
    /// neither has to be kept.
    pub(super) async fn miscounted(&self) -> Result<Vec<Step>> {
        let partitions = self.connection.collection(PARTITIONS);
        let counts = doc! { "$project": { "count": "$seats", "quiet": quiet() } };
        let counts = vec![doc! { "$sort": { "_id": 1 } }, counts];
        let taken = async move { partitions.aggregate(counts).await };
        let subscriptions = self.connection.collection(SUBSCRIPTIONS);
        let sum = doc! {
            "_id": { "resource": "$resource", "number": "$partition" },
            "count": { "$sum": 1_i64 },
        };
        let sums = vec![doc! { "$group": sum }, doc! { "$sort": { "_id": 1 } }];
        let seated = async move { subscriptions.aggregate(sums).allow_disk_use(true).await };
        let mut taken = self.connection.scan(PLAN, RecordKind::Subscription, taken, read_count);
        let mut seated = self.connection.scan(PLAN, RecordKind::Subscription, seated, read_count);
        let mut steps = Vec::new();
        let (mut left, mut right) = (next(&mut taken).await?, next(&mut seated).await?);
        loop {
            let order = match (&left, &right) {
                (None, None) => return Ok(steps),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.partition.cmp(&right.partition),
            };
            let one = if order.is_le() { left.take() } else { None };
            let other = if order.is_ge() { right.take() } else { None };
            steps.extend(wrong(one, other).map(|seats| seats.step()));
            if order.is_le() {
                left = next(&mut taken).await?;
            }
            if order.is_ge() {
                right = next(&mut seated).await?;
            }
        }
    }

    /// Corrects a count, if both sides are as planned.
    pub(super) async fn recount(&self, seats: &Seats) -> Result<bool> {
        let partitions = self.connection.collection(PARTITIONS);
        let id = seats.partition.id();
        let Some(taken) = seats.taken else {
            let seated = self.seated(&seats.partition).await?;
            if seated == 0 {
                return Ok(false);
            }
            let uncounted = doc! { "_id": id, "seats": { "$exists": false } };
            let count = doc! { "$set": { "seats": seated }, "$currentDate": { "takenAt": true } };
            let call = partitions.update_one(uncounted, count).upsert(true);
            return match self.connection.reach(APPLY, async { Ok(call.await) }).await? {
                Ok(_) => Ok(true),
                Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => Ok(false),
                Err(error) => Err(error::from_driver(APPLY, error)),
            };
        };
        if self.seated(&seats.partition).await? != seats.seated {
            return Ok(false);
        }
        // Whoever has just removed a subscription changes the count by itself.
        self.connection.pause(LEFT_WITHIN).await;
        if self.seated(&seats.partition).await? != seats.seated {
            return Ok(false);
        }
        let unchanged = doc! { "_id": id, "seats": taken, "$expr": quiet() };
        let call = partitions.update_one(unchanged, doc! { "$set": { "seats": seats.seated } });
        Ok(self.connection.run(APPLY, call).await?.matched_count == 1)
    }

    /// How many subscriptions sit in a partition, those that are being removed included.
    async fn seated(&self, partition: &Partition) -> Result<i64> {
        let there = doc! {
            "resource": record::id(partition.resource.as_bytes()),
            "partition": i64::from(partition.number),
        };
        let subscriptions = self.connection.collection(SUBSCRIPTIONS);
        let count = self.connection.run(APPLY, subscriptions.count_documents(there)).await?;
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// The next that is laid out as Flare's are.
async fn next(counts: &mut flare_core::port::Scan<'_, Option<Count>>) -> Result<Option<Count>> {
    loop {
        match counts.try_next().await? {
            Some(None) => {}
            Some(found) => return Ok(found),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTITION: Partition = Partition { resource: ResourceId::from_bytes([9; 16]), number: 2 };

    fn count(count: i64, quiet: bool) -> Option<Count> {
        Some(Count { partition: PARTITION, count, quiet })
    }

    #[test]
    fn a_count_is_wrong_if_it_is_not_what_is_seated() {
        let seats = |taken, seated| Some(Seats { partition: PARTITION, taken, seated });
        assert_eq!(wrong(count(3, true), count(3, false)), None);
        assert_eq!(wrong(count(0, true), None), None);
        assert_eq!(wrong(count(3, true), count(2, false)), seats(Some(3), 2));
        assert_eq!(wrong(count(1, true), None), seats(Some(1), 0));
        assert_eq!(wrong(None, count(2, false)), seats(None, 2));
        assert_eq!(wrong(count(3, false), count(2, false)), None, "somebody may be on the way");
    }

    #[test]
    fn a_correction_is_known_by_the_id_of_its_step() {
        for (taken, seated) in [(Some(3), 2), (Some(0), 7), (None, 0)] {
            let seats = Seats { partition: PARTITION, taken, seated };
            let mut step = seats.step();
            assert_eq!(Seats::of_step(&step), Some(seats));
            step.id.push_str(" and more");
            assert_eq!(Seats::of_step(&step), None);
        }
        let right = Seats { partition: PARTITION, taken: Some(2), seated: 2 };
        assert_eq!(Seats::of_step(&right.step()), None, "there is nothing to correct");
    }

    #[test]
    fn only_ids_laid_out_as_ours_are_partitions() {
        assert_eq!(Partition::read(&PARTITION.id().into()), Some(PARTITION));
        let resource = record::id(&[9; 16]);
        for foreign in [
            Bson::from("text"),
            doc! { "number": 2, "resource": resource.clone() }.into(),
            doc! { "resource": resource.clone(), "number": -2 }.into(),
            doc! { "resource": resource, "number": 2, "more": 1 }.into(),
        ] {
            assert_eq!(Partition::read(&foreign), None, "{foreign}");
        }
    }
}
