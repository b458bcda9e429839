//! Takes a store; has documents change in it again and again, each told to every client before it changes
//! once more. Clients answer within this process, as it is the store's work that counts.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_benches::world::{FIRST, body, url};
use flare_core::model::{NewResource, SubscriptionId, SubscriptionSpec};
use flare_core::port::{Delivery, DeliveryOutcome, DeliveryRequest, Repository};
use flare_core::{Backend, ErrorKind, Flare, RuntimeHandle};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Result;
use crate::e2e::{now_nanos, pause};

const SUBSCRIPTIONS: usize = 10;
/// How often a document changes, where so many deliveries are not enough for more.
const VERSIONS: usize = 10;
/// Documents that change, at most.
const DOCUMENTS: usize = 20_000;
/// Bytes of a document.
const BODY: usize = 300;
/// Documents that are put at once, and such puts under way at a time.
const BATCH: usize = 100;
const PUTTERS: usize = 4;
/// How long a put waits that was refused because the store is busy.
const AGAIN: Duration = Duration::from_millis(5);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const SAY_EVERY: u64 = 10_000_000_000;
/// How long it may take until a version of all documents is told to everyone.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    documents: usize,
    versions: usize,
}

impl Size {
    /// The least number of deliveries in which every document changes often.
    pub(super) const LEAST: usize = SUBSCRIPTIONS * VERSIONS;

    /// At least so many deliveries.
    pub(super) fn of(deliveries: usize) -> Self {
        let documents = (deliveries / Self::LEAST).clamp(1, DOCUMENTS);
        Self { documents, versions: deliveries.div_ceil(documents * SUBSCRIPTIONS) }
    }

    fn deliveries(self) -> usize {
        self.documents * self.versions * SUBSCRIPTIONS
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, versions } = self;
        let deliveries = self.deliveries();
        write!(
            f,
            "{versions} versions of {documents} documents for {SUBSCRIPTIONS} clients: {deliveries} deliveries"
        )
    }
}

/// A Flare on the store that is measured.
pub(super) struct Load {
    size: Size,
    repository: Arc<dyn Repository>,
    flare: Flare,
    running: RuntimeHandle,
    clients: Vec<SubscriptionId>,
    told: Arc<Told>,
    revision: i64,
}

impl Load {
    pub(super) async fn start(backend: Backend, size: Size) -> Result<Self> {
        let told = Arc::new(Told::default());
        let repository = backend.repository.clone().ok_or("the store has no repository")?;
        let (flare, runtime) =
            Flare::builder(backend).delivery(Arc::clone(&told) as Arc<dyn Delivery>).build()?;
        let new = NewResource::new("http://api.example.com/shops/{shop}/items/{item}");
        let resource = flare.create_resource(new.change_field("rev")).await?.id;
        let mut clients = Vec::new();
        for number in 0..SUBSCRIPTIONS {
            let spec = SubscriptionSpec::post(format!("http://client-{number}.example.com/"));
            clients.push(flare.create_subscription(resource, spec).await?.id);
        }
        let running = runtime.spawn();
        Ok(Self { size, repository, flare, running, clients, told, revision: FIRST })
    }

    /// Makes the deliveries, and says every few seconds how many were made and what the store takes.
    pub(super) async fn run(&mut self, bytes: impl AsyncFn() -> Result<u64>) -> Result<()> {
        let (began, mut say_at) = (now_nanos(), now_nanos() + SAY_EVERY);
        for version in 1..=self.size.versions {
            self.put().await?;
            self.flare.settled(PATIENCE).await?;
            if now_nanos() < say_at && version < self.size.versions {
                continue;
            }
            say_at = now_nanos() + SAY_EVERY;
            let seconds = now_nanos().saturating_sub(began) as f64 / 1e9;
            let (told, mib) = (self.told.so_far(), bytes().await? >> 20);
            let rate = told as f64 / seconds;
            println!("{seconds:>6.0} s: {told:>9} deliveries, {rate:>6.0}/s, {mib:>6} MiB");
        }
        match (self.told.so_far(), self.size.deliveries()) {
            (told, wanted) if told < wanted => {
                Err(format!("clients were told {told} times, not {wanted}").into())
            }
            _ => Ok(()),
        }
    }

    /// Has all of it be pending: every document changes once more, and nobody is told of it.
    pub(super) async fn leave_pending(&mut self) -> Result<()> {
        for client in &self.clients {
            self.flare.pause(*client).await?;
        }
        self.put().await?;
        while self.repository.count_undispatched(None).await? > 0 {
            pause(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Ends it, and closes its connections.
    pub(super) async fn stop(self, limit: Duration) -> Result<()> {
        self.running.drain(limit).await?;
        Ok(())
    }

    /// Puts the next version of every document.
    async fn put(&mut self) -> Result<()> {
        let content = body(self.revision, BODY);
        self.revision += 1;
        let batches = (0..self.size.documents).step_by(BATCH);
        let batches = batches.map(|first| first..(first + BATCH).min(self.size.documents));
        let puts = batches.map(|batch| put_batch(&self.flare, batch.collect(), &content));
        stream::iter(puts).buffer_unordered(PUTTERS).try_collect::<()>().await
    }
}

/// Puts documents, those again that the store was too busy for.
async fn put_batch(flare: &Flare, mut left: Vec<usize>, content: &Bytes) -> Result<()> {
    loop {
        let documents = left.iter().map(|number| (url(*number), content.clone()));
        let answers = flare.put_documents(documents).await;
        let mut again = Vec::new();
        for (number, answer) in left.into_iter().zip(answers) {
            match answer {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Busy => again.push(number),
                Err(error) => return Err(error.into()),
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        left = again;
        pause(AGAIN).await;
    }
}

/// Clients that take everything at once, and how much that was.
#[derive(Debug, Default)]
struct Told(AtomicUsize);

impl Told {
    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Delivery for Told {
    async fn attempt(&self, _: DeliveryRequest) -> DeliveryOutcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        DeliveryOutcome::answered(200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_changes_often_and_as_much_is_delivered_as_was_asked_for() {
        for (deliveries, documents, versions) in
            [(100, 1, 10), (200_000, 2_000, 10), (2_000_000, 20_000, 10), (4_000_001, 20_000, 21)]
        {
            let size = Size::of(deliveries);
            assert_eq!(size, Size { documents, versions });
            assert!(size.deliveries() >= deliveries);
        }
    }
}
