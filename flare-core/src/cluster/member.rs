//! Takes the ports and settings of a node; gives its part in the cluster: registered, standing for
//! election, leading if elected, and told what to work, each for as long as the one before it lasts.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tracing::{Instrument, info, info_span, warn};

use super::context::NodeContext;
use super::election::stand;
use super::feed::FeedReader;
use super::handle::ClusterHandle;
use super::leader_changes::LeaderChanges;
use super::load::{Activity, Gauge, publish_load};
use super::lone_owner::outlast_lone_owner;
use super::meter;
use super::mirror::Mirror;
use super::record::NodeLoad;
use super::registry::{Facts, Registration};
use super::runner::{PlanRunner, reading};
use super::settings::ClusterSettings;
use super::shed::shed;
use super::state::State;
use crate::audit::AuditLog;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{AuditAction, NodeId};
use crate::observe;
use crate::ownership::{DrainLimit, SlotChange};
use crate::port::{Clock, Lease, Repository};

/// The most slots there may be.
const MOST_SLOTS: u32 = 65_536;

/// A node's part in the cluster; does nothing until it is [run](Self::run).
pub struct ClusterMember {
    context: Arc<NodeContext>,
    mirror: Mirror,
    facts: watch::Sender<Facts>,
    node: watch::Sender<Option<NodeId>>,
    gauge: Option<Gauge>,
}

impl fmt::Debug for ClusterMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterMember").field("context", &self.context).finish_non_exhaustive()
    }
}

/// How a registration ended.
enum End {
    /// Given back, with nothing left to do.
    Left,
    Lost,
}

/// A node that is dropped while it works: what a crash is. A store that can know of it need not wait.
struct Crashed<'a> {
    context: &'a NodeContext,
    registration: &'a Registration,
    is_so: bool,
}

impl Drop for Crashed<'_> {
    fn drop(&mut self) {
        if self.is_so {
            // Before others are given its slots: what has not been sent by now is not.
            self.registration.trust.end();
            self.context.lease.abandon(self.registration.lease);
        }
    }
}

impl ClusterMember {
    /// A node on these stores, that shares out so many slots with the others. All randomness follows
    /// from `seed`, which must be another one for every start.
    pub fn new(
        lease: Arc<dyn Lease>,
        repository: Arc<dyn Repository>,
        clock: Arc<dyn Clock>,
        settings: ClusterSettings,
        slots: u32,
        drain_limit: Arc<DrainLimit>,
        seed: u64,
    ) -> Result<(Self, ClusterHandle)> {
        settings.check().map_err(|invalid| Error::invalid("join_cluster", invalid))?;
        if !(1..=MOST_SLOTS).contains(&slots) {
            let error = Error::new(ErrorKind::Invalid, "join_cluster").with_field("slots");
            return Err(error.with_detail(format!("must be from 1 to {MOST_SLOTS}")));
        }
        let (weight, load) = (settings.weight, NodeLoad::default());
        let facts = Facts { weight, kept: 100, draining: false, load };
        let member = Self {
            context: Arc::new(NodeContext::new(
                lease,
                repository,
                clock,
                settings,
                slots,
                drain_limit,
                seed,
            )),
            mirror: Mirror::new(),
            facts: watch::Sender::new(facts),
            node: watch::Sender::new(None),
            gauge: None,
        };
        let (context, facts) = (Arc::clone(&member.context), member.facts.clone());
        let handle =
            ClusterHandle::new(context, facts, member.mirror.view(), member.node.subscribe());
        Ok((member, handle))
    }

    /// Says how busy the node is, as this tells.
    pub(crate) fn measured_by(
        mut self,
        gauge: impl Fn() -> Activity + Send + Sync + 'static,
    ) -> Self {
        self.gauge = Some(Box::new(gauge));
        self
    }

    /// Has what becomes of the node told in the log of what was done.
    pub(crate) fn told_in(self, audit: AuditLog) -> Self {
        // It is told in one log, from before it runs.
        drop(self.context.audit.set(audit));
        self
    }

    /// Reads what nodes announce to all of them.
    pub(crate) fn feed(&self) -> FeedReader {
        self.mirror.feed()
    }

    /// Tells when there is another leader.
    pub(crate) fn leader_changes(&self) -> LeaderChanges {
        LeaderChanges::new(self.mirror.view())
    }

    pub(crate) fn settings(&self) -> ClusterSettings {
        self.context.settings.clone()
    }

    /// Takes part until `stop`, [`ClusterHandle::drain`] or [`ClusterHandle::drain_node`]: then hands
    /// everything over and leaves. The lanes stop working when the channel closes. Dropping the future is
    /// what a crash is: others take over once the lease has lapsed.
    pub async fn run(self, changes: mpsc::Sender<SlotChange>, stop: impl Future<Output = ()>) {
        let mut drained = self.facts.subscribe();
        let mut asked = self.mirror.view();
        let is_asked =
            |state: &State| self.node.borrow().is_some_and(|id| state.drains.contains(&id));
        let stop = async {
            tokio::select! {
                () = stop => {}
                _ = drained.wait_for(|facts| facts.draining) => {}
                _ = asked.wait_for(|state| is_asked(state)) => {}
            }
            self.facts.send_if_modified(|facts| !std::mem::replace(&mut facts.draining, true));
        };
        let (stopped, stopping) = watch::channel(false);
        let stop = async {
            stop.await;
            stopped.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.live(&changes, stopping) => {}
            () = self.mirror.follow(&self.context) => {}
            () = shed(&self.context, &self.facts) => {}
            () = publish_load(&self.context, self.gauge.as_ref(), &self.facts) => {}
            () = meter::show(self.mirror.view(), self.node.subscribe(), &self.context) => {}
            () = stop => {}
        }
        self.node.send_replace(None);
    }

    /// Registers, again and again, until asked to stop.
    async fn live(&self, changes: &mpsc::Sender<SlotChange>, mut stopping: watch::Receiver<bool>) {
        let mut failures = 0;
        while !*stopping.borrow() && !changes.is_closed() {
            let facts = *self.facts.borrow();
            let register = async {
                outlast_lone_owner(&self.context).await?;
                Registration::new(&self.context, facts).await
            };
            let registered = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                registered = register => registered,
            };
            match registered {
                Ok(registration) => {
                    let started = self.context.monotonic();
                    let node = registration.id;
                    info!(%node, "joined the cluster");
                    if facts.weight == 0 {
                        info!("stands by: works slots only while no node with a weight is there");
                    }
                    self.context.tell(node, AuditAction::Joined);
                    meter::joined();
                    self.node.send_replace(Some(node));
                    let span = info_span!(parent: None, observe::MEMBER, %node);
                    let serve = self.serve(&registration, changes, &mut stopping);
                    let end = serve.instrument(span).await;
                    self.node.send_replace(None);
                    if matches!(end, End::Left) {
                        info!(%node, "left the cluster");
                        self.context.tell(node, AuditAction::Left);
                        return;
                    }
                    warn!(%node, "lost its place in the cluster, will join again");
                    self.context.tell(node, AuditAction::Lost);
                    meter::lost();
                    let lasted = self.context.monotonic().saturating_sub(started);
                    failures = if lasted < self.context.settings.ttl { failures + 1 } else { 1 };
                }
                Err(error) => {
                    failures += 1;
                    warn!(?error, "could not join the cluster, will retry");
                }
            }
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                () = self.context.pause(failures) => {}
            }
        }
    }

    /// Does everything a registered node does, until it is not registered any more.
    async fn serve(
        &self,
        registration: &Registration,
        changes: &mpsc::Sender<SlotChange>,
        stopping: &mut watch::Receiver<bool>,
    ) -> End {
        let context = &self.context;
        let mut crashed = Crashed { context, registration, is_so: true };
        let mut runner = PlanRunner::new(context, registration, changes);
        let (reading, mut reads) = reading();
        let (close, mut closing) = oneshot::channel();
        let mut plans = self.mirror.view();
        let leaving = async {
            let _ = stopping.wait_for(|stop| *stop).await;
            let until = context.monotonic() + context.drain_limit.get();
            self.handed_over(registration.id).await;
            // The runner that follows the plans is there as long as this is.
            let _ = close.send(until);
            std::future::pending::<()>().await;
        };
        let end = {
            let run = pin!(runner.run(&mut plans, &mut reads, &mut closing));
            tokio::select! {
                biased;
                () = registration.keep(context, &self.mirror, &reading) => End::Lost,
                () = registration.is_missed(self.mirror.view()) => End::Lost,
                () = registration.publish(context, self.facts.subscribe()) => End::Lost,
                ended = run => match ended {
                    Ok(()) => End::Left,
                    Err(error) => {
                        warn!(node = %registration.id, ?error, "cannot follow the plan");
                        End::Lost
                    }
                },
                () = stand(context, registration, self.mirror.view()) => End::Lost,
                () = leaving => End::Lost,
            }
        };
        // Election and leadership ended with the block above; now the work does.
        match end {
            End::Left => registration.leave(context).await,
            End::Lost => {
                // While something may be in flight the lease is not given back: dropping that may
                // take a moment. Without anything, no leader shall wait for a node that is not there.
                if !runner.lose().await {
                    registration.leave(context).await;
                }
            }
        }
        crashed.is_so = false;
        end
    }

    /// Waits until others have this node's slots, no other could, or half of the time is over: the
    /// rest is for what is in flight then.
    async fn handed_over(&self, me: NodeId) {
        let done = |state: &State| {
            let plan = state.plan.as_ref().and_then(|stored| stored.plan.as_ref());
            let named = plan.is_some_and(|plan| plan.names(me));
            !named || !state.has_other_worker(me)
        };
        let mut view = self.mirror.view();
        tokio::select! {
            biased;
            _ = view.wait_for(|state| done(state)) => {}
            () = self.context.sleep(self.context.drain_limit.get() / 2) => {
                warn!(node = %me, "no other nodes took all slots over in time");
            }
        }
    }
}
