//! A queue of a broker as Flare's port wants it: connected when it is asked for something, again after each loss,
//! and never twice at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Checkpoint;
use flare_core::port::{
    Clock, Receipt, Source, SourceFacts, SourceLag, SourceMessage, SourceSettlement, SystemClock,
    Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use tokio::sync::Mutex as Turn;

use crate::BACKEND;
use crate::error;
use crate::link::{Dialer, Link};

/// A consumer's hold on a queue.
#[derive(Debug)]
pub(crate) struct RabbitMqSource {
    dialer: Arc<Dialer>,
    /// Numbers connections, all that the connector's sources make: a receipt is good on one of them.
    numbers: Arc<AtomicU64>,
    /// Whose turn it is to connect.
    dialing: Arc<Turn<()>>,
    current: Arc<CurrentLink>,
}

/// The connection there is, if there is one.
#[derive(Debug, Default)]
struct CurrentLink(Mutex<LinkState>);

#[derive(Debug, Default)]
struct LinkState {
    link: Option<Arc<Link>>,
    closed: bool,
}

impl CurrentLink {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, if it works; fails once the source is closed.
    fn alive(&self, operation: &'static str) -> Result<Option<Arc<Link>>> {
        let state = self.state();
        match state.closed {
            true => Err(closed(operation)),
            false => Ok(state.link.clone().filter(|link| link.is_alive())),
        }
    }

    fn install(&self, operation: &'static str, link: Link) -> Result<Arc<Link>> {
        let mut state = self.state();
        if state.closed {
            return Err(closed(operation));
        }
        let link = Arc::new(link);
        state.link = Some(Arc::clone(&link));
        Ok(link)
    }

    fn end(&self) -> Option<Arc<Link>> {
        let mut state = self.state();
        state.closed = true;
        state.link.take()
    }
}

impl RabbitMqSource {
    /// Connects, so that what is wrong is known at once.
    pub(crate) async fn open(dialer: Dialer, numbers: Arc<AtomicU64>) -> Result<Self> {
        let (dialing, current) = (Arc::default(), Arc::default());
        let source = Self { dialer: Arc::new(dialer), numbers, dialing, current };
        source.linked("open").await?;
        Ok(source)
    }

    /// A connection that works: the one there is, or else a new one.
    async fn linked(&self, operation: &'static str) -> Result<Arc<Link>> {
        if let Some(link) = self.current.alive(operation)? {
            return Ok(link);
        }
        let turn = Arc::clone(&self.dialing).lock_owned().await;
        if let Some(link) = self.current.alive(operation)? {
            return Ok(link);
        }
        let (dialer, current) = (Arc::clone(&self.dialer), Arc::clone(&self.current));
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        // In a task of its own: whoever asked may be dropped meanwhile, and would leave a connection half made.
        let dialing = tokio::spawn(async move {
            let _turn = turn;
            current.install(operation, dialer.dial(operation, number).await?)
        });
        dialing.await.unwrap_or_else(|error| {
            let unfinished = Error::new(ErrorKind::Unavailable, operation).with_backend(BACKEND);
            Err(unfinished.with_detail("connecting was cut short").with_source(error))
        })
    }
}

impl Drop for RabbitMqSource {
    fn drop(&mut self) {
        self.current.end();
    }
}

fn closed(operation: &'static str) -> Error {
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail("the source is closed")
}

#[async_trait]
impl Source for RabbitMqSource {
    fn facts(&self) -> SourceFacts {
        // A queue is in order until something is returned; what was prefetched by then comes before it.
        SourceFacts::queue(usize::from(self.dialer.prefetch))
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        let clock = SystemClock::new();
        let mut until = clock.sleep(wait);
        let max = max.min(self.facts().max_batch);
        let link = self.linked("receive").await?;
        match link.receive(max, &mut until).await {
            Ok(messages) => Ok(messages),
            // Connecting says what is wrong, such as that the queue is gone; or that it was nothing.
            Err(_) => self.linked("receive").await?.receive(max, &mut until).await,
        }
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let link = self.current.alive("keep").ok().flatten();
        let keep = |receipt: &Receipt| match &link {
            Some(link) if link.holds(receipt) => Ok(()),
            _ => Err(error::lost("keep")),
        };
        receipts.into_iter().map(keep).collect()
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let settlements = Arc::new(settlements);
        let good = match self.current.alive("settle").ok().flatten() {
            Some(link) => {
                let settlements = Arc::clone(&settlements);
                // In a task of its own: what is settled here is to be told to the broker, whoever is dropped.
                let settling = tokio::spawn(async move { link.settle(&settlements).await });
                settling.await.ok().and_then(Result::ok)
            }
            None => None,
        };
        // The receipts of a connection that is lost are lost with it.
        let good = good.unwrap_or_else(|| vec![false; settlements.len()]);
        let settled = |((receipt, _), good): (&(Receipt, SourceSettlement), bool)| match good {
            true => Ok(()),
            false => Err(Unsettled::new(error::lost("settle"), Receipt::new(receipt.token()))),
        };
        settlements.iter().zip(good).map(settled).collect()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        Vec::new()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        let messages = self.linked("lag").await?.lag().await?;
        Ok(Some(SourceLag::Messages(messages)))
    }

    async fn close(&self) {
        if let Some(link) = self.current.end() {
            link.close().await;
        }
    }
}
