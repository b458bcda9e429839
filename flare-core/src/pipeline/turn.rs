//! Takes the workers of a stage; gives one of them its turn at a resource: how it says that it gets
//! somewhere, and when it has to let others have theirs.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use super::context::Context;
use super::load::TaskLoad;
use super::progress::Pulse;
use super::shares::Shares;
use crate::model::{DocumentUrl, PartitionId, ResourceId, Version};
use crate::tools::lock;

/// A turn that has lasted this long ends if no worker is left for others.
const TURN: Duration = Duration::from_secs(1);
/// Workers that are at it for this long without an end are not about to be done.
pub(super) const SOON: Duration = Duration::from_millis(50);

/// What the workers of one stage share.
#[derive(Debug)]
pub(super) struct Floor {
    shares: Mutex<Shares>,
    /// The documents that workers are at, each with the partition it is spread to.
    at_work: Mutex<HashMap<ResourceId, HashSet<Spot>>>,
    /// Told whenever a worker has ended.
    freed: Notify,
    /// The last worker found nothing that it may begin with, and there may be more.
    searching: AtomicBool,
    /// Held by the one worker that waits for messages.
    pub(super) ear: tokio::sync::Mutex<()>,
}

/// A document at a version, and the partition it is spread to if that is known.
type Spot = (Option<PartitionId>, DocumentUrl, Version);

/// Documents that are one worker's of this node; no longer when this is dropped.
#[derive(Debug)]
pub(super) struct Claimed<'a> {
    floor: &'a Floor,
    resource: ResourceId,
    spots: Vec<Spot>,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let mut at_work = self.floor.at_work();
        if let Some(spots) = at_work.get_mut(&self.resource) {
            for spot in &self.spots {
                spots.remove(spot);
            }
            if spots.is_empty() {
                at_work.remove(&self.resource);
            }
        }
    }
}

/// What a worker has begun with; it has ended when this is dropped.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    floor: &'a Floor,
    pub(super) resources: Vec<ResourceId>,
}

impl Begun<'_> {
    /// Is done with one of them, perhaps before the others: the worker that finds something to do for it next
    /// does not have to wait for those.
    pub(super) fn done(&mut self, resource: ResourceId) {
        let Some(at) = self.resources.iter().position(|begun| *begun == resource) else { return };
        self.resources.swap_remove(at);
        self.floor.shares().leave(resource, self.resources.is_empty());
        self.floor.freed.notify_one();
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        while let Some(resource) = self.resources.last().copied() {
            self.done(resource);
        }
        self.floor.freed.notify_one();
    }
}

impl Floor {
    pub(super) fn new(workers: usize) -> Self {
        let shares = Mutex::new(Shares::new(workers));
        let (at_work, ear) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { shares, at_work, freed: Notify::new(), searching: AtomicBool::new(false), ear }
    }

    fn at_work(&self) -> MutexGuard<'_, HashMap<ResourceId, HashSet<Spot>>> {
        lock(&self.at_work)
    }

    /// Makes documents this worker's alone on this node, and takes out those that another worker is
    /// at: a task that comes twice would have both write the same rows at the same time.
    pub(super) fn claim(&self, load: &mut TaskLoad) -> (Claimed<'_>, TaskLoad) {
        let mut at_work = self.at_work();
        let known = at_work.entry(load.resource).or_default();
        let mut spots = Vec::with_capacity(load.len());
        let others = load.split(|partition, url, version| {
            let spot = (partition, url.clone(), version);
            let mine = known.insert(spot.clone());
            if mine {
                spots.push(spot);
            }
            mine
        });
        (Claimed { floor: self, resource: load.resource, spots }, others)
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        lock(&self.shares)
    }

    /// Begins with those resources that a worker may begin with now.
    pub(super) fn begin(
        &self,
        context: &Context,
        wanted: impl IntoIterator<Item = ResourceId>,
    ) -> Begun<'_> {
        let resources = self.shares().begin(wanted, context.clock.monotonic());
        Begun { floor: self, resources }
    }

    /// The last worker goes on with its search at once: what it found was all of those that others are
    /// at, and there may be more behind it.
    pub(super) fn search_on(&self) {
        self.searching.store(true, Ordering::Relaxed);
    }

    /// Waits until there is a reason to take more: a worker beside the last one is free, or all of
    /// them are at something long, so that the last one looks for what is not theirs.
    pub(super) async fn has_room(&self, context: &Context) {
        while self.shares().is_busy() {
            if self.searching.swap(false, Ordering::Relaxed) {
                return;
            }
            tokio::select! {
                biased;
                () = self.freed.notified() => {}
                () = context.sleep(SOON) => return,
            }
        }
    }

    /// After what time documents come back that have to wait.
    pub(super) fn back_after(
        &self,
        context: &Context,
        resource: ResourceId,
        documents: usize,
    ) -> Duration {
        self.shares().back_after(resource, documents, context.clock.monotonic())
    }
}

/// One worker's turn at one resource.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) context: &'a Context,
    pub(super) resource: ResourceId,
    floor: &'a Floor,
    pulse: &'a Pulse,
    began: Duration,
}

impl<'a> Turn<'a> {
    pub(super) fn new(
        context: &'a Context,
        floor: &'a Floor,
        pulse: &'a Pulse,
        resource: ResourceId,
    ) -> Self {
        Self { context, resource, floor, pulse, began: context.clock.monotonic() }
    }

    /// One of so many, any of them: nodes that got the same tasks do not begin with the same.
    pub(super) fn any_of(&self, count: usize) -> usize {
        if count <= 1 { 0 } else { (self.context.random() * count as f64) as usize }
    }

    /// Something was stored.
    pub(super) fn advances(&self) {
        self.pulse.advances();
    }

    /// So many documents are done since that time of the monotonic clock.
    pub(super) fn did(&self, documents: usize, since: Duration) {
        let took = self.context.clock.monotonic().saturating_sub(since);
        self.floor.shares().took(self.resource, documents, took);
    }

    /// Whether others wait that no worker is left for.
    pub(super) fn is_over(&self) -> bool {
        let lasted = self.context.clock.monotonic().saturating_sub(self.began);
        lasted >= TURN && self.floor.shares().is_full()
    }
}
