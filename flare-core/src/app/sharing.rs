//! A node's part in its cluster: its lanes and consumers follow the slots that are the node's, and read what the
//! cluster announces. Decides nothing: the cluster says what is whose, lanes and consumers work it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tracing::info;

use crate::cluster::{Activity, ClusterHandle, ClusterMember, FeedItem, FeedReader, LeaderChanges};
use crate::error::Result;
use crate::model::{ConsumerId, SubscriptionId};
use crate::ownership::SlotChange;
use crate::pipeline::consumers::ConsumersHandle;
use crate::pipeline::context::Context;
use crate::pipeline::lanes::LanesHandle;
use crate::pipeline::stop::Stop;
use crate::pipeline::wake::Announcer;

/// How soon after an election all subscriptions are read again, at most.
const SWEEP_WITHIN: Duration = Duration::from_secs(5);

/// What announcements of consumers begin with; those of subscriptions are the id alone.
const CONSUMER: &str = "consumer ";

/// Those who work what is in this node's slots.
#[derive(Clone)]
pub(super) struct SlotWorkers {
    pub(super) lanes: LanesHandle,
    pub(super) consumers: ConsumersHandle,
}

impl SlotWorkers {
    /// Has all of them read again what they work.
    async fn missed_changes(&self) {
        self.lanes.missed_changes();
        self.consumers.missed_changes().await;
    }
}

/// Tells lanes and consumers of every change of slots: one that is to be given up is given up by both.
pub(super) async fn tell_both(
    mut changes: mpsc::Receiver<SlotChange>,
    lanes: mpsc::Sender<SlotChange>,
    consumers: mpsc::Sender<SlotChange>,
) {
    while let Some(change) = changes.recv().await {
        let told = consumers.send(change.clone()).await.is_ok() && lanes.send(change).await.is_ok();
        if !told {
            return;
        }
    }
}

/// Works the slots that the cluster gives this node, until told to stop: then hands them over and
/// leaves. A node that an operator drained has none, and goes on without.
pub(super) async fn share_slots(
    member: ClusterMember,
    context: Arc<Context>,
    changes: mpsc::Sender<SlotChange>,
    workers: SlotWorkers,
    mut stop: Stop,
) {
    let mut stopping = stop.clone();
    let (feed, leader_changes) = (member.feed(), member.leader_changes());
    let seen = Arc::clone(&context);
    let member = member.measured_by(move || {
        let usage = seen.send_limit.usage();
        let lanes = seen.progress.lanes() as u64;
        let consumers = seen.progress.consumers() as u64;
        Activity { lanes, consumers, in_flight: usage.in_flight, percent: usage.percent }
    });
    tokio::select! {
        biased;
        () = member.run(changes.clone(), async move { stopping.requested().await }) => {}
        () = pass_on(feed, workers.clone()) => {}
        () = sweep_at_elections(leader_changes, &context, &workers) => {}
    }
    // A node that is no member works nothing. Lanes that are gone work nothing either.
    let slots = (0..context.all_slots()).collect();
    let _ = changes.send(SlotChange::Lost { slots }).await;
    if !stop.is_requested() {
        info!("this node works no lanes any more until it is started again");
    }
    stop.requested().await;
}

/// What nodes announce to all of them.
enum Announcement {
    Subscription(SubscriptionId),
    Consumer(ConsumerId),
}

impl Announcement {
    fn parse(said: &[u8]) -> Option<Self> {
        let said = str::from_utf8(said).ok()?;
        match said.strip_prefix(CONSUMER) {
            Some(id) => id.parse().ok().map(Self::Consumer),
            None => said.parse().ok().map(Self::Subscription),
        }
    }
}

/// Tells lanes and consumers what nodes announce to all of them. What is not understood may be about anything.
async fn pass_on(mut feed: FeedReader, workers: SlotWorkers) {
    loop {
        let announced = match feed.next().await {
            FeedItem::Announced(said) => Announcement::parse(&said),
            FeedItem::Missed => None,
        };
        match announced {
            Some(Announcement::Subscription(id)) => workers.lanes.changed(id).await,
            Some(Announcement::Consumer(id)) => workers.consumers.changed(id).await,
            None => workers.missed_changes().await,
        }
    }
}

/// Has lanes and consumers read all there is again when there is another leader: what was announced while there
/// was none, or while the leader was not well, may be lost. Nodes do not all do it at once.
async fn sweep_at_elections(
    mut leader_changes: LeaderChanges,
    context: &Context,
    workers: &SlotWorkers,
) {
    loop {
        leader_changes.next().await;
        context.sleep(SWEEP_WITHIN.mul_f64(context.random())).await;
        workers.missed_changes().await;
    }
}

#[async_trait]
impl Announcer for ClusterHandle {
    async fn announce_change(&self, subscription: SubscriptionId) -> Result<()> {
        self.announce(subscription.to_string()).await
    }

    async fn announce_consumer(&self, consumer: ConsumerId) -> Result<()> {
        self.announce(format!("{CONSUMER}{consumer}")).await
    }
}
