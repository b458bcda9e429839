//! Takes a queue and what to do with its tasks; gives a loop that takes batches, works on them
//! and settles each, until told to stop. A full stage stops its source: nothing is taken before
//! the batch at hand is done.

use std::sync::Arc;
use std::time::Duration;

use tracing::{debug, warn};

use super::context::Context;
use super::progress::Pulse;
use super::stop::Stop;
use super::task::Task;
use crate::error::{Error, ErrorKind, Result};
use crate::port::{Incoming, QueueExt, QueueName, Receive, Settlement};

/// How long a batch is the stage's alone; far beyond what one takes.
const VISIBILITY: Duration = Duration::from_secs(60);
/// How long to wait for a first message.
const WAIT: Duration = Duration::from_secs(20);
/// How long to leave a failing store or queue alone.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Works on the tasks of one queue.
pub(crate) async fn consume<W>(
    context: Arc<Context>,
    queue: QueueName,
    pulse: Pulse,
    mut stop: Stop,
    work: W,
) where
    W: AsyncFn(Vec<Task>) -> Vec<Result<()>>,
{
    let request = Receive::new(context.settings.batch, VISIBILITY).wait(WAIT);
    let mut failures = 0;
    while !stop.is_requested() {
        let received = tokio::select! {
            biased;
            () = stop.requested() => return,
            received = context.queue.receive(&queue, request) => received,
        };
        match received {
            Ok(messages) => {
                failures = 0;
                if !messages.is_empty() {
                    pulse.works(context.now());
                    handle(&context, &queue, messages, &work).await;
                }
                pulse.rests(context.now());
            }
            Err(error) => {
                failures += 1;
                // There may be any amount of work that it cannot see.
                pulse.works(context.now());
                recover(&context, &queue, &error, failures, &mut stop).await;
            }
        }
    }
}

async fn handle<W>(context: &Context, queue: &QueueName, messages: Vec<Incoming>, work: &W)
where
    W: AsyncFn(Vec<Task>) -> Vec<Result<()>>,
{
    let mut tasks = Vec::with_capacity(messages.len());
    let mut receipts = Vec::with_capacity(messages.len());
    let mut settlements = Vec::with_capacity(messages.len());
    for message in messages {
        match Task::decode(&message.payload) {
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
    if !tasks.is_empty() {
        let results = work(tasks).await;
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
    }
    for unsettled in context.queue.settle_all(queue, settlements).await {
        if let Err(unsettled) = unsettled {
            // It comes back when its visibility ends, and finds its work done.
            debug!(%queue, error = %chain(&unsettled.error), "could not settle a message");
        }
    }
}

/// Leaves a failing queue alone for a while; brings a vanished one back.
async fn recover(
    context: &Context,
    queue: &QueueName,
    error: &Error,
    failures: u32,
    stop: &mut Stop,
) {
    if error.kind() == ErrorKind::NotFound {
        match context.queue.create(queue).await {
            Ok(()) => return,
            Err(error) => warn!(%queue, error = %chain(&error), "could not create the queue"),
        }
    } else {
        warn!(%queue, error = %chain(error), "could not receive, will retry");
    }
    let pause = context.jittered(pause_after(failures));
    tokio::select! {
        biased;
        () = stop.requested() => {}
        () = context.sleep(pause) => {}
    }
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
