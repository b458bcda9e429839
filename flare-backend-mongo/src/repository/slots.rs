//! Takes slots; gives the subscriptions whose lanes are there, in the order of their hashes.
//!
//! Nearly all are found by ranges of `slotHash`. Beside them come the few whose record says that they
//! are in one of the slots, or have yet to leave it (`slot`, `movingFrom`), though their hash is
//! another's.

use std::collections::VecDeque;
use std::pin::Pin;

use flare_core::model::{RecordKind, RecordName, SlotHash, Subscription, SubscriptionId};
use flare_core::port::{Scan, SlotQuery};
use flare_core::{Error, Result};
use futures::stream::{self, Peekable};
use futures::{StreamExt, TryStreamExt};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};

use super::MongoRepository;
use super::subscriptions::read_subscription;
use crate::record::{self, Record};

const OPERATION: &str = "subscriptions_in";
const KIND: RecordKind = RecordKind::Subscription;
/// How many ranges of hashes are asked for at a time: the server plans each of them.
const RANGES: usize = 64;
/// How many hashes are filled in at a time.
const SIDE_BY_SIDE: usize = 16;

/// Where a subscription is in the order.
type Hashed = (SlotHash, SubscriptionId);

fn hashed(id: SubscriptionId) -> Hashed {
    (SlotHash::of(id), id)
}

/// Where what was read is in the order; nowhere, if it is no subscription.
fn position(read: &Result<Subscription>) -> Option<Hashed> {
    match read {
        Ok(subscription) => Some(hashed(subscription.id)),
        Err(error) => match error.unreadable()?.record {
            RecordName::Subscription(id) => Some(hashed(id)),
            _ => None,
        },
    }
}

/// Whether it comes after one of them. What ends a scan is never left out.
fn is_after(read: &Result<Subscription>, after: Option<Hashed>) -> bool {
    position(read).is_none_or(|it| after.is_none_or(|after| it > after))
}

/// The stored form of a hash.
pub(super) fn stored_hash(id: SubscriptionId) -> Bson {
    i64::from(SlotHash::of(id).number()).into()
}

/// Conditions that are true of these hashes, none of them below one.
fn within(query: &SlotQuery, least: SlotHash) -> Vec<Document> {
    let ranges = query.hashes.iter().filter(|range| *range.end() >= least);
    let bound = |range: &std::ops::RangeInclusive<SlotHash>| {
        let first = i64::from(least.max(*range.start()).number());
        doc! { "slotHash": { "$gte": first, "$lte": i64::from(range.end().number()) } }
    };
    ranges.map(bound).collect()
}

impl MongoRepository {
    pub(super) fn in_slots(
        &self,
        query: SlotQuery,
        after: Option<SubscriptionId>,
    ) -> Scan<'_, Subscription> {
        let merged = async move {
            let after = after.map(hashed);
            if after.is_none() {
                // Before a scan begins, and not at each of its parts.
                let fill = fill_in_hashes(&self.stored.subscriptions);
                self.connection.run(OPERATION, fill).await?;
            }
            let elsewhere = self.said_to_be_in(&query, after).await?;
            let hashed = self.hashed_onto(&query, after).peekable();
            Ok::<_, Error>(stream::unfold((hashed, elsewhere), next))
        };
        stream::once(merged).try_flatten().boxed()
    }

    /// Those with the hashes asked for.
    fn hashed_onto(&self, query: &SlotQuery, after: Option<Hashed>) -> Scan<'_, Subscription> {
        let ranges = within(query, after.map_or(SlotHash::new(0), |(hash, _)| hash));
        let parts: Vec<Vec<Document>> = ranges.chunks(RANGES).map(<[_]>::to_vec).collect();
        let found = &self.stored.subscriptions;
        let all = stream::iter(parts).flat_map(move |ranges| {
            let question = async move {
                found.find(doc! { "$or": ranges }).sort(doc! { "slotHash": 1, "_id": 1 }).await
            };
            self.connection.scan(OPERATION, KIND, question, read_subscription)
        });
        all.filter(move |read| std::future::ready(is_after(read, after))).boxed()
    }

    /// Those whose records name one of the slots, and whose hashes are not asked for; in order.
    async fn said_to_be_in(
        &self,
        query: &SlotQuery,
        after: Option<Hashed>,
    ) -> Result<VecDeque<Result<Subscription>>> {
        let all = SlotHash::new(0)..=SlotHash::new(u32::MAX);
        if query.slots.is_empty() || query.hashes == [all] {
            return Ok(VecDeque::new());
        }
        let slots: Vec<i64> = query.slots.iter().copied().map(i64::from).collect();
        let mut named = doc! { "$or": [
            { "slot": { "$in": &slots } },
            { "movingFrom": { "$in": &slots } },
        ] };
        if !query.hashes.is_empty() {
            named.insert("$nor", within(query, SlotHash::new(0)));
        }
        let question = self.stored.subscriptions.find(named);
        let mut read = self.connection.each(OPERATION, KIND, question, read_subscription).await?;
        read.retain(|read| is_after(read, after));
        read.sort_by_key(position);
        Ok(read.into())
    }
}

type Both<'a> = (Peekable<Scan<'a, Subscription>>, VecDeque<Result<Subscription>>);

/// The first of both.
async fn next(mut both: Both<'_>) -> Option<(Result<Subscription>, Both<'_>)> {
    let (hashed, elsewhere) = &mut both;
    let first = elsewhere.front().map(position);
    let earlier = match Pin::new(&mut *hashed).peek().await {
        Some(next) => first.is_some_and(|first| first < position(next)),
        None => true,
    };
    let read = if earlier { elsewhere.pop_front() } else { hashed.next().await }?;
    if position(&read).is_none() {
        // Any other error is the end.
        (*hashed, *elsewhere) = (stream::empty().boxed().peekable(), VecDeque::new());
    }
    Some((read, both))
}

/// Gives those a hash that have none: nodes of before there were hashes may be creating some. May run
/// anywhere, at the same time and as often as one likes.
pub(crate) async fn fill_in_hashes(
    subscriptions: &Collection<Document>,
) -> mongodb::error::Result<()> {
    let without = doc! { "slotHash": null };
    let found = subscriptions.find(without.clone()).projection(doc! { "_id": 1 }).await?;
    let fill = |found: Document| {
        let mut without = without.clone();
        async move {
            // What has no id of ours no node works.
            let Ok(id) = Record::new(OPERATION, &found).id("_id") else { return Ok(()) };
            without.insert("_id", record::id(&id));
            let hash = doc! { "slotHash": stored_hash(SubscriptionId::from_bytes(id)) };
            subscriptions.update_one(without, doc! { "$set": hash }).await.map(|_| ())
        }
    };
    found.map_ok(fill).try_buffer_unordered(SIDE_BY_SIDE).try_collect().await
}
