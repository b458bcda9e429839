//! Takes a backend's fixture; gives clauses a port to try and a way to let time pass for it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

/// How a backend's tests get a fresh port.
///
/// The suites evaluate the fixture's expression once per test, so a fixture may own what belongs
/// to one port (its clock, its database's name); the guard cleans up when it is dropped.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// What is tried: `dyn Queue`, `dyn Repository` …
    type Port: ?Sized + Send + Sync + 'static;
    /// What keeps it alive, and cleans up after it.
    type Guard: Send;

    /// A port that holds nothing yet.
    async fn open(&self) -> (Arc<Self::Port>, Self::Guard);

    /// Lets `time` pass for the port: a fixture with a manual clock moves it, others wait.
    #[allow(clippy::disallowed_methods, reason = "a real service's time passes only by waiting")]
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// The shortest time the port tells apart with certainty; clauses wait in multiples of it.
    fn tick(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// For leases: after how many changes a watch can certainly no longer begin before them, if the fixture
    /// knows. Clause L8 makes twice as many and sees the watch end; without it, it makes thousands.
    fn history(&self) -> Option<usize> {
        None
    }
}

/// A port under trial, with its time.
pub struct Subject<P: ?Sized> {
    port: Arc<P>,
    time: Arc<dyn Facts>,
}

#[async_trait]
trait Facts: Send + Sync {
    async fn pass(&self, time: Duration);
    fn tick(&self) -> Duration;
    fn history(&self) -> Option<usize>;
}

struct FactsOf<F>(F);

#[async_trait]
impl<F: Fixture> Facts for FactsOf<F> {
    async fn pass(&self, time: Duration) {
        self.0.pass(time).await;
    }

    fn tick(&self) -> Duration {
        self.0.tick()
    }

    fn history(&self) -> Option<usize> {
        self.0.history()
    }
}

impl<P: ?Sized> Subject<P> {
    /// Opens a fixture. The guard has to outlive the subject.
    pub async fn open<F: Fixture<Port = P>>(fixture: F) -> (Self, F::Guard) {
        let (port, guard) = fixture.open().await;
        (Self { port, time: Arc::new(FactsOf(fixture)) }, guard)
    }

    /// The port, to share with tasks.
    pub fn port(&self) -> Arc<P> {
        Arc::clone(&self.port)
    }

    /// The same time with another port in front: how a test double wraps a real one.
    #[must_use]
    pub fn map<Q: ?Sized>(&self, wrap: impl FnOnce(Arc<P>) -> Arc<Q>) -> Subject<Q> {
        Subject { port: wrap(self.port()), time: Arc::clone(&self.time) }
    }

    /// Lets some time pass for the port.
    pub async fn pass(&self, time: Duration) {
        self.time.pass(time).await;
    }

    /// Lets `count` of the shortest times the port tells apart pass.
    pub async fn pass_ticks(&self, count: u32) {
        self.pass(self.ticks(count)).await;
    }

    /// `count` of the shortest times the port tells apart.
    pub fn ticks(&self, count: u32) -> Duration {
        self.time.tick() * count
    }

    /// After how many changes a watch can certainly no longer begin before them, if that is known.
    pub fn history(&self) -> Option<usize> {
        self.time.history()
    }
}

impl<P: ?Sized> std::ops::Deref for Subject<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.port
    }
}

impl<P: ?Sized> std::fmt::Debug for Subject<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}
