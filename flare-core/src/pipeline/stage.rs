//! Takes a queue and what to do with its tasks; gives a loop that takes batches, works on them
//! and settles each, until told to stop. A full stage stops its source: nothing is taken before
//! the batch at hand is done.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tracing::{debug, warn};

use super::context::Context;
use super::progress::Pulse;
use super::restore::{Made, Restored};
use super::stop::Stop;
use super::task::Task;
use crate::error::{Error, ErrorKind, Result};
use crate::port::{Incoming, QueueExt, QueueName, Receipt, Receive, Settlement};

/// How long to wait for a first message.
const WAIT: Duration = Duration::from_secs(20);
/// This many messages at once: a second worker is worth its requests.
const BUSY: usize = 10;
/// A batch is the stage's alone for at least this long before it has to be asked for again.
const SHORTEST_VISIBILITY: Duration = Duration::from_secs(30);
/// How long to leave a failing store or queue alone.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A queue that workers of one runtime share: one waits for messages all the time, the others sleep
/// until there is much to do, and again once nothing is left. So an idle queue costs one request in
/// as long as a request may wait.
#[derive(Clone)]
pub(crate) struct Source {
    context: Arc<Context>,
    queue: QueueName,
    restored: Arc<Restored>,
    crowd: Arc<Notify>,
    deaf: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Source {
    pub(crate) fn new(context: Arc<Context>, queue: QueueName) -> Self {
        let restored = context.restorer.of(&queue);
        Self { context, queue, restored, crowd: Arc::default(), deaf: None }
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
        Worker { source: self, pulse, stop, work }.wait_for_tasks().await;
    }

    /// Works on the queue's tasks whenever there are many, until told to stop.
    pub(crate) async fn help<W>(self, pulse: Pulse, stop: Stop, work: W)
    where
        W: AsyncFn(Vec<Task>) -> Vec<Result<()>>,
    {
        Worker { source: self, pulse, stop, work }.wait_for_crowd().await;
    }

    /// How long a batch is a worker's alone unless it asks for more: longer than a request to a
    /// client may take, which is the longest that anything here waits for somebody else.
    fn visibility(&self) -> Duration {
        SHORTEST_VISIBILITY.max(self.context.settings.timeout.saturating_mul(2))
    }

    async fn receive(&self, wait: Duration) -> Result<Vec<Incoming>> {
        let request = Receive::new(self.context.settings.batch, self.visibility()).wait(wait);
        let received = self.context.queue.receive(&self.queue, request).await?;
        self.context.restorer.saw(&self.queue);
        if received.len() >= BUSY.min(self.context.settings.batch) {
            self.crowd.notify_one();
        }
        Ok(received)
    }

    async fn extend(&self, receipts: &[(Receipt, u32)]) {
        for batch in receipts.chunks(self.context.queue.facts().max_batch.max(1)) {
            let receipts = batch.iter().map(|(receipt, _)| receipt).collect();
            for extended in
                self.context.queue.extend(&self.queue, receipts, self.visibility()).await
            {
                if let Err(error) = extended {
                    // Somebody else may work on it too, which is no harm.
                    debug!(queue = %self.queue, error = %chain(&error), "could not keep a message");
                }
            }
        }
    }
}

struct Worker<W> {
    source: Source,
    pulse: Pulse,
    stop: Stop,
    work: W,
}

impl<W> Worker<W>
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
                () = self.source.restored.is_made() => continue,
            };
            match received {
                Ok(messages) => {
                    failures = 0;
                    self.handle(messages).await;
                }
                Err(error) => {
                    failures += 1;
                    // There may be any amount of work that it cannot see.
                    self.pulse.works(self.context().now());
                    self.recover(&error, asked, failures).await;
                }
            }
        }
    }

    async fn wait_for_crowd(mut self) {
        loop {
            tokio::select! {
                biased;
                () = self.stop.requested() => return,
                () = self.source.crowd.notified() => {}
            }
            while !self.stop.is_requested() {
                match self.source.receive(Duration::ZERO).await {
                    Ok(messages) if messages.is_empty() => break,
                    Ok(messages) => self.handle(messages).await,
                    // Whoever waits for tasks sees it too, and does something about it.
                    Err(_) => break,
                }
            }
        }
    }

    fn context(&self) -> &Context {
        &self.source.context
    }

    async fn handle(&self, messages: Vec<Incoming>) {
        let (context, queue) = (self.context(), &self.source.queue);
        if !messages.is_empty() {
            self.pulse.works(context.now());
            let settlements = self.settlements(messages).await;
            for unsettled in context.queue.settle_all(queue, settlements).await {
                if let Err(unsettled) = unsettled {
                    // It comes back when its visibility ends, and finds its work done.
                    debug!(%queue, error = %chain(&unsettled.error), "could not settle a message");
                }
            }
        }
        self.pulse.rests(context.now());
    }

    async fn settlements(&self, messages: Vec<Incoming>) -> Vec<(Receipt, Settlement)> {
        let (context, queue) = (self.context(), &self.source.queue);
        let mut tasks = Vec::with_capacity(messages.len());
        let mut receipts = Vec::with_capacity(messages.len());
        let mut settlements = Vec::with_capacity(messages.len());
        for message in messages {
            match Task::decode(&message.payload) {
                Ok(Task::Restored) if is_stage(queue) => {
                    context.tasks_lost.notify_one();
                    settlements.push((message.receipt, Settlement::Done));
                }
                Ok(task) => {
                    tasks.push(task);
                    receipts.push((message.receipt, message.attempt));
                }
                Err(error) => {
                    // Nobody will ever understand it, and the stores still know what it was about.
                    warn!(%queue, error = %chain(&error), "dropped a message that is no task");
                    settlements.push((message.receipt, Settlement::Done));
                }
            }
        }
        if tasks.is_empty() {
            return settlements;
        }
        let results = self.keeping(&receipts, (self.work)(tasks)).await;
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

    /// Keeps the messages from others for as long as the work on them takes.
    async fn keeping<T>(&self, receipts: &[(Receipt, u32)], work: impl Future<Output = T>) -> T {
        let keep = async {
            loop {
                self.context().sleep(self.source.visibility() / 2).await;
                self.source.extend(receipts).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = keep => std::future::pending().await,
        }
    }

    /// Leaves a failing queue alone for a while; brings a vanished one back.
    async fn recover(&mut self, error: &Error, asked: Duration, failures: u32) {
        let (context, queue) = (Arc::clone(&self.source.context), &self.source.queue);
        if error.kind() == ErrorKind::NotFound {
            match context.restore(queue, asked).await {
                Ok(Made::There) => return,
                // Whoever listens here is told to stop soon.
                Ok(Made::NotNeeded) => {}
                Err(error) => {
                    warn!(%queue, error = %chain(&error), "could not make the queue again")
                }
            }
        } else {
            warn!(%queue, error = %chain(error), "could not receive, will retry");
        }
        if let Some(deaf) = &self.source.deaf {
            deaf();
        }
        let pause = context.jittered(pause_after(failures));
        tokio::select! {
            biased;
            () = self.stop.requested() => {}
            () = context.sleep(pause) => {}
        }
    }
}

/// Whether the tasks of a queue are about documents, for any worker; else they are about lanes.
fn is_stage(queue: &QueueName) -> bool {
    matches!(queue, QueueName::Partition | QueueName::Spread)
}

/// How long to wait after this many failures in a row.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(10);
    (PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

/// An error with all its sources, for a log line.
pub(crate) fn chain(error: &Error) -> String {
    format!("{error:?}")
}
