//! Takes documents of a resource with one partition, which is the usual case; gives everyone in it a row that
//! wants them, in one call of the store, and tells the lanes. Lanes of this process get what was written,
//! so that they need not read it again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

use super::context::Context;
use super::lane::Handover;
use super::lanes::LaneAddress;
use super::load::Documents;
use super::spread::{BATCHES, dispatched};
use super::turn::Turn;
use crate::error::Result;
use crate::model::{
    Document, DocumentUrl, LaneId, ResourceId, Row, RowKey, SubscriptionId, SubscriptionStatus,
    Timestamp,
};
use crate::port::{DocumentsSpread, Member, SpreadAnswer, SpreadDocuments, WrittenRows};
use crate::tools::lock;

/// Documents at a time that lanes are handed: of more, each lane reads its own together.
const HANDED: usize = 16;
/// Bytes of them, which are not counted until a lane has them.
const HANDED_BYTES: usize = 256 << 10;

/// How long a resource is known to be spread partition by partition. A worker that is wrong about it asks the store
/// once too often, or takes the longer way.
const APART_FOR: Duration = Duration::from_secs(30);
/// Resources that are known to be.
const MOST_APART: usize = 1_024;

/// Resources that were found to be spread partition by partition, and when, by the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct ApartResources(Mutex<HashMap<ResourceId, Duration>>);

impl ApartResources {
    pub(super) fn have(&self, resource: ResourceId, now: Duration) -> bool {
        let found = lock(&self.0).get(&resource).copied();
        found.is_some_and(|at| now.saturating_sub(at) < APART_FOR)
    }

    fn add(&self, resource: ResourceId, now: Duration) {
        let mut known = lock(&self.0);
        if known.len() >= MOST_APART {
            known.clear();
        }
        known.insert(resource, now);
    }
}

impl Context {
    /// Whether the store is to spread a resource's documents to everyone at once, as far as is known.
    pub(super) fn spreads_at_once(&self, resource: ResourceId) -> bool {
        let apart = self.apart.have(resource, self.clock.monotonic());
        self.settings.shortcuts.spread_at_once && !apart
    }
}

/// Whether documents were spread to everyone, or are to be spread partition by partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spreading {
    Done,
    Apart,
}

/// Spreads documents until all are done or the turn is over, and leaves the rest.
pub(super) async fn spread_to_all(turn: &Turn<'_>, documents: &mut Documents) -> Result<Spreading> {
    while !documents.is_empty() && !turn.is_over() {
        let mut written = UntoldRows::default();
        let spread = written.spread_some(turn, documents).await;
        // Whatever failed then: what is dispatched is not looked at again.
        written.tell(turn).await?;
        if spread? == Spreading::Apart {
            return Ok(Spreading::Apart);
        }
    }
    Ok(Spreading::Done)
}

/// What was written, and has to be told.
#[derive(Debug, Default)]
struct UntoldRows {
    /// The lanes that got something to do, and their rows.
    lanes: BTreeMap<LaneAddress, Vec<RowKey>>,
    rows: HashMap<RowKey, (Row, Document)>,
    /// When it was asked for: as a moment of this process, and by the store's clock.
    asked: (u64, Timestamp),
    members: BTreeSet<SubscriptionId>,
    /// What has to be dispatched yet.
    undispatched: Documents,
}

impl UntoldRows {
    /// Writes rows for a while: lanes that are told of many at once read them together.
    async fn spread_some(
        &mut self,
        turn: &Turn<'_>,
        documents: &mut Documents,
    ) -> Result<Spreading> {
        let (context, resource) = (turn.context, turn.resource);
        let (limit, shortcuts) = (context.batch_limit(), context.settings.shortcuts);
        // A wake-up that goes through a queue may fail, and then has to be made again: what is still to be
        // dispatched says so.
        let at_once = context.repository.facts().spreads_at_once
            && shortcuts.hand_over
            && context.near.work_all(context.all_slots());
        let hands = shortcuts.hand_over && documents.len() <= HANDED;
        for _ in 0..BATCHES {
            let began = context.clock.monotonic();
            let some = documents.iter().take(limit);
            let some: Vec<_> = some.map(|(url, version)| (url.clone(), *version)).collect();
            let request = SpreadDocuments::new(resource, some.clone(), limit)
                .dispatching(at_once)
                .giving(if hands { HANDED_BYTES } else { 0 });
            self.asked = (context.near.moment(), context.now());
            let done = match context.repository.spread_documents(request).await {
                Ok(SpreadAnswer::Done(done)) => done,
                Ok(SpreadAnswer::Apart) => {
                    context.apart.add(resource, began);
                    return Ok(Spreading::Apart);
                }
                // One by one it shows which document that is.
                Err(error) if error.unreadable().is_some() => return Ok(Spreading::Apart),
                Err(error) => return Err(error),
            };
            turn.advances();
            let taken: Documents = some.into_iter().take(done.taken).collect();
            documents.retain(|url, _| !taken.contains_key(url));
            turn.did(taken.len(), began);
            if !at_once {
                let spread: BTreeSet<&DocumentUrl> = done.spread.iter().collect();
                let owed = taken.into_iter().filter(|(url, _)| spread.contains(url));
                self.undispatched.extend(owed);
            }
            // What came in several parts is of several moments: lanes read it.
            let whole = documents.is_empty() && self.lanes.is_empty();
            self.take(context, done, whole);
            if documents.is_empty() || turn.is_over() {
                break;
            }
        }
        Ok(Spreading::Done)
    }

    fn take(&mut self, context: &Context, done: DocumentsSpread, whole: bool) {
        self.members.extend(done.members.iter().map(|member| member.subscription));
        for (address, keys) in lanes(context, &done.members, &done.spread) {
            self.lanes.entry(address).or_default().extend(keys);
        }
        for written in done.written.into_iter().filter(|_| whole) {
            let WrittenRows { document, rows } = written;
            let with = |row: Row| (row.key.clone(), (row, document.clone()));
            self.rows.extend(rows.into_iter().map(with));
        }
    }

    /// Tells the lanes: those of this process at once, the others through their queues; then notes that
    /// they were told.
    async fn tell(mut self, turn: &Turn<'_>) -> Result<()> {
        let (context, (moment, at)) = (turn.context, self.asked);
        let mut far = BTreeSet::new();
        for (address, keys) in self.lanes {
            // Half of them would have it look for the rest all the same.
            let rows: Option<Vec<_>> = keys.iter().map(|key| self.rows.remove(key)).collect();
            let handover = rows.map(|rows| Handover { moment, at, rows });
            let near = context.settings.shortcuts.hand_over
                && context.near.tell(address, handover, &*context.clock);
            if !near {
                far.insert((address.lane, address.slot));
            }
        }
        if !far.is_empty() {
            context.wake(far).await?;
        }
        context.bells.ring(self.members);
        dispatched(turn, self.undispatched).await
    }
}

/// The lanes of active members, and the rows of each. One that is not active looks for itself when it
/// becomes so.
fn lanes(
    context: &Context,
    members: &[Member],
    documents: &[DocumentUrl],
) -> BTreeMap<LaneAddress, Vec<RowKey>> {
    let mut lanes: BTreeMap<LaneAddress, Vec<RowKey>> = BTreeMap::new();
    for member in members.iter().filter(|it| it.status == SubscriptionStatus::Active) {
        let (id, slot) = (member.subscription, context.slot(member.subscription, member.slot));
        for url in documents {
            let lane = LaneId::new(id, url.bucket().lane(member.lanes));
            let address = LaneAddress { lane, slot, lanes: member.lanes };
            lanes.entry(address).or_default().push(RowKey::new(id, url.clone()));
        }
    }
    lanes
}
