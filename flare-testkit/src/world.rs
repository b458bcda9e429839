//! Takes stores and a clock; gives whole Flares on them, with clients that are recorded, whose time
//! passes when a test says so, and which can be stopped, dropped and started again.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{
    DocumentChange, DocumentUrl, NewResource, Resource, Row, RowKey, Subscription, SubscriptionId,
    SubscriptionSpec, Timestamp,
};
use flare_core::port::{Clock, Queue, Repository, SystemClock};
use flare_core::{Backend, Flare, FlareBuilder, Result, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{ManualClock, RecordingDelivery};

/// Any number of nodes on the same stores, and all that is behind them.
///
/// ```
/// use flare_backend_memory::MemoryBackend; // or yours
/// use flare_testkit::world::{World, few_slots};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut world = World::on(MemoryBackend::with_clock, few_slots());
/// let users = world.users().await;
/// world.subscribe(&users, "client").await;
/// world.put(7, 1).await;
/// world.start();
/// world.settled().await;
/// assert_eq!(world.delivery.requests()[0].request.url, "http://client.example/7");
/// # });
/// ```
///
/// What is set here ([`backend`](Self::backend), [`settings`](Self::settings),
/// [`cluster`](Self::cluster), [`delivery`](Self::delivery)) is that of nodes that start from then on.
#[derive(Debug)]
#[non_exhaustive]
pub struct World<B, C = ManualClock> {
    /// What time it is.
    pub clock: C,
    /// The stores themselves.
    pub stores: B,
    /// What is between nodes and the stores: these, unless a test puts something before them.
    pub backend: Backend,
    /// All clients.
    pub delivery: RecordingDelivery,
    /// How nodes work.
    pub settings: Settings,
    /// How they share the work.
    pub cluster: ClusterSettings,
    /// The handle of the node that was started last, or of none yet.
    pub flare: Flare,
    /// A handle on the stores themselves, for which nothing fails.
    pub calm: Flare,
    running: Vec<Running>,
    /// How many were built: no two are to make the same ids.
    built: AtomicU64,
}

/// A node at work.
#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
}

impl<B: Clone + Into<Backend>> World<B> {
    /// Stores on a clock that stands still, unless time is to pass. No node works yet.
    pub fn on(stores: impl FnOnce(Arc<dyn Clock>) -> B, settings: Settings) -> Self {
        let begin = Timestamp::from_unix_seconds(1_700_000_000);
        let clock = ManualClock::new(begin).limited(1_000_000);
        let stores = stores(Arc::new(clock.clone()));
        Self::at(clock, stores, settings)
    }
}

impl<B: Clone + Into<Backend>> World<B, SystemClock> {
    /// Stores in the time of this machine. No node works yet.
    pub fn live(stores: B, settings: Settings) -> Self {
        let cluster = ClusterSettings::default();
        Self::at(SystemClock::new(), stores, settings).leased(cluster)
    }
}

impl<B: Clone + Into<Backend>, C: WorldClock> World<B, C> {
    /// Stores that go by this clock, beside other worlds on them perhaps. No node works yet.
    pub fn at(clock: C, stores: B, settings: Settings) -> Self {
        let cluster = long_leases();
        let backend: Backend = stores.clone().into();
        let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
        let calm = builder(&backend, &delivery, &clock, &settings).seed(u64::MAX);
        let calm = handle(calm.cluster(cluster.clone()));
        let (flare, running, built) = (calm.clone(), Vec::new(), AtomicU64::new(0));
        let mut world = Self {
            clock,
            stores,
            backend,
            delivery,
            settings,
            cluster,
            flare,
            calm,
            running,
            built,
        };
        world.flare = handle(world.builder());
        world
    }

    /// The same, whose nodes hold leases as these settings say.
    #[must_use]
    pub fn leased(mut self, cluster: ClusterSettings) -> Self {
        self.cluster = cluster;
        self.flare = handle(self.builder());
        self
    }

    /// The same, with something before the repository, by its clock perhaps.
    #[must_use]
    pub fn behind<R: Repository>(
        mut self,
        wrap: impl FnOnce(Arc<dyn Repository>, Arc<dyn Clock>) -> R,
    ) -> Self {
        let repository = wrap(self.repository(), Arc::new(self.clock.clone()));
        self.backend.repository = Some(Arc::new(repository));
        self.flare = handle(self.builder());
        self
    }

    /// What a node that starts now is made of, for one that differs in something, or a handle alone.
    pub fn builder(&self) -> FlareBuilder {
        builder(&self.backend, &self.delivery, &self.clock, &self.settings)
            .cluster(self.cluster.clone())
            .seed(self.built.fetch_add(1, Ordering::Relaxed))
    }

    /// Starts a node, beside those that run; gives its handle.
    pub fn start(&mut self) -> Flare {
        self.start_as(self.builder())
    }

    /// Starts a node that is made of this.
    pub fn start_as(&mut self, builder: FlareBuilder) -> Flare {
        self.start_by(builder, |runtime, stopped| runtime.run(stopped))
    }

    /// Starts a node that is made of this and run in this way, until the future ends that it is given.
    pub fn start_by<F>(
        &mut self,
        builder: FlareBuilder,
        run: impl FnOnce(Runtime, Stopped) -> F,
    ) -> Flare
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (flare, runtime) = builder.build().expect("a node that can be built");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped: Stopped = Box::pin(async { drop(stopped.await) });
        self.running.push(Running { stop, task: tokio::spawn(run(runtime, stopped)) });
        self.flare = flare;
        self.flare.clone()
    }

    /// Asks the node that was started last to end; gives a future that is its end, and lets time pass
    /// until then.
    pub fn stop(&mut self) -> impl Future<Output = ()> + use<B, C> {
        let Running { stop, task } = self.running.pop().expect("a node that runs");
        let clock = self.clock.clone();
        let _ = stop.send(());
        async move {
            in_time(&clock, task).await.expect("it does not panic").expect("it ends well");
        }
    }

    /// Drops the node that was started last, if one runs, wherever it is.
    pub async fn crash(&mut self) {
        if let Some(Running { task, .. }) = self.running.pop() {
            task.abort();
            let _ = task.await;
        }
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        self.clock.pass(time).await;
    }

    /// Lets time pass until something is so.
    pub async fn until(&self, what: &str, so: impl AsyncFn() -> bool) {
        let end = self.clock.monotonic() + C::PATIENCE;
        while !so().await {
            assert!(self.clock.monotonic() < end, "not within {:?}: {what}", C::PATIENCE);
            self.pass(C::STEP).await;
        }
    }

    /// Lets time pass until every change is spread and nothing is pending.
    pub async fn settled(&self) {
        let store = self.repository();
        self.until("settled", async || {
            store.count_undispatched(None).await.unwrap() == 0
                && store.count_pending(None).await.unwrap().count == 0
        })
        .await;
    }

    /// Lets as much time pass as something takes.
    pub async fn in_time<T>(&self, work: impl Future<Output = T>) -> T {
        in_time(&self.clock, work).await
    }

    /// The repository itself, whatever is before it.
    pub fn repository(&self) -> Arc<dyn Repository> {
        self.stores.clone().into().repository.expect("stores with a repository")
    }

    /// The queue that nodes use.
    pub fn queue(&self) -> Arc<dyn Queue> {
        self.backend.queue.clone().expect("stores with a queue")
    }

    /// Makes the resource that [`url`] is about.
    pub async fn users(&self) -> Resource {
        let new = NewResource::new(url("{id}")).change_field("rev");
        self.calm.create_resource(new).await.unwrap()
    }

    /// Has the client of [`hook`] told of a resource.
    pub async fn subscribe(&self, resource: &Resource, name: &str) -> Subscription {
        self.calm.create_subscription(resource.id, hook(name)).await.unwrap()
    }

    /// Puts a user.
    pub async fn put(&self, id: impl fmt::Display, rev: i64) -> DocumentChange {
        self.flare.put_json(&url(id), format!(r#"{{"rev":{rev}}}"#)).await.unwrap()
    }

    /// Deletes a user.
    pub async fn delete(&self, id: impl fmt::Display) -> DocumentChange {
        self.flare.delete_document(&url(id)).await.unwrap()
    }

    /// The row of a subscription for a user.
    pub async fn row(&self, subscription: SubscriptionId, id: impl fmt::Display) -> Option<Row> {
        let key = RowKey::new(subscription, DocumentUrl::parse(&url(id)).unwrap());
        self.repository().rows(vec![key]).await.unwrap().pop().unwrap()
    }
}

impl<B, C> Drop for World<B, C> {
    fn drop(&mut self) {
        self.running.iter().for_each(|running| running.task.abort());
    }
}

/// Ends once a node is asked to.
pub type Stopped = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clock whose time a [`World`] lets pass.
pub trait WorldClock: Clock + Clone {
    /// How much of it passes before something is looked for again.
    const STEP: Duration;
    /// How much of it something may take.
    const PATIENCE: Duration;

    /// Lets time pass.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

impl WorldClock for ManualClock {
    const STEP: Duration = Duration::from_millis(100);
    const PATIENCE: Duration = Duration::from_secs(3_600);

    async fn pass(&self, time: Duration) {
        self.advance(time).await;
    }
}

impl WorldClock for SystemClock {
    const STEP: Duration = Duration::from_millis(10);
    const PATIENCE: Duration = Duration::from_secs(120);

    async fn pass(&self, time: Duration) {
        self.sleep(time).await;
    }
}

async fn in_time<T>(clock: &impl WorldClock, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = clock.pass(Duration::from_millis(10)) => {}
        }
    }
}

fn builder<C: WorldClock>(
    backend: &Backend,
    delivery: &RecordingDelivery,
    clock: &C,
    settings: &Settings,
) -> FlareBuilder {
    Flare::builder(backend.clone())
        .delivery(Arc::new(delivery.clone()))
        .clock(Arc::new(clock.clone()))
        .settings(settings.clone())
        .exclusive()
}

fn handle(builder: FlareBuilder) -> Flare {
    let (flare, runtime) = builder.build().expect("a node that can be built");
    runtime.unused();
    flare
}

/// Two slots and one worker at each stage: little to follow.
pub fn few_slots() -> Settings {
    let mut settings = Settings::default();
    (settings.slots, settings.workers) = (Some(2), 1);
    settings
}

/// A node that says so seldom that it is there, and gives a store that hangs much time: what nodes of a
/// manual clock's world are, so that idle days pass quickly.
pub fn long_leases() -> ClusterSettings {
    let mut cluster = ClusterSettings::default();
    cluster.ttl = Duration::from_secs(1_200);
    cluster.call_limit = cluster.ttl / 4;
    cluster.hand_over_limit = cluster.ttl;
    cluster.sweep_every = cluster.ttl;
    cluster.publish_every = cluster.ttl;
    cluster
}

/// The URL of a user, whose revision is in `rev`.
pub fn url(id: impl fmt::Display) -> String {
    format!("http://api.example/users/{id}")
}

/// A client that is told of each document at `http://<name>.example/<id>`, and given up on after one
/// attempt.
pub fn hook(name: &str) -> SubscriptionBuilder {
    let never = RetryPolicy::builder().num_retries(0).build().unwrap();
    SubscriptionSpec::post(format!("http://{name}.example/{{id}}")).retry(never)
}
