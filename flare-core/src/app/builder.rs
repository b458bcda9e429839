//! Takes ports and settings; gives a handle and the work behind it, or says what is missing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backend::Backend;
use super::flare::Flare;
use super::runtime::Runtime;
use crate::cluster::{ClusterHandle, ClusterMember, ClusterSettings};
use crate::error::{Error, ErrorKind, Result};
#[cfg(feature = "http")]
use crate::http::{Guard, HttpConfig, HttpDelivery};
use crate::model::{Actor, TraceContext};
use crate::pipeline::Settings;
use crate::pipeline::context::Context;
use crate::pipeline::current_trace::CurrentTrace;
use crate::pipeline::ingest::Ingest;
use crate::port::{Clock, Delivery, Lease, Part, Queue, Repository, SourceConnector, SystemClock};

/// Makes the ids of the cluster's nodes others than those of everything else.
const CLUSTER_SEED: u64 = 0x636c_7573_7465_7221;

/// Puts a [`Flare`] together.
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct FlareBuilder {
    backend: Backend,
    delivery: Option<Arc<dyn Delivery>>,
    clock: Option<Arc<dyn Clock>>,
    settings: Settings,
    seed: Option<u64>,
    cluster: ClusterSettings,
    exclusive: bool,
    connectors: BTreeMap<&'static str, Arc<dyn SourceConnector>>,
    current_trace: CurrentTrace,
    #[cfg(feature = "http")]
    http: HttpConfig,
    /// Networks that may be called beside what the guard allows.
    #[cfg(feature = "http")]
    allowed: Vec<String>,
}

impl FlareBuilder {
    pub(super) fn new(backend: Backend) -> Self {
        Self {
            backend,
            delivery: None,
            clock: None,
            settings: Settings::default(),
            seed: None,
            cluster: ClusterSettings::default(),
            exclusive: false,
            connectors: BTreeMap::new(),
            current_trace: CurrentTrace::default(),
            #[cfg(feature = "http")]
            http: HttpConfig::default(),
            #[cfg(feature = "http")]
            allowed: Vec::new(),
        }
    }

    /// Keeps documents, rows and subscriptions there instead.
    pub fn repository(mut self, repository: Arc<dyn Repository>) -> Self {
        self.backend.repository = Some(repository);
        // Of the one that is replaced.
        self.backend.upkeep.retain(|upkeep| upkeep.part() != Part::Repository);
        self
    }

    /// Wakes stages and lanes by that queue instead.
    pub fn queue(mut self, queue: Arc<dyn Queue>) -> Self {
        self.backend.queue = Some(queue);
        self
    }

    /// Agrees on who works which lanes there instead.
    pub fn lease(mut self, lease: Arc<dyn Lease>) -> Self {
        self.backend.lease = Some(lease);
        self
    }

    /// Tells clients by a transport of the host's own, instead of by HTTP.
    pub fn delivery(mut self, delivery: Arc<dyn Delivery>) -> Self {
        self.delivery = Some(delivery);
        self
    }

    /// Takes the time from there; tests move it by hand.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Works by these figures.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Makes ids and jitter follow from a seed, so that a run can be replayed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What this node is called, weighs and may do. All Flares whose runtimes run on the same stores are
    /// a cluster and share the lanes, a single one is a cluster of one: each slot is worked by one node
    /// at a time, and moves when nodes come, go or die.
    ///
    /// All of them have to agree on [`Settings::slots`](crate::pipeline::Settings::slots): a node that
    /// is set to another number than the cluster says so in its log and works nothing.
    ///
    /// What a node does besides follows its [roles](crate::cluster::Roles): one that does not work
    /// takes documents, and spreads and sends nothing; one that does not ingest answers puts and
    /// deletes as *unavailable*; one that does not lead never makes the plan.
    ///
    /// ```
    /// use flare_backend_memory::MemoryBackend;
    /// use flare_core::Flare;
    /// use flare_core::cluster::{ClusterSettings, Health};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let memory = MemoryBackend::new();
    /// let mut settings = ClusterSettings::default();
    /// settings.name = "node-1".to_owned();
    /// let (flare, runtime) = Flare::builder(memory).cluster(settings).build()?;
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));
    /// while flare.cluster().await?.health != Health::Green {
    ///     tokio::task::yield_now().await;
    /// }
    /// assert_eq!(flare.cluster().await?.nodes.len(), 1);
    /// drop(stop); // Hands its slots over, if there is anybody, and leaves.
    /// running.await??;
    /// assert!(flare.cluster().await?.nodes.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cluster(mut self, settings: ClusterSettings) -> Self {
        self.cluster = settings;
        self
    }

    /// Says that no other process ever works on these stores. Only then may leases be in this process's
    /// memory while the repository outlives it: two processes could not agree on who works what.
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Lets consumers pull from sources of a kind: `SqsConnector`, `RabbitMqConnector`, or a host's own. The last
    /// one of a kind counts. All nodes that work should know the same ones: a consumer whose node does not know
    /// its kind says so in its status, and pulls nothing.
    pub fn source(mut self, connector: Arc<dyn SourceConnector>) -> Self {
        self.connectors.insert(connector.kind(), connector);
        self
    }

    /// Says which trace the span that is entered is recorded in, if any. Documents that are pulled come with no trace, as
    /// those that are put may: each batch of them is stored within a span of its own (`flare.consume`, see
    /// [`observe`](crate::observe)), in which this is asked, and clients are told of what it says by `traceparent`. It
    /// must not block.
    pub fn current_trace(
        mut self,
        ask: impl Fn() -> Option<TraceContext> + Send + Sync + 'static,
    ) -> Self {
        self.current_trace = CurrentTrace::new(ask);
        self
    }

    /// How HTTP requests are made.
    #[cfg(feature = "http")]
    pub fn http(mut self, config: HttpConfig) -> Self {
        self.http = config;
        self
    }

    /// Which addresses may be called.
    #[cfg(feature = "http")]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.http = self.http.guard(guard);
        self
    }

    /// Lets a network (`10.0.0.0/8`) or a single address that is not public be called, beside what
    /// the guard allows. `build` refuses what is neither.
    #[cfg(feature = "http")]
    pub fn allow(mut self, network: &str) -> Self {
        self.allowed.push(network.to_owned());
        self
    }

    /// The handle, and the runtime that has to be run for anything to be delivered.
    pub fn build(self) -> Result<(Flare, Runtime)> {
        self.settings.check().map_err(|invalid| Error::invalid("build", invalid))?;
        let clock = self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new()));
        let delivery = self.transport(&clock)?;
        let mut upkeep = self.backend.upkeep.into_iter();
        let upkeep = upkeep.find(|upkeep| upkeep.part() == Part::Repository);
        let (repository, queue, lease) = (
            self.backend.repository.ok_or_else(|| missing("repository"))?,
            self.backend.queue.ok_or_else(|| missing("queue"))?,
            self.backend.lease.ok_or_else(|| missing("lease"))?,
        );
        if lease.facts().in_process && !repository.facts().in_process && !self.exclusive {
            return Err(refused(
                "lease",
                "is in this process's memory, and the repository outlives it: another process on the \
                 same repository could not know who works what. Take leases that all of them see, or \
                 say FlareBuilder::exclusive if there is never another one",
            ));
        }
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let mut context =
            Context::new(repository, queue, lease, delivery, clock, self.settings, seed);
        context.actor = Actor::node(&*self.cluster.name);
        let (member, handle) = join(&context, self.cluster, seed)?;
        let member = member.told_in(context.audit.clone());
        context.announcer = Some(Arc::new(handle.clone()));
        context.connectors = self.connectors;
        context.current_trace = self.current_trace;
        let context = Arc::new(context);
        let ingest = Arc::new(Ingest::new(Arc::clone(&context)));
        let flare = Flare::new(Arc::clone(&context), Arc::clone(&ingest), handle, upkeep);
        Ok((flare, Runtime::new(context, ingest, member)))
    }

    #[cfg(feature = "http")]
    fn transport(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Delivery>> {
        let guard = self.http.allowed();
        let guard = self.allowed.iter().try_fold(guard, |guard, network| guard.allow(network));
        let http = self.http.clone().guard(guard.map_err(|it| Error::invalid("build", it))?);
        match &self.delivery {
            Some(delivery) => Ok(Arc::clone(delivery)),
            None => Ok(Arc::new(HttpDelivery::new(http, Arc::clone(clock))?)),
        }
    }

    #[cfg(not(feature = "http"))]
    fn transport(&self, _clock: &Arc<dyn Clock>) -> Result<Arc<dyn Delivery>> {
        self.delivery.clone().ok_or_else(|| missing("delivery"))
    }
}

/// A part in the cluster, for the same slots on the same stores.
fn join(
    context: &Context,
    settings: ClusterSettings,
    seed: u64,
) -> Result<(ClusterMember, ClusterHandle)> {
    let (lease, repository) = (Arc::clone(&context.lease), Arc::clone(&context.repository));
    let (clock, drain_limit) = (Arc::clone(&context.clock), Arc::clone(&context.drain_limit));
    let (slots, seed) = (context.all_slots(), seed ^ CLUSTER_SEED);
    ClusterMember::new(lease, repository, clock, settings, slots, drain_limit, seed)
}

fn refused(field: &'static str, reason: &'static str) -> Error {
    Error::new(ErrorKind::Invalid, "build").with_field(field).with_detail(reason)
}

fn missing(port: &'static str) -> Error {
    refused(port, "is missing: take a backend that has one, or set it on the builder")
}
