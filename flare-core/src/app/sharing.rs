//! Takes a node's part in a cluster; gives its lanes the slots that are the node's, in their terms.
//! Decides nothing: the cluster says what is whose, the lanes work it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tracing::info;

use crate::cluster::{Activity, ClusterHandle, ClusterMember, Elections, Listener, News};
use crate::error::Result;
use crate::model::SubscriptionId;
use crate::ownership::SlotChange;
use crate::pipeline::context::Context;
use crate::pipeline::herald::Herald;
use crate::pipeline::lanes::Teller;
use crate::pipeline::stop::Stop;

/// How soon after an election all subscriptions are read again, at most.
const SWEEP_WITHIN: Duration = Duration::from_secs(5);

/// Works the slots that the cluster gives this node, until told to stop: then hands them over and
/// leaves. A node that somebody drained has none, and goes on without.
pub(super) async fn share_slots(
    member: ClusterMember,
    context: Arc<Context>,
    changes: mpsc::Sender<SlotChange>,
    lanes: Teller,
    mut stop: Stop,
) {
    let mut stopping = stop.clone();
    let (news, elections) = (member.news(), member.elections());
    let seen = Arc::clone(&context);
    let member = member.measured_by(move || {
        let usage = seen.places.usage();
        let lanes = seen.progress.lanes() as u64;
        Activity { lanes, in_flight: usage.in_flight, percent: usage.percent }
    });
    tokio::select! {
        biased;
        () = member.run(changes.clone(), async move { stopping.requested().await }) => {}
        () = pass_on(news, lanes.clone()) => {}
        () = sweep_at_elections(elections, &context, &lanes) => {}
    }
    // Whoever is no member works nothing. Lanes that are gone work nothing either.
    let slots = (0..context.all_slots()).collect();
    let _ = changes.send(SlotChange::Lost { slots }).await;
    if !stop.is_requested() {
        info!("this node works no lanes any more until it is started again");
    }
    stop.requested().await;
}

/// Tells the lanes what nodes say to all of them.
async fn pass_on(mut news: Listener, lanes: Teller) {
    loop {
        let said = match news.next().await {
            News::Said(said) => str::from_utf8(&said).ok().and_then(|id| id.parse().ok()),
            News::Missed => None,
        };
        match said {
            Some(subscription) => lanes.tell(subscription).await,
            None => lanes.missed(),
        }
    }
}

/// Has the lanes read all subscriptions again when there is another leader: what was said while there was
/// none, or while whoever led was not well, may be lost. Nodes do not all do it at once.
async fn sweep_at_elections(mut elections: Elections, context: &Context, lanes: &Teller) {
    loop {
        elections.next().await;
        context.sleep(SWEEP_WITHIN.mul_f64(context.random())).await;
        lanes.missed();
    }
}

#[async_trait]
impl Herald for ClusterHandle {
    async fn tell(&self, subscription: SubscriptionId) -> Result<()> {
        Self::tell(self, subscription.to_string()).await
    }
}
