//! Takes what the store knows to be undispatched; gives it to the partition stage again. Finds
//! every change whose task was lost, or whose sender died in between, and finishes the move of a
//! document before anybody is told of it. One node at a time does it (`claim`); what counts as lost is decided by plain functions (`patience`). A queue that was made
//! again has it look at once.

mod claim;
mod patience;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tracing::{info, warn};

use self::claim::ReconcileClaim;
use self::patience::{Looks, Waiting};
use super::context::Context;
use super::ingest::announce;
use super::moves::finish_found;
use super::progress::Pulse;
use super::stage::{chain, pause_after};
use super::stop::Stop;
use crate::error::{ErrorKind, Result};
use crate::model::Timestamp;
use crate::port::{QueueDepth, QueueName, Undispatched};

/// Changes announced at a time.
const PAGE: usize = 500;
/// How long the store may take to hear that this node reconciles no more.
const LEAVING: Duration = Duration::from_secs(1);

/// Why the reconciler looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookReason {
    /// This node starts: if no task waits anywhere, all that is undispatched is lost.
    Start,
    /// A queue was made again, so that whatever was in it is lost.
    Lost,
    /// It is time to.
    Regular,
}

/// Looks for lost changes at the start and then in regular intervals, while this node is the one
/// that does.
pub(crate) async fn reconcile(context: Arc<Context>, mut stop: Stop) {
    let every = context.settings.reconcile_every;
    let pulse = context.pulse("reconcile");
    let mut reconciler = Reconciler::new(&context, &pulse);
    let (mut reason, mut failures) = (LookReason::Start, 0);
    loop {
        pulse.works();
        let round = tokio::select! {
            biased;
            () = stop.requested() => break,
            round = reconciler.turn(reason) => round,
        };
        let pause = match round {
            Ok(found) => {
                pulse.rests();
                if found > 0 {
                    info!(found, "announced changes that were not spread yet");
                }
                (reason, failures) = (LookReason::Regular, 0);
                every
            }
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not look for lost changes");
                every.min(pause_after(failures))
            }
        };
        tokio::select! {
            biased;
            () = stop.requested() => break,
            () = context.tasks_lost.notified() => reason = LookReason::Lost,
            () = context.sleep(context.jittered(pause)) => {}
        }
    }
    tokio::select! {
        biased;
        () = reconciler.claim.leave() => {}
        () = context.sleep(LEAVING) => {}
    }
}

struct Reconciler<'a> {
    context: &'a Context,
    pulse: &'a Pulse,
    claim: ReconcileClaim<'a>,
    looks: Looks,
}

impl<'a> Reconciler<'a> {
    fn new(context: &'a Context, pulse: &'a Pulse) -> Self {
        Self { context, pulse, claim: ReconcileClaim::new(context), looks: Looks::default() }
    }

    /// Announces what was lost, if this node is the one that looks; tells how much that was.
    async fn turn(&mut self, reason: LookReason) -> Result<usize> {
        let held = self.claim.keep().await?;
        if !held {
            let taken = match reason {
                LookReason::Regular => self.claim.take_if_free().await?,
                // Another node may hold the claim and know nothing of it.
                LookReason::Lost => self.claim.take().await?,
                LookReason::Start => {
                    self.claim.take_if_free().await?
                        || (self.waiting().await?.is_nothing() && self.claim.take().await?)
                }
            };
            if !taken {
                return Ok(0);
            }
            self.looks = Looks::since(self.context.now());
        }
        self.look(reason == LookReason::Lost).await
    }

    /// Announces what counts as lost, or everything.
    async fn look(&mut self, everything: bool) -> Result<usize> {
        let (now, every) = (self.context.now(), self.context.settings.reconcile_every);
        let until = if everything { Timestamp::MAX } else { self.looks.until(now, every) };
        let mut pages = self.context.repository.undispatched(until).chunks(PAGE);
        let (mut waiting, mut found) = (None, 0);
        while let Some(page) = pages.next().await {
            let mut readable = Vec::with_capacity(page.len());
            for read in page {
                readable.extend(self.context.if_readable(read)?);
            }
            // Where nothing is undispatched the queues need not be asked.
            let waiting = match &waiting {
                Some(waiting) => waiting,
                None => waiting.insert(self.waiting().await?),
            };
            if !everything && !self.looks.is_worth_it(waiting, now, every) {
                return Ok(found);
            }
            let lost = |change: &Undispatched| {
                everything || self.looks.finds_lost(change, waiting, now, every)
            };
            let lost: Vec<Undispatched> = readable.into_iter().filter(lost).collect();
            if lost.is_empty() {
                continue;
            }
            // The node that has taken the claim meanwhile announces them.
            if !self.claim.keep().await? {
                return Ok(found);
            }
            found += lost.len();
            announce(self.context, finish_found(self.context, lost).await).await?;
            self.pulse.advances();
        }
        self.looks.looked(&waiting.unwrap_or_default(), now);
        Ok(found)
    }

    /// What is in the queues of both stages. The first stage is asked first: what leaves it is in
    /// the second before.
    async fn waiting(&self) -> Result<Waiting> {
        let partition = self.depth(&QueueName::Partition).await?;
        Ok(Waiting { partition, spread: self.depth(&QueueName::Spread).await? })
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        match self.context.queue.depth(queue).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(QueueDepth::default()),
            depth => depth,
        }
    }
}
