//! Takes a queue and what to do with its tasks; gives a loop that takes batches, works on them
//! and settles each, until told to stop. A full stage stops its source: nothing is taken before
//! the batch at hand is done. (The stages that spread have several workers each: `crew`.)

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use super::context::Context;
use super::progress::Pulse;
use super::restore::{Made, RestoredQueue};
use super::stop::Stop;
use crate::error::{Error, ErrorKind, Result};
use crate::port::task::Task;
use crate::port::{Incoming, QueueExt, QueueName, Receipt, Receive, Settlement};
use crate::tools::doubled;

/// How long to wait for a first message.
pub(super) const WAIT: Duration = Duration::from_secs(20);
/// A batch is the stage's alone for at least this long before it has to be asked for again.
const SHORTEST_VISIBILITY: Duration = Duration::from_secs(30);
/// How often a task that only a newer version understands is left to one.
const LEFT_TO_NEWER: u32 = 20;
/// How long to leave a failing store or queue alone.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A queue that tasks are taken from.
#[derive(Clone)]
pub(crate) struct TaskSource {
    context: Arc<Context>,
    queue: QueueName,
    restored: Arc<RestoredQueue>,
    deaf: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl TaskSource {
    pub(crate) fn new(context: Arc<Context>, queue: QueueName) -> Self {
        let restored = context.restorer.of(&queue);
        Self { context, queue, restored, deaf: None }
    }

    /// Calls this whenever the queue cannot be heard: there may be any number of tasks in it.
    pub(crate) fn when_deaf(mut self, deaf: impl Fn() + Send + Sync + 'static) -> Self {
        self.deaf = Some(Arc::new(deaf));
        self
    }

    /// Works on the queue's tasks until told to stop.
    pub(crate) async fn consume<W>(self, pulse: Pulse, stop: Stop, work: W)
    where
        W: AsyncFn(Vec<Task>) -> Vec<Result<()>>,
    {
        TaskSourceWorker { source: self, pulse, stop, work }.wait_for_tasks().await;
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// How long a batch is a worker's alone unless it asks for more: longer than a request to a
    /// client may take, which is the longest that anything here waits for another.
    fn visibility(&self) -> Duration {
        SHORTEST_VISIBILITY.max(self.context.settings.timeout.saturating_mul(2))
    }

    pub(super) async fn receive(&self, wait: Duration) -> Result<Vec<Incoming>> {
        let request = Receive::new(self.context.settings.batch, self.visibility()).wait(wait);
        let received = self.context.queue.receive(&self.queue, request).await?;
        self.context.restorer.saw(&self.queue);
        Ok(received)
    }

    /// Waits until the queue had vanished and is there again.
    pub(super) async fn is_made_again(&self) {
        self.restored.is_made().await;
    }

    /// Keeps messages from others for as long as the work on them takes.
    pub(super) async fn keeping<T>(
        &self,
        receipts: Vec<&Receipt>,
        work: impl Future<Output = T>,
    ) -> T {
        let keep = async {
            loop {
                self.context.sleep(self.visibility() / 2).await;
                self.extend(&receipts).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = keep => std::future::pending().await,
        }
    }

    async fn extend(&self, receipts: &[&Receipt]) {
        for batch in receipts.chunks(self.context.queue.facts().max_batch.max(1)) {
            for extended in
                self.context.queue.extend(&self.queue, batch.to_vec(), self.visibility()).await
            {
                if let Err(error) = extended {
                    // Another worker may work on it too, which is no harm.
                    debug!(queue = %self.queue, error = %chain(&error), "could not keep a message");
                }
            }
        }
    }

    pub(super) async fn settle(&self, settlements: Vec<(Receipt, Settlement)>) {
        let queue = &self.queue;
        for unsettled in self.context.queue.settle_all(queue, settlements).await {
            if let Err(unsettled) = unsettled {
                // It comes back when its visibility ends, and finds its work done.
                debug!(%queue, error = %chain(&unsettled.error), "could not settle a message");
            }
        }
    }

    /// Leaves a failing queue alone for a while; brings a vanished one back.
    pub(super) async fn recover(
        &self,
        error: &Error,
        asked: Duration,
        failures: u32,
        stop: &mut Stop,
    ) {
        let (context, queue) = (&self.context, &self.queue);
        if error.kind() == ErrorKind::NotFound {
            match context.restore(queue, asked).await {
                Ok(Made::There) => return,
                // The listener here is told to stop soon.
                Ok(Made::NotNeeded) => {}
                Err(error) => {
                    warn!(%queue, error = %chain(&error), "could not make the queue again")
                }
            }
        } else {
            warn!(%queue, error = %chain(error), "could not receive, will retry");
        }
        if let Some(deaf) = &self.deaf {
            deaf();
        }
        let pause = context.jittered(pause_after(failures));
        tokio::select! {
            biased;
            () = stop.requested() => {}
            () = context.sleep(pause) => {}
        }
    }
}

struct TaskSourceWorker<W> {
    source: TaskSource,
    pulse: Pulse,
    stop: Stop,
    work: W,
}

impl<W> TaskSourceWorker<W>
where
    W: AsyncFn(Vec<Task>) -> Vec<Result<()>>,
{
    async fn wait_for_tasks(mut self) {
        let mut failures = 0;
        while !self.stop.is_requested() {
            let asked = self.context().clock.monotonic();
            let received = tokio::select! {
                biased;
                () = self.stop.requested() => return,
                received = self.source.receive(WAIT) => received,
                // It would wait at the one that vanished for as long as it meant to.
                () = self.source.is_made_again() => continue,
            };
            match received {
                Ok(messages) => {
                    failures = 0;
                    self.handle(messages).await;
                }
                Err(error) => {
                    failures += 1;
                    // There may be any amount of work that it cannot see.
                    self.pulse.works();
                    self.source.recover(&error, asked, failures, &mut self.stop).await;
                }
            }
        }
    }

    fn context(&self) -> &Context {
        &self.source.context
    }

    async fn handle(&self, messages: Vec<Incoming>) {
        if !messages.is_empty() {
            self.pulse.works();
            let settlements = self.settlements(messages).await;
            self.source.settle(settlements).await;
        }
        self.pulse.rests();
    }

    async fn settlements(&self, messages: Vec<Incoming>) -> Vec<(Receipt, Settlement)> {
        let (context, queue) = (self.context(), &self.source.queue);
        let mut tasks = Vec::with_capacity(messages.len());
        let mut receipts = Vec::with_capacity(messages.len());
        let mut settlements = Vec::with_capacity(messages.len());
        for message in messages {
            match Task::decode(&message.payload) {
                Ok(task) => {
                    tasks.push(task);
                    receipts.push((message.receipt, message.attempt));
                }
                // The version that wrote it understands it. It need not wait for ever: the stores know what it
                // was about, and so does the version that wrote it.
                Err(error) if error.unreadable().is_some() && message.attempt < LEFT_TO_NEWER => {
                    error.unreadable().into_iter().for_each(|it| context.note_unreadable(it));
                    let after = context.jittered(pause_after(message.attempt));
                    settlements.push((message.receipt, Settlement::Retry { after }));
                }
                Err(error) => {
                    // No node will ever understand it, and the stores still know what it was about.
                    warn!(%queue, error = %chain(&error), "dropped a message that is no task");
                    settlements.push((message.receipt, Settlement::Done));
                }
            }
        }
        if tasks.is_empty() {
            return settlements;
        }
        let kept = receipts.iter().map(|(receipt, _)| receipt).collect();
        let results = self.source.keeping(kept, (self.work)(tasks)).await;
        for ((receipt, attempt), result) in receipts.into_iter().zip(results) {
            let settlement = match result {
                Ok(()) => Settlement::Done,
                Err(error) => {
                    let after = context.jittered(pause_after(attempt));
                    warn!(%queue, attempt, ?after, error = %chain(&error), "task failed, will retry");
                    Settlement::Retry { after }
                }
            };
            settlements.push((receipt, settlement));
        }
        settlements
    }
}

/// How long to wait after this many failures in a row.
pub(crate) fn pause_after(failures: u32) -> Duration {
    doubled(PAUSE, failures, LONGEST_PAUSE)
}

/// An error with all its sources, for a log line.
pub(crate) fn chain(error: &Error) -> String {
    format!("{error:?}")
}
