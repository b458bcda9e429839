//! Takes what lanes' owners remember; keeps it, fenced, for as long as the subscription is there.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{Applied, Epoch, LaneId, LaneState, RecordName, SubscriptionId};
use flare_core::port::{Listing, Scan};
use uuid::Uuid;

use super::super::PostgresRepository;
use crate::codec::subscription::{lane, read_lane};
use crate::codec::{count, id as uuid, limit, read_epoch, read_small, unreadable_record};
use crate::connection::Value;
use crate::fault::Worked;
use crate::pages::{ScanPage, pages};

/// States of a page of a scan.
const PAGE: usize = 256;

/// Which of the subscriptions are there, and stay so until the states are stored.
const THERE: &str =
    "SELECT id FROM flare.subscriptions WHERE id = ANY($1) ORDER BY id FOR KEY SHARE";

const STORE: &str = "INSERT INTO flare.lanes AS l (subscription, shard, epoch, state) \
     SELECT subscription, shard, $4, state FROM unnest($1::uuid[], $2::bigint[], $3::text[]) \
         v(subscription, shard, state) ORDER BY subscription, shard \
     ON CONFLICT (subscription, shard) DO UPDATE SET \
         epoch = greatest(l.epoch, excluded.epoch), \
         state = CASE WHEN l.epoch <= excluded.epoch THEN excluded.state ELSE l.state END, \
         needs = CASE WHEN l.epoch <= excluded.epoch THEN NULL ELSE l.needs END \
     RETURNING subscription, shard, epoch";

impl PostgresRepository {
    /// Stores states under an epoch, unless a greater one has.
    pub(super) async fn keep_lanes(
        &self,
        epoch: Epoch,
        lanes: &[LaneState],
    ) -> Worked<Vec<Result<Applied>>> {
        const OPERATION: &str = "store_lanes";
        let asked: Vec<Uuid> =
            lanes.iter().map(|state| uuid(state.lane.subscription.as_bytes())).collect();
        let mut session = self.database.session(OPERATION).await?;
        let there = session.begin(THERE, &[&asked]).await?;
        let there = there.iter().map(|row| row.try_get(0));
        let there = there.collect::<std::result::Result<std::collections::HashSet<Uuid>, _>>()?;
        // Of several states of a lane the last counts.
        let mut last: HashMap<LaneId, String> = HashMap::with_capacity(lanes.len());
        for state in lanes {
            if there.contains(&uuid(state.lane.subscription.as_bytes())) {
                last.insert(state.lane, lane(state, epoch)?);
            }
        }
        let (mut of, mut shards, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for (lane, state) in last {
            of.push(uuid(lane.subscription.as_bytes()));
            shards.push(i64::from(lane.shard));
            states.push(state);
        }
        let mine = count(epoch.get());
        let values: [&dyn Value; 4] = [&of, &shards, &states, &mine];
        let stored = session.finish(STORE, &values).await?;
        let mut epochs: HashMap<(Uuid, i64), i64> = HashMap::with_capacity(stored.len());
        for row in &stored {
            epochs.insert((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?);
        }
        let answer = |state: &LaneState| {
            let LaneId { subscription, shard } = state.lane;
            match epochs.get(&(uuid(subscription.as_bytes()), i64::from(shard))) {
                None => Ok(Applied::Missing),
                Some(stored) if *stored > mine => {
                    let epoch = read_epoch(*stored).map_err(|why| {
                        unreadable_record(OPERATION, RecordName::Lane(state.lane), why)
                    })?;
                    Ok(Applied::Fenced { epoch })
                }
                Some(_) => Ok(Applied::Done),
            }
        };
        Ok(lanes.iter().map(answer).collect())
    }

    /// The states of a subscription's lanes, in shard order.
    pub(super) async fn lanes_of(
        &self,
        subscription: SubscriptionId,
    ) -> Worked<Listing<LaneState>> {
        const OPERATION: &str = "lanes";
        const SQL: &str = "SELECT l.shard, l.state, l.needs FROM flare.lanes l \
             JOIN flare.subscriptions s ON s.id = l.subscription WHERE s.id = $1 ORDER BY l.shard";
        let rows = self.database.all(OPERATION, SQL, &[&uuid(subscription.as_bytes())]).await?;
        let mut read = Vec::with_capacity(rows.len());
        for row in &rows {
            let (shard, text): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
            // One of a number that no lane has was made by nobody.
            let Ok(shard) = read_small(shard, "shard") else { continue };
            let lane = LaneId::new(subscription, shard);
            read.push(read_lane(OPERATION, lane, &text, row.try_get(2)?));
        }
        let total = read.len() as u64;
        Ok(Listing::of_read(read, total)?)
    }

    /// The states of all lanes, by subscription and shard.
    pub(super) fn scan_lane_states(&self) -> Scan<'_, LaneState> {
        pages((Uuid::nil(), -1), move |after| {
            let read = move || self.page_of_lanes(after);
            Box::pin(async move { self.database.attempts("scan_lanes", read).await })
        })
    }

    async fn page_of_lanes(
        &self,
        (subscription, shard): (Uuid, i64),
    ) -> Worked<ScanPage<LaneState, (Uuid, i64)>> {
        const OPERATION: &str = "scan_lanes";
        const SQL: &str = "SELECT subscription, shard, state, needs FROM flare.lanes \
             WHERE (subscription, shard) > ($1, $2) ORDER BY subscription, shard LIMIT $3";
        let values: [&dyn Value; 3] = [&subscription, &shard, &limit(PAGE)];
        let rows = self.database.all(OPERATION, SQL, &values).await?;
        let (mut read, mut last) = (Vec::with_capacity(rows.len()), None);
        for row in &rows {
            let (id, number, text): (Uuid, i64, String) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            last = Some((id, number));
            // One of a number that no lane has was made by nobody.
            let Ok(number) = read_small(number, "shard") else { continue };
            let lane = LaneId::new(SubscriptionId::from_bytes(id.into_bytes()), number);
            read.push(read_lane(OPERATION, lane, &text, row.try_get(3)?));
        }
        Ok((read, last.filter(|_| rows.len() == PAGE)))
    }
}
