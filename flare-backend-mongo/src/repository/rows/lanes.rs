//! Takes what lanes' owners remember; keeps it under their epochs.
//!
//! A record: `{_id: {subscription, shard}, epoch, state (JSON), needs?}`.

use std::collections::HashSet;

use flare_core::model::{Applied, Epoch, LaneId, LaneState, RecordKind, SubscriptionId};
use flare_core::port::{Listing, Scan};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Bson, Document, doc};

use super::super::waves::waves;
use super::super::{MongoRepository, ids_after, lost_race};
use crate::BACKEND;
use crate::bulk::{Update, Updated};
use crate::record::{self, Record};

const OPERATION: &str = "store_lanes";

fn id(lane: LaneId) -> Bson {
    let subscription = record::id(lane.subscription.as_bytes());
    doc! { "subscription": subscription, "shard": i64::from(lane.shard) }.into()
}

pub(in crate::repository) fn read_state(record: Record<'_>) -> Result<LaneState> {
    serde_json::from_str(record.text("state")?)
        .map_err(|error| record.corrupt("state").with_source(error))
}

fn store(epoch: Epoch, mut state: LaneState) -> Result<Update> {
    state.epoch = epoch;
    let text = serde_json::to_string(&state).map_err(|error| {
        Error::new(ErrorKind::Internal, OPERATION).with_backend(BACKEND).with_source(error)
    })?;
    let epoch = record::count(epoch.get());
    let change = doc! { "$set": { "epoch": &epoch, "state": text } }.into();
    // Not above ours, whatever else it is: one that is damaged fences nobody off.
    let filter = doc! { "_id": id(state.lane), "epoch": { "$not": { "$gt": epoch } } };
    Ok(Update { filter, change, upsert: true })
}

impl MongoRepository {
    pub(super) async fn store_lane_states(
        &self,
        epoch: Epoch,
        lanes: Vec<LaneState>,
    ) -> Vec<Result<Applied>> {
        let mut answers: Vec<Result<Applied>> = vec![Err(lost_race(OPERATION)); lanes.len()];
        for wave in waves(lanes, |state| state.lane) {
            let lanes: Vec<(usize, LaneId)> =
                wave.iter().map(|(place, state)| (*place, state.lane)).collect();
            let updates: Result<Vec<Update>> =
                wave.into_iter().map(|(_, state)| store(epoch, state)).collect();
            let stored = match updates {
                Ok(updates) => {
                    let collection = &self.stored.lanes;
                    self.connection.update_each(OPERATION, collection, updates).await
                }
                Err(error) => vec![Err(error); lanes.len()],
            };
            let made =
                lanes.iter().zip(&stored).filter(|(_, it)| matches!(it, Ok(Updated::Inserted)));
            let gone = self.take_back(made.map(|((_, lane), _)| *lane).collect()).await;
            for ((place, lane), stored) in lanes.into_iter().zip(stored) {
                answers[place] = match (stored, &gone) {
                    (Ok(Updated::Duplicate), _) => self.fenced(lane, epoch).await,
                    (Ok(Updated::Inserted), Err(error)) => Err(error.clone()),
                    (Ok(Updated::Inserted), Ok(gone)) if gone.contains(&lane.subscription) => {
                        Ok(Applied::Missing)
                    }
                    (other, _) => other.map(|_| Applied::Done),
                };
            }
        }
        answers
    }

    /// Takes back states that were just made of subscriptions that are not there, and names those. A
    /// removal that crossed them may have looked for states before; whoever makes one looks for the
    /// subscription afterwards: one of both sees the other.
    async fn take_back(&self, made: Vec<LaneId>) -> Result<HashSet<SubscriptionId>> {
        if made.is_empty() {
            return Ok(HashSet::new());
        }
        let its: HashSet<SubscriptionId> = made.iter().map(|lane| lane.subscription).collect();
        let ids: Vec<Bson> = its.iter().map(|id| record::id(id.as_bytes())).collect();
        let found = self.stored.subscriptions.find(doc! { "_id": { "$in": ids } });
        let found = found.projection(doc! { "_id": 1 });
        let read = |record: Record<'_>| Ok(SubscriptionId::from_bytes(record.id("_id")?));
        let found = self.connection.all(OPERATION, found, read).await;
        // Where that cannot be told all are made again by the next call, which looks as well.
        let there: HashSet<SubscriptionId> = found.iter().flatten().copied().collect();
        let stray = made.into_iter().filter(|lane| !there.contains(&lane.subscription));
        let stray: Vec<Bson> = stray.map(id).collect();
        if !stray.is_empty() {
            let call = self.stored.lanes.delete_many(doc! { "_id": { "$in": stray } });
            self.connection.run(OPERATION, call).await?;
        }
        found?;
        Ok(its.difference(&there).copied().collect())
    }

    /// Who has been there: a later owner, or one that made the record at the same moment.
    async fn fenced(&self, lane: LaneId, epoch: Epoch) -> Result<Applied> {
        let question = self.stored.lanes.find_one(doc! { "_id": id(lane) });
        let found = self.connection.run(OPERATION, question).await?;
        let read = |found: &Document| Record::new(OPERATION, found).small("epoch").map(Epoch::new);
        match found.as_ref().map(read).transpose()? {
            Some(later) if later > epoch => Ok(Applied::Fenced { epoch: later }),
            _ => Err(lost_race(OPERATION)),
        }
    }

    pub(super) async fn lane_states(
        &self,
        subscription: SubscriptionId,
    ) -> Result<Listing<LaneState>> {
        let all = ids_after("subscription", record::id(subscription.as_bytes()), "shard", None);
        let question = self.stored.lanes.find(doc! { "_id": all }).sort(doc! { "_id": 1 });
        let read = self.connection.each("lanes", RecordKind::Lane, question, read_state).await?;
        let total = read.len() as u64;
        Listing::of_read(read, total)
    }

    pub(super) fn scan_lane_states(&self) -> Scan<'_, LaneState> {
        let lanes = &self.stored.lanes;
        let question = async move { lanes.find(doc! {}).sort(doc! { "_id": 1 }).await };
        self.connection.scan("scan_lanes", RecordKind::Lane, question, read_state)
    }
}
