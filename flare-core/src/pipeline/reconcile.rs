//! Takes what the store knows to be undispatched; gives it to the partition stage again. Finds
//! every change whose task was lost, or whose sender died in between, and finishes the move of a
//! document before anybody is told of it. A queue that was made again
//! has it look at once.

use std::sync::Arc;

use futures::StreamExt;
use tracing::{info, warn};

use super::context::Context;
use super::ingest::announce;
use super::moves::finish_found;
use super::stage::chain;
use super::stop::Stop;
use crate::error::{ErrorKind, Result};
use crate::model::Timestamp;
use crate::port::{QueueName, Undispatched};

/// Changes announced at a time.
const PAGE: usize = 500;
/// More than this many messages waiting: the stage is behind, not the queue lossy.
const BUSY: u64 = 1_000;

/// Looks for lost changes at the start and then in regular intervals.
pub(crate) async fn reconcile(context: Arc<Context>, mut stop: Stop) {
    let every = context.settings.reconcile_every;
    // At the start nobody of ours is working on anything: all of it counts as lost.
    let mut until = Timestamp::MAX;
    let mut ahead = None;
    let pulse = context.pulse("reconcile");
    loop {
        pulse.works(context.now());
        let round = tokio::select! {
            biased;
            () = stop.requested() => return,
            round = sweep(&context, until) => round,
        };
        if round.is_ok() {
            pulse.rests(context.now());
        }
        match round {
            Ok(0) => {}
            Ok(found) => info!(found, "announced changes that were not spread yet"),
            Err(error) => warn!(error = %chain(&error), "could not look for lost changes"),
        }
        let lost = tokio::select! {
            biased;
            () = stop.requested() => return,
            () = context.tasks_lost.notified() => true,
            () = context.sleep(context.jittered(every)) => false,
        };
        if lost {
            until = Timestamp::MAX;
            continue;
        }
        if ahead.is_none() {
            ahead = store_ahead(&context).await;
        }
        // The store judges by its own clock how old a change is.
        let now = context.now().unix_nanos().saturating_add(ahead.unwrap_or(0));
        until = Timestamp::from_unix_nanos(now) - every;
    }
}

/// How far the store's clock is ahead of ours, in nanoseconds. Costs an epoch, so it is asked once.
async fn store_ahead(context: &Context) -> Option<i64> {
    let before = context.now();
    match context.repository.next_epoch().await {
        Ok(drawn) => Some(drawn.at.unix_nanos().saturating_sub(before.unix_nanos())),
        Err(error) => {
            warn!(error = %chain(&error), "could not ask for the store's time");
            None
        }
    }
}

/// Announces everything undispatched that was stored by `until`.
async fn sweep(context: &Context, until: Timestamp) -> Result<usize> {
    match context.queue.depth(&QueueName::Partition).await {
        Ok(depth) if depth.ready > BUSY => return Ok(0),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut found = 0;
    let mut pages = context.repository.undispatched(until).chunks(PAGE);
    while let Some(page) = pages.next().await {
        let page: Vec<Undispatched> = page.into_iter().collect::<Result<_>>()?;
        found += page.len();
        announce(context, finish_found(context, page).await).await?;
    }
    Ok(found)
}
