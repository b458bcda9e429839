//! Takes what lanes' owners remember; keeps it, fenced, for as long as the subscription is there.

use flare_core::Result;
use flare_core::model::{Applied, Epoch, LaneId, LaneState, SubscriptionId};
use flare_core::port::{Listing, Scan};
use rusqlite::{OptionalExtension, params};

use crate::codec::subscription::{lane, read_lane};
use crate::codec::{count, read_epoch, read_id, read_small, unreadable_record};
use crate::engine::{Reader, Tx};
use crate::fault::Worked;
use crate::repository::SqliteRepository;
use crate::repository::documents::pages;

/// States of a page of a scan.
const PAGE: usize = 256;

/// Stores states under an epoch, unless a greater one has.
pub(super) fn store(
    tx: &mut Tx<'_>,
    epoch: Epoch,
    lanes: &[LaneState],
) -> Worked<Vec<Result<Applied>>> {
    const OPERATION: &str = "store_lanes";
    let mut there = tx.sql("SELECT n FROM subscriptions WHERE id = ?1")?;
    let mut stored = tx.sql("SELECT epoch FROM lanes WHERE subscription = ?1 AND shard = ?2")?;
    let mut keep = tx.sql(
        "INSERT INTO lanes (subscription, shard, epoch, state) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (subscription, shard) \
         DO UPDATE SET epoch = excluded.epoch, state = excluded.state, needs = NULL",
    )?;
    tx.each(OPERATION, lanes, |_, state| {
        let LaneId { subscription, shard } = state.lane;
        let id = subscription.as_bytes();
        let n: Option<i64> = there.query_row([id], |row| row.get(0)).optional()?;
        let Some(n) = n else { return Ok(Applied::Missing) };
        let before: Option<i64> =
            stored.query_row(params![n, shard], |row| row.get(0)).optional()?;
        if let Some(before) = before.filter(|before| *before > count(epoch.get())) {
            let epoch = read_epoch(before).map_err(|why| {
                unreadable_record(OPERATION, flare_core::model::RecordName::Lane(state.lane), why)
            })?;
            return Ok(Applied::Fenced { epoch });
        }
        let text = lane(state, epoch)?;
        keep.execute(params![n, shard, count(epoch.get()), text])?;
        Ok(Applied::Done)
    })
}

/// The states of a subscription's lanes, in shard order.
pub(super) fn of(reader: &Reader<'_>, subscription: SubscriptionId) -> Worked<Listing<LaneState>> {
    let mut find = reader.sql(
        "SELECT l.shard, l.state, l.needs FROM lanes l \
         JOIN subscriptions s ON s.n = l.subscription WHERE s.id = ?1 ORDER BY l.shard",
    )?;
    let mut rows = find.query([subscription.as_bytes()])?;
    let mut read = Vec::new();
    while let Some(row) = rows.next()? {
        let (shard, text, needs): (i64, String, Option<i64>) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        // One of a number that no lane has was made by nobody.
        let Ok(shard) = read_small(shard, "shard") else { continue };
        read.push(read_lane("lanes", LaneId::new(subscription, shard), &text, needs));
    }
    let total = read.len() as u64;
    Ok(Listing::of_read(read, total)?)
}

impl SqliteRepository {
    /// The states of all lanes, by the numbers of their subscriptions.
    pub(super) fn scan_lane_states(&self) -> Scan<'_, LaneState> {
        const OPERATION: &str = "scan_lanes";
        pages((i64::MIN, i64::MIN), move |(n, shard): (i64, i64)| {
            let read = move |reader: &Reader<'_>| {
                let mut find = reader.sql(
                    "SELECT s.id, l.subscription, l.shard, l.state, l.needs FROM lanes l \
                     JOIN subscriptions s ON s.n = l.subscription \
                     WHERE (l.subscription, l.shard) > (?1, ?2) \
                     ORDER BY l.subscription, l.shard LIMIT ?3",
                )?;
                let mut rows = find.query(params![n, shard, PAGE as i64])?;
                let (mut read, mut found, mut last) = (Vec::new(), 0, (n, shard));
                while let Some(row) = rows.next()? {
                    let (id, of): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
                    let (number, text, needs): (i64, String, Option<i64>) =
                        (row.get(2)?, row.get(3)?, row.get(4)?);
                    (found, last) = (found + 1, (of, number));
                    // One that no lane has, or nobody, was made by nobody.
                    let Ok(id) = read_id(&id, "id").map(SubscriptionId::from_bytes) else {
                        continue;
                    };
                    let Ok(number) = read_small(number, "shard") else { continue };
                    read.push(read_lane(OPERATION, LaneId::new(id, number), &text, needs));
                }
                Ok((read, (found == PAGE).then_some(last)))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }
}
