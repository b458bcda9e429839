//! Takes a node's part in a cluster; gives its lanes the slots that are the node's, in their terms.
//! Decides nothing: the cluster says what is whose, the lanes work it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tracing::{info, warn};

use super::load::publish_load;
use crate::cluster::{ClusterHandle, ClusterMember, Elections, Listener, News, SlotChange, Trust};
use crate::error::Result;
use crate::model::{SubscriptionId, Tenure};
use crate::pipeline::context::Context;
use crate::pipeline::herald::Herald;
use crate::pipeline::lanes::Teller;
use crate::pipeline::ownership::OwnershipChange;
use crate::pipeline::slots::Slots;
use crate::pipeline::stage::{chain, pause_after};
use crate::pipeline::stop::Stop;
use crate::pipeline::store_time::{Ahead, draw};
use crate::pipeline::term::{Term, Trusted};
use crate::port::Clock;

/// How soon after an election all subscriptions are read again, at most.
const SWEEP_WITHIN: Duration = Duration::from_secs(5);

impl Trusted for Trust {
    fn left(&self, slot: u32, clock: &dyn Clock) -> Duration {
        Self::left(self, slot, clock)
    }
}

/// Works the slots that the cluster gives this node, until told to stop: then hands them over and
/// leaves. A node that somebody drained has none, and goes on without.
pub(super) async fn share_slots(
    member: ClusterMember,
    handle: ClusterHandle,
    context: Arc<Context>,
    changes: mpsc::Sender<OwnershipChange>,
    lanes: Teller,
    mut stop: Stop,
) {
    let (sender, receiver) = mpsc::channel(4);
    let mut stopping = stop.clone();
    let (news, elections) = (member.news(), member.elections());
    let every = member.settings().publish_every;
    let run = member.run(sender, async move { stopping.requested().await });
    let told = Interpreter::new(&context, &changes).follow(receiver);
    tokio::select! {
        biased;
        _ = async { tokio::join!(run, told) } => {}
        () = pass_on(news, lanes.clone()) => {}
        () = sweep_at_elections(elections, &context, &lanes) => {}
        () = publish_load(handle, Arc::clone(&context), every) => {}
    }
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

/// Slots that wait to be worked until it is known what time it is in the store.
struct Waiting {
    slots: Vec<u32>,
    tenure: Tenure,
}

/// Tells lanes in their terms what the cluster says.
struct Interpreter<'a> {
    context: &'a Arc<Context>,
    changes: &'a mpsc::Sender<OwnershipChange>,
    /// How far the store's clock is ahead, measured once for each registration; its trust tells
    /// one from the other.
    measured: Option<(Trust, Option<Ahead>)>,
    measuring: Option<BoxFuture<'static, Ahead>>,
    waiting: Vec<Waiting>,
}

impl<'a> Interpreter<'a> {
    fn new(context: &'a Arc<Context>, changes: &'a mpsc::Sender<OwnershipChange>) -> Self {
        Self { context, changes, measured: None, measuring: None, waiting: Vec::new() }
    }

    /// Follows the changes until there are no more, or no lanes.
    async fn follow(mut self, mut slots: mpsc::Receiver<SlotChange>) {
        loop {
            let change = tokio::select! {
                biased;
                change = slots.recv() => change,
                ahead = pending_or(&mut self.measuring) => {
                    self.measuring = None;
                    if self.measure(ahead).await {
                        continue;
                    }
                    return;
                }
            };
            let told = match change {
                Some(SlotChange::Granted { slots, tenure, trust }) => {
                    self.granted(Waiting { slots, tenure }, trust).await
                }
                Some(SlotChange::Release { slots, until, done }) => {
                    self.forget(&slots);
                    let slots = slots.into_iter().collect();
                    self.tell(OwnershipChange::Released { slots, until: Some(until), done }).await
                }
                Some(SlotChange::Lost { slots }) => {
                    self.forget(&slots);
                    self.tell(OwnershipChange::Lost { slots: slots.into_iter().collect() }).await
                }
                // Whoever is no member works nothing.
                None => {
                    let slots: Slots = (0..self.context.all_slots()).collect();
                    self.tell(OwnershipChange::Lost { slots }).await;
                    return;
                }
            };
            if !told {
                return;
            }
        }
    }

    /// Tells whether anybody listens.
    async fn tell(&mut self, change: OwnershipChange) -> bool {
        self.changes.send(change).await.is_ok()
    }

    async fn granted(&mut self, granted: Waiting, trust: Trust) -> bool {
        match &self.measured {
            Some((known, Some(ahead))) if known.is_same(&trust) => {
                let ahead = *ahead;
                self.grant(granted, ahead, &trust).await
            }
            Some((known, None)) if known.is_same(&trust) => {
                self.waiting.push(granted);
                true
            }
            _ => {
                // What waited under a former registration is lost with it.
                self.waiting = vec![granted];
                self.measured = Some((trust, None));
                self.measuring = Some(Box::pin(measure(Arc::clone(self.context))));
                true
            }
        }
    }

    async fn measure(&mut self, ahead: Ahead) -> bool {
        let Some((trust, measured)) = &mut self.measured else { return true };
        *measured = Some(ahead);
        let trust = trust.clone();
        for granted in std::mem::take(&mut self.waiting) {
            if !self.grant(granted, ahead, &trust).await {
                return false;
            }
        }
        true
    }

    async fn grant(&mut self, granted: Waiting, ahead: Ahead, trust: &Trust) -> bool {
        let slots: Slots = granted.slots.into_iter().collect();
        let term = Term::new(slots, granted.tenure, ahead, Arc::new(trust.clone()));
        self.tell(OwnershipChange::Granted(term)).await
    }

    /// These are not to be worked any more.
    fn forget(&mut self, slots: &[u32]) {
        for waiting in &mut self.waiting {
            waiting.slots.retain(|slot| !slots.contains(slot));
        }
        self.waiting.retain(|waiting| !waiting.slots.is_empty());
    }
}

/// Draws an epoch only to see the store's time; tries until it can.
async fn measure(context: Arc<Context>) -> Ahead {
    let mut failures = 0;
    loop {
        match draw(&context).await {
            Ok((_, ahead)) => return ahead,
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not ask for the store's time, will retry");
                context.sleep(context.jittered(pause_after(failures))).await;
            }
        }
    }
}

/// The future's answer, or for ever nothing if there is none.
async fn pending_or<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
