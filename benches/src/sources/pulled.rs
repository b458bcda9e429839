//! A Flare that pulls from a broker while it is asked to, and is asked to until all that there is was settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Flare;
use flare_core::model::consumer::MappingInput;
use flare_core::model::{
    Checkpoint, Invalid, NewConsumer, NewResource, ResourceId, SourceSettings,
};
use flare_core::port::{
    Receipt, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage, SourceOpening,
    SourceSettlement, Unsettled,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::Broker;
use crate::Result;
use crate::e2e::{MeasuredStore, StoreKind};
use crate::mongo::timed;

pub(super) struct Puller {
    flare: Flare,
    items: ResourceId,
    settled: Arc<Settled>,
    running: JoinHandle<flare_core::Result<()>>,
    store: Box<dyn MeasuredStore>,
}

impl Puller {
    /// One without a consumer.
    pub(super) async fn start(broker: &dyn Broker, store: StoreKind) -> Result<Self> {
        let store = store.make().await?;
        let settled = Arc::<Settled>::default();
        let counted = Counted { inner: broker.connector()?, settled: Arc::clone(&settled) };
        let (flare, runtime) =
            Flare::builder(store.open().await?).source(Arc::new(counted)).build()?;
        let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
        let new = NewResource::new("http://api.example.com/items/{id}").change_field("rev");
        let items = flare.create_resource(new).await?.id;
        Ok(Self { flare, items, settled, running, store })
    }

    /// Has a new consumer pull until so many more messages are settled; gives how long that took since it had its
    /// source open, as a bare client has its connection.
    pub(super) async fn pull(&self, source: SourceSettings, messages: usize) -> Result<Duration> {
        let wanted = self.settled.count.load(Ordering::SeqCst) + messages as u64;
        let opened = self.settled.opened.load(Ordering::SeqCst);
        let mut mapping = MappingInput::default();
        mapping.url = "http://api.example.com/items/{/id}".to_owned();
        let new = NewConsumer::new(source, mapping);
        let consumer = self.flare.create_consumer(self.items, new).await?.id;
        self.settled.until(|| self.settled.opened.load(Ordering::SeqCst) > opened).await;
        let reached = async {
            self.settled.reach(wanted).await;
            Ok(())
        };
        let (time, ()) = timed(reached).await?;
        self.flare.delete_consumer(consumer).await?;
        // The next turn has the broker for itself.
        self.settled.is_closed().await;
        Ok(time)
    }

    pub(super) async fn remove(self) -> Result<()> {
        self.running.abort();
        // Whatever it was, it has ended: the store is nobody's.
        let _ = self.running.await;
        drop(self.flare);
        self.store.remove().await
    }
}

/// How much was settled, and whether a source is open.
#[derive(Debug, Default)]
struct Settled {
    count: AtomicU64,
    opened: AtomicU64,
    closed: AtomicU64,
    changed: Notify,
}

impl Settled {
    async fn until(&self, done: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified();
            if done() {
                return;
            }
            changed.await;
        }
    }

    async fn reach(&self, count: u64) {
        self.until(|| self.count.load(Ordering::SeqCst) >= count).await;
    }

    /// Waits until whatever was opened is closed.
    async fn is_closed(&self) {
        let load = |number: &AtomicU64| number.load(Ordering::SeqCst);
        self.until(|| load(&self.opened) == load(&self.closed)).await;
    }
}

/// A connector whose sources count what is settled.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn SourceConnector>,
    settled: Arc<Settled>,
}

#[async_trait]
impl SourceConnector for Counted {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn check(&self, settings: &SourceSettings) -> std::result::Result<(), Invalid> {
        self.inner.check(settings)
    }

    async fn open(&self, opening: SourceOpening) -> flare_core::Result<Arc<dyn Source>> {
        let inner = self.inner.open(opening).await?;
        self.settled.opened.fetch_add(1, Ordering::SeqCst);
        self.settled.changed.notify_waiters();
        Ok(Arc::new(CountedSource { inner, settled: Arc::clone(&self.settled) }))
    }
}

#[derive(Debug)]
struct CountedSource {
    inner: Arc<dyn Source>,
    settled: Arc<Settled>,
}

#[async_trait]
impl Source for CountedSource {
    fn facts(&self) -> SourceFacts {
        self.inner.facts()
    }

    async fn receive(&self, max: usize, wait: Duration) -> flare_core::Result<Vec<SourceMessage>> {
        self.inner.receive(max, wait).await
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<flare_core::Result<()>> {
        self.inner.keep(receipts).await
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<std::result::Result<(), Unsettled>> {
        let done = |(_, to): &(Receipt, SourceSettlement)| *to == SourceSettlement::Done;
        let done: Vec<bool> = settlements.iter().map(done).collect();
        let settled = self.inner.settle(settlements).await;
        let count = settled.iter().zip(done).filter(|(settled, done)| *done && settled.is_ok());
        self.settled.count.fetch_add(count.count() as u64, Ordering::SeqCst);
        self.settled.changed.notify_waiters();
        settled
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        self.inner.checkpoints()
    }

    async fn lag(&self) -> flare_core::Result<Option<SourceLag>> {
        self.inner.lag().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

impl Drop for CountedSource {
    fn drop(&mut self) {
        self.settled.closed.fetch_add(1, Ordering::SeqCst);
        self.settled.changed.notify_waiters();
    }
}
