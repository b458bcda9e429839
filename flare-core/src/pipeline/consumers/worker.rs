//! Takes a consumer of a slot this node has; gives its messages to be stored until told to stop, or until another
//! node has it. A broker that is away is tried again; messages that were not looked at are given back at the end.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::{debug, info};

use super::storing::{OpenConsumer, note, report};
use super::tally::{ConsumerTally, Trouble};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::MessageExpression;
use crate::model::{Consumer, OnReject, ResourceState};
use crate::ownership::Term;
use crate::pipeline::context::Context;
use crate::pipeline::ingest::Ingest;
use crate::pipeline::meter;
use crate::pipeline::stage::chain;
use crate::pipeline::stop::Stop;
use crate::port::{CheckpointKeeper, Receipt, SourceMessage, SourceOpening, SourceSettlement};
use crate::tools::{doubled, lock, taken};

/// How long a receive waits for a first message.
const WAIT: Duration = Duration::from_secs(20);
/// Messages that wait to be stored: beyond this nothing is received.
const WAITING_MESSAGES: usize = 1_000;
/// Bytes of those.
const WAITING_BYTES: usize = 1024 * 1024;
/// How often what was counted is stored while there is something to tell.
const REPORT_EVERY: Duration = Duration::from_secs(1);
/// How often the broker is asked how much there is.
const LAG_EVERY: Duration = Duration::from_secs(10);
/// How long a broker that is away is left alone.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// One consumer's work under one owner.
pub(super) struct ConsumerWorker {
    pub(super) context: Arc<Context>,
    pub(super) ingest: Arc<Ingest>,
    pub(super) consumer: Consumer,
    pub(super) slot: u32,
    pub(super) term: Term,
    pub(super) stop: Stop,
}

/// Why an open source is worked no more.
enum PullEnd {
    /// It is to stop, or another node has the consumer.
    Over,
    /// The source is no good any more.
    Failed(Error),
}

impl ConsumerWorker {
    pub(super) async fn work(mut self) {
        let Some(tally) = self.take_over().await else { return };
        let mut failures = 0;
        while !self.stop.is_requested() {
            let mut stop = self.stop.clone();
            let opened = tokio::select! {
                biased;
                () = stop.requested() => return,
                opened = self.open(&tally) => opened,
            };
            let error = match opened {
                Ok(open) => {
                    let began = self.context.clock.monotonic();
                    let end = Arc::new(open).pull(self.stop.clone()).await;
                    // One that went well for a while is not one that always fails.
                    if self.context.clock.monotonic().saturating_sub(began) > LONGEST_PAUSE {
                        failures = 0;
                    }
                    match end {
                        PullEnd::Over => return,
                        PullEnd::Failed(error) => error,
                    }
                }
                Err(error) => error,
            };
            failures += 1;
            let what = "a source cannot be read, and is opened again in a while";
            note(&tally, &self.consumer, &self.context, (Trouble::Source, &error), what);
            if let Err(error) = report(&tally, &self.consumer, &self.context, &self.term).await {
                debug!(consumer = %self.consumer.id, error = %chain(&error), "could not store its state");
            }
            if self.paused(failures).await {
                return;
            }
        }
    }

    /// Waits; tells whether it is to stop meanwhile.
    async fn paused(&mut self, failures: u32) -> bool {
        let pause = self.context.jittered(doubled(PAUSE, failures, LONGEST_PAUSE));
        tokio::select! {
            biased;
            () = self.stop.requested() => true,
            () = self.context.sleep(pause) => false,
        }
    }

    /// Fences the former owner and learns where it ended; nothing if the consumer is another's, or gone.
    async fn take_over(&mut self) -> Option<Arc<Mutex<ConsumerTally>>> {
        let mut failures = 0;
        loop {
            let claim =
                self.context.repository.claim_consumer_state(self.term.epoch, self.consumer.id);
            match claim.await {
                Ok(state) => {
                    let tally =
                        ConsumerTally::new(state?, self.context.node, &self.consumer.source);
                    return Some(Arc::new(Mutex::new(tally)));
                }
                Err(error) => {
                    failures += 1;
                    if let Some(unreadable) = error.unreadable() {
                        self.context.note_unreadable(unreadable);
                    }
                    debug!(consumer = %self.consumer.id, error = %chain(&error), "could not take it over, will retry");
                    if self.paused(failures).await {
                        return None;
                    }
                }
            }
        }
    }

    async fn open(&self, tally: &Arc<Mutex<ConsumerTally>>) -> Result<OpenConsumer> {
        const OPERATION: &str = "open_consumer";
        let (context, consumer) = (&self.context, &self.consumer);
        let resource = context.repository.resource(consumer.resource).await?;
        let resource = resource.filter(|found| found.state == ResourceState::Active);
        let resource = resource.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, OPERATION).with_detail("its resource is deleted")
        })?;
        let expression = consumer.mapping.expression().map(MessageExpression::new).transpose();
        let expression = expression.map_err(|invalid| Error::invalid(OPERATION, invalid))?;
        let kind = consumer.source.kind();
        let connector = context.connectors.get(kind).ok_or_else(|| {
            let detail = format!("this node knows no sources of the kind {kind}");
            Error::new(ErrorKind::Unsupported, OPERATION).with_detail(detail)
        })?;
        let opening = SourceOpening::new(consumer.id, consumer.source.clone())
            .checkpoints(lock(tally).checkpoints());
        let source = connector.open(opening).await?;
        let facts = source.facts();
        if consumer.on_reject == OnReject::Leave && !facts.leaves {
            source.close().await;
            let detail = "what it rejects cannot be left to this source: say keep, or give the broker a place for it \
                          (a FIFO queue needs a dead-letter queue)";
            return Err(Error::new(ErrorKind::Unsupported, OPERATION)
                .with_field("onReject")
                .with_detail(detail));
        }
        info!(consumer = %consumer.id, kind, "pulls from a source");
        Ok(OpenConsumer {
            context: Arc::clone(context),
            ingest: Arc::clone(&self.ingest),
            consumer: consumer.clone(),
            resource,
            expression: expression.unwrap_or_default(),
            source,
            facts,
            slot: self.slot,
            term: self.term.clone(),
            tally: Arc::clone(tally),
        })
    }
}

/// Messages that were received and wait to be stored.
#[derive(Default)]
struct WaitingMessages {
    messages: VecDeque<SourceMessage>,
    bytes: usize,
}

impl WaitingMessages {
    fn has_room(&self) -> bool {
        self.messages.len() < WAITING_MESSAGES && self.bytes < WAITING_BYTES
    }

    fn add(&mut self, received: Vec<SourceMessage>) {
        self.bytes += received.iter().map(|message| message.body.len()).sum::<usize>();
        self.messages.extend(received);
    }

    fn take(&mut self) -> Vec<SourceMessage> {
        self.bytes = 0;
        self.messages.drain(..).collect()
    }
}

impl OpenConsumer {
    /// Receives and stores side by side, one call of each at a time, so that neither waits for the other.
    async fn pull(self: Arc<Self>, stop: Stop) -> PullEnd {
        let end = match self.begin().await {
            Ok(true) => self.pull_begun(stop).await,
            Ok(false) => PullEnd::Over,
            Err(error) => PullEnd::Failed(error),
        };
        self.source.close().await;
        end
    }

    /// Stores where the source begins before anything is received from it: *from now on* is from now on for the node that
    /// opens it next, though this owner ends before it has stored a message. Tells whether it is still the owner.
    async fn begin(&self) -> Result<bool> {
        lock(&self.tally).reach(self.source.checkpoints());
        match self.facts.checkpoints {
            CheckpointKeeper::Broker => Ok(true),
            CheckpointKeeper::Flare => self.report().await,
        }
    }

    async fn pull_begun(self: &Arc<Self>, mut stop: Stop) -> PullEnd {
        let mut waiting = WaitingMessages::default();
        let mut receiving: Option<BoxFuture<'static, _>> = None;
        let mut storing: Option<BoxFuture<'static, ()>> = None;
        let mut failures = 0;
        let mut next = self.context.clock.monotonic() + REPORT_EVERY;
        let mut lag_at = self.context.clock.monotonic();
        let mut kept_at = lag_at;
        let mut asking: Option<BoxFuture<'static, _>> = None;
        let mut reporting: Option<BoxFuture<'static, bool>> = None;
        let end = loop {
            if receiving.is_none() && waiting.has_room() && self.is_trusted() {
                receiving = Some(self.receive(failures));
            }
            if storing.is_none() && !waiting.messages.is_empty() {
                storing = Some(Arc::clone(self).store(waiting.take(), stop.clone()).boxed());
            }
            let left = next.saturating_sub(self.context.clock.monotonic());
            tokio::select! {
                biased;
                () = stop.requested() => break PullEnd::Over,
                () = taken(&mut storing) => {}
                received = taken(&mut receiving) => match received {
                    Ok(messages) => {
                        failures = 0;
                        meter::received(messages.len());
                        lock(&self.tally).receive(messages.len(), self.context.now());
                        waiting.add(messages);
                    }
                    Err(error) if error.is_temporary() => {
                        failures += 1;
                        self.note(Trouble::Source, &error, "could not receive, will retry");
                    }
                    Err(error) => break PullEnd::Failed(error),
                },
                asked = taken(&mut asking) => self.take_lag(asked),
                owns = taken(&mut reporting) => if !owns {
                    break PullEnd::Over;
                },
                () = self.context.sleep(left) => {
                    let now = self.context.clock.monotonic();
                    next = now + REPORT_EVERY;
                    if now >= lag_at && asking.is_none() {
                        lag_at = now + LAG_EVERY;
                        let source = Arc::clone(&self.source);
                        asking = Some(async move { source.lag().await }.boxed());
                    }
                    if lock(&self.tally).is_dirty() && reporting.is_none() {
                        let this = Arc::clone(self);
                        reporting = Some(async move { this.still_owns().await }.boxed());
                    }
                    if self.facts.kept_for.is_some_and(|time| now >= kept_at + time / 3) {
                        kept_at = now;
                        let receipts: Vec<_> = waiting.messages.iter().map(|it| &it.receipt).collect();
                        if self.keep_beside(&receipts, &mut storing, &mut stop).await {
                            break PullEnd::Over;
                        }
                    }
                }
            }
        };
        // What was being received is the next one's (S5).
        drop(receiving);
        if let Some(storing) = storing {
            storing.await;
        }
        let given_back = waiting.take().into_iter();
        let given_back = given_back.map(|message| (message.receipt, SourceSettlement::Return));
        self.settle(given_back.collect()).await;
        lock(&self.tally).reach(self.source.checkpoints());
        // Never two at a time: an older state would be stored after a newer one.
        if let Some(reporting) = reporting {
            reporting.await;
        }
        self.still_owns().await;
        end
    }

    /// Keeps what waits, which may take many calls, while what is being stored goes on; tells whether it is to stop.
    async fn keep_beside(
        &self,
        receipts: &[&Receipt],
        storing: &mut Option<BoxFuture<'static, ()>>,
        stop: &mut Stop,
    ) -> bool {
        let mut keep = std::pin::pin!(self.keep(receipts));
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return true,
                () = taken(storing) => {}
                () = &mut keep => return false,
            }
        }
    }

    /// Receives, after a pause if that failed before.
    fn receive(&self, failures: u32) -> BoxFuture<'static, Result<Vec<SourceMessage>>> {
        let (context, source) = (Arc::clone(&self.context), Arc::clone(&self.source));
        let max = self.facts.max_batch.clamp(1, WAITING_MESSAGES);
        async move {
            if failures > 0 {
                let pause = doubled(PAUSE, failures, LONGEST_PAUSE);
                context.sleep(context.jittered(pause)).await;
            }
            source.receive(max, WAIT).await
        }
        .boxed()
    }

    fn take_lag(&self, asked: Result<Option<crate::port::SourceLag>>) {
        match asked {
            Ok(lag) => lock(&self.tally).lag(lag),
            // A broker that is away is noticed by receiving from it.
            Err(error) => {
                debug!(consumer = %self.consumer.id, error = %chain(&error), "its lag is not known")
            }
        }
    }

    /// Stores what was counted; tells whether this node may go on. While the store does not answer it may: the
    /// slot's trust says whether it is still this node's.
    async fn still_owns(&self) -> bool {
        match self.report().await {
            Ok(owns) => owns,
            Err(error) => {
                debug!(consumer = %self.consumer.id, error = %chain(&error), "could not store its state");
                true
            }
        }
    }
}
