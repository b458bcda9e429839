//! Takes a connector and a plan; gives sources that fail, lose what they answer, lose their connection and mix up
//! what they give, as the plan says. Never loses a message: what was not settled comes again, as a broker's would.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::{Checkpoint, Invalid, SourceSettings};
use flare_core::port::{
    CheckpointKeeper, Receipt, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage,
    SourceOpening, SourceSettlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

use crate::FaultPlan;

/// Sources as bad as brokers are in the worst of times.
#[derive(Debug, Clone)]
pub struct FaultySources {
    inner: Arc<dyn SourceConnector>,
    faults: SourceFaults,
}

#[derive(Debug, Clone)]
struct SourceFaults {
    plan: FaultPlan,
    cut: f64,
    reorder: f64,
}

impl FaultySources {
    /// Those of `inner`, with the plan's errors and no other faults yet: one that comes after the effect of a receive
    /// loses the messages on their way, so that the broker gives them again.
    pub fn new(inner: Arc<dyn SourceConnector>, plan: FaultPlan) -> Self {
        Self { inner, faults: SourceFaults { plan, cut: 0.0, reorder: 0.0 } }
    }

    /// The same; with this probability a call finds that the connection is lost, with all that is not settled, and the
    /// source has to be opened anew.
    #[must_use]
    pub fn cutting(mut self, probability: f64) -> Self {
        self.faults.cut = probability;
        self
    }

    /// The same; with this probability messages that are received together come in another order. Those of a stream
    /// stay in theirs.
    #[must_use]
    pub fn reordering(mut self, probability: f64) -> Self {
        self.faults.reorder = probability;
        self
    }

    /// The plan, to heal it or to count what it did.
    pub fn plan(&self) -> &FaultPlan {
        &self.faults.plan
    }
}

#[async_trait]
impl SourceConnector for FaultySources {
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        self.inner.check(settings)
    }

    fn leaves(&self, settings: &SourceSettings) -> bool {
        self.inner.leaves(settings)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        self.faults.plan.before("open")?;
        let inner = self.inner.open(opening).await?;
        let faults = self.faults.clone();
        Ok(Arc::new(FaultySource { inner, faults, is_cut: AtomicBool::new(false) }))
    }
}

#[derive(Debug)]
struct FaultySource {
    inner: Arc<dyn Source>,
    faults: SourceFaults,
    is_cut: AtomicBool,
}

impl FaultySource {
    /// Fails if the connection is lost, or is lost now.
    async fn connected(&self, operation: &'static str) -> Result<()> {
        if !self.is_cut.load(Ordering::SeqCst) && self.faults.plan.roll(self.faults.cut) {
            self.is_cut.store(true, Ordering::SeqCst);
            self.inner.close().await;
        }
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Lost, operation)
                .with_backend("faulty")
                .with_detail("the connection was cut by the fault plan")),
            false => self.faults.plan.before(operation),
        }
    }

    /// Whether what was received together may come in another order.
    fn reorders(&self) -> bool {
        self.faults.reorder > 0.0 && self.inner.facts().checkpoints == CheckpointKeeper::Broker
    }
}

#[async_trait]
impl Source for FaultySource {
    fn facts(&self) -> SourceFacts {
        let mut facts = self.inner.facts();
        facts.ordered &= !self.reorders();
        facts
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        self.connected("receive").await?;
        let mut received = self.inner.receive(max, wait).await?;
        if let Err(lost) = self.faults.plan.after("receive") {
            // A broker that holds what it gave out for a time gives it again after that; any other at once.
            if self.facts().kept_for.is_none() {
                let given_back = received.into_iter();
                let given_back = given_back.map(|it| (it.receipt, SourceSettlement::Return));
                for returned in self.inner.settle(given_back.collect()).await {
                    match returned.map_err(|unsettled| unsettled.error) {
                        // One that came before it took it along (S3).
                        Err(error) if error.kind() != ErrorKind::Lost => return Err(error),
                        _ => {}
                    }
                }
            }
            return Err(lost);
        }
        if self.reorders() && self.faults.plan.roll(self.faults.reorder) {
            self.faults.plan.shuffle(&mut received);
        }
        Ok(received)
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        match self.connected("keep").await {
            Ok(()) => self.inner.keep(receipts).await,
            Err(error) => receipts.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let failed = |receipts: Vec<Receipt>, error: &Error| {
            let unsettled = |receipt| Err(Unsettled::new(error.clone(), receipt));
            receipts.into_iter().map(unsettled).collect()
        };
        let receipts =
            settlements.iter().map(|(receipt, _)| Receipt::new(receipt.token())).collect();
        if let Err(error) = self.connected("settle").await {
            return failed(receipts, &error);
        }
        let settled = self.inner.settle(settlements).await;
        match self.faults.plan.after("settle") {
            Ok(()) => settled,
            Err(error) => failed(receipts, &error),
        }
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        self.inner.checkpoints()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        self.connected("lag").await?;
        self.inner.lag().await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
