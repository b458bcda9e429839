//! Takes the ports and settings of a node; gives its part in the cluster: registered, standing for
//! election, leading if elected, and told what to work, each for as long as the one before it lasts.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};
use tracing::{info, warn};

use super::context::Context;
use super::election::stand;
use super::keys;
use super::mirror::{Mirror, View};
use super::news::Listener;
use super::record::{NodeLoad, Roles};
use super::registry::{Facts, Registration};
use super::runner::{Runner, SlotChange, reading};
use super::settings::ClusterSettings;
use super::state::State;
use super::view::ClusterView;
use crate::error::{Error, ErrorKind, Result};
use crate::model::NodeId;
use crate::port::{Clock, Lease, Repository, Write};

/// A node's part in the cluster; does nothing until it is [run](Self::run).
#[derive(Debug)]
pub struct ClusterMember {
    context: Arc<Context>,
    mirror: Mirror,
    facts: watch::Sender<Facts>,
    node: watch::Sender<Option<NodeId>>,
}

/// What a node can be asked and told while it runs. Clones are the same node's.
#[derive(Debug, Clone)]
pub struct ClusterHandle {
    context: Arc<Context>,
    facts: watch::Sender<Facts>,
    view: View,
    node: watch::Receiver<Option<NodeId>>,
}

impl ClusterHandle {
    /// Under which incarnation the node is registered, while it is.
    pub fn node(&self) -> Option<NodeId> {
        *self.node.borrow()
    }

    /// Changes the node's part of the slots. Less of it sheds slots slowly, 0 all of them.
    pub fn set_weight(&self, weight: u32) {
        self.change(|facts| facts.weight = weight);
    }

    /// Says how busy the node is.
    pub fn set_load(&self, load: NodeLoad) {
        self.change(|facts| facts.load = load);
    }

    /// Has the node hand everything over and leave, as if its run had been asked to stop.
    pub fn drain(&self) {
        self.change(|facts| facts.draining = true);
    }

    /// Asks any node of the cluster to hand everything over and leave; returns once that is stored.
    pub async fn drain_node(&self, node: NodeId) -> Result<()> {
        let (context, operation) = (&self.context, "drain_node");
        let found = context.timed("get", context.lease.get(&keys::node(node))).await?;
        let Some(lease) = found.and_then(|entry| entry.lease) else {
            return Err(Error::new(ErrorKind::NotFound, operation).detail("there is no such node"));
        };
        // Bound to that node's lease, so that nothing is left once it is gone.
        let write = Write::new(keys::drain(node), "").lease(lease);
        context.timed("write", context.lease.write(write)).await.map(drop)
    }

    /// The cluster as its store has it now.
    pub async fn read(&self) -> Result<ClusterView> {
        let context = &self.context;
        context.timed("cluster", ClusterView::read(&*context.lease)).await
    }

    /// Says something to all nodes that take part, this one among them.
    pub(crate) async fn tell(&self, said: String) -> Result<()> {
        let write = Write::new(keys::NEWS, said);
        self.context.timed("tell", self.context.lease.write(write)).await.map(drop)
    }

    /// What the node may be used for.
    pub fn roles(&self) -> Roles {
        self.context.settings.roles
    }

    /// The cluster as far as this node has read.
    pub fn view(&self) -> ClusterView {
        ClusterView::of(&self.view.borrow())
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        self.facts.send_if_modified(|facts| {
            let before = *facts;
            change(facts);
            *facts != before
        });
    }
}

/// How a registration ended.
enum End {
    /// Given back, with nothing left to do.
    Left,
    Lost,
}

impl ClusterMember {
    /// A node on these stores. All randomness follows from `seed`, which must be another one for
    /// every start.
    pub fn new(
        lease: Arc<dyn Lease>,
        repository: Arc<dyn Repository>,
        clock: Arc<dyn Clock>,
        settings: ClusterSettings,
        seed: u64,
    ) -> Result<(Self, ClusterHandle)> {
        settings.check().map_err(|invalid| Error::invalid("join_cluster", invalid))?;
        let facts = Facts { weight: settings.weight, draining: false, load: NodeLoad::default() };
        let member = Self {
            context: Arc::new(Context::new(lease, repository, clock, settings, seed)),
            mirror: Mirror::new(),
            facts: watch::Sender::new(facts),
            node: watch::Sender::new(None),
        };
        let handle = ClusterHandle {
            context: Arc::clone(&member.context),
            facts: member.facts.clone(),
            view: member.mirror.view(),
            node: member.node.subscribe(),
        };
        Ok((member, handle))
    }

    /// Hears what nodes say to all of them.
    pub(crate) fn news(&self) -> Listener {
        self.mirror.news()
    }

    pub(crate) fn settings(&self) -> ClusterSettings {
        self.context.settings.clone()
    }

    /// Takes part until `stop`, [`ClusterHandle::drain`] or [`ClusterHandle::drain_node`]: then hands everything over and leaves.
    /// Whoever takes the changes stops working when the channel closes. Dropping the future is
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
            () = stop => {}
        }
        self.node.send_replace(None);
    }

    /// Registers, again and again, until asked to stop.
    async fn live(&self, changes: &mpsc::Sender<SlotChange>, mut stopping: watch::Receiver<bool>) {
        let mut failures = 0;
        while !*stopping.borrow() && !changes.is_closed() {
            let facts = *self.facts.borrow();
            let registered = tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return,
                registered = Registration::new(&self.context, facts) => registered,
            };
            match registered {
                Ok(registration) => {
                    let started = self.context.monotonic();
                    info!(node = %registration.id, "joined the cluster");
                    self.node.send_replace(Some(registration.id));
                    let end = self.serve(&registration, changes, &mut stopping).await;
                    self.node.send_replace(None);
                    if matches!(end, End::Left) {
                        info!(node = %registration.id, "left the cluster");
                        return;
                    }
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
        let mut runner = Runner::new(context, registration, changes);
        let (reading, mut reads) = reading();
        let (close, mut closing) = oneshot::channel();
        let mut plans = self.mirror.view();
        let leaving = async {
            let _ = stopping.wait_for(|stop| *stop).await;
            self.handed_over(registration.id).await;
            // Whoever follows the plans is there as long as this is.
            let _ = close.send(context.monotonic() + context.settings.drain_limit);
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
                // take a moment. Without anything, nobody shall wait for a node that is not there.
                if !runner.lose().await {
                    registration.leave(context).await;
                }
            }
        }
        end
    }

    /// Waits until others have this node's slots, nobody else could, or it has taken too long.
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
            () = self.context.sleep(self.context.settings.drain_limit) => {
                warn!(node = %me, "nobody took all slots over in time");
            }
        }
    }
}
