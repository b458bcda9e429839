//! Takes jobs that are due; gives each a turn, one after the other, for as long as the runtime
//! runs. A job that fails, panics or is unknown here is left for later and stops no other.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tracing::{Instrument, debug, debug_span, warn};

use super::backfill::{self, BackfillWindows};
use super::held::{ClaimedJob, Ended, Next};
use super::{AT_ONCE, ask, expire, queues, resource, subscription};
use crate::error::{Error, ErrorKind, Result, Retry};
use crate::model::{Epoch, Job, JobId, JobKind, Timestamp};
use crate::observe;
use crate::pipeline::context::Context;
use crate::pipeline::progress::Pulse;
use crate::pipeline::stage::{chain, pause_after};
use crate::pipeline::stop::Stop;

/// Jobs read at a time.
const DUE: usize = 32;
/// Jobs whose failures are remembered; beyond it counting starts anew.
const REMEMBERED: usize = 1_024;

/// Works stored jobs until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let pulse = context.pulse("jobs");
    let mut runner = JobRunner::new(&context, &pulse);
    loop {
        pulse.works();
        // Dropped wherever it is: the runtime that takes the job next goes on.
        tokio::select! {
            biased;
            () = stop.requested() => return,
            looked = runner.look() => {
                if looked {
                    pulse.rests();
                }
            }
        }
        tokio::select! {
            biased;
            () = stop.requested() => return,
            () = context.jobs_asked.notified() => {}
            () = context.sleep(runner.pause()) => {}
        }
    }
}

struct JobRunner<'a> {
    context: &'a Context,
    pulse: &'a Pulse,
    /// Drawn when first needed, and anew whenever another runtime has a greater one.
    epoch: Option<Epoch>,
    /// When to see next that the job that comes round is there.
    recurring_at: Timestamp,
    /// How often a job failed in a row.
    failures: HashMap<JobId, u32>,
    /// How soon one of the jobs wants its next turn.
    soonest: Option<Duration>,
    windows: BackfillWindows,
}

impl<'a> JobRunner<'a> {
    fn new(context: &'a Context, pulse: &'a Pulse) -> Self {
        let (epoch, failures, soonest) = (None, HashMap::new(), None);
        let (recurring_at, windows) = (Timestamp::EPOCH, BackfillWindows::default());
        Self { context, pulse, epoch, recurring_at, failures, soonest, windows }
    }

    /// How long to rest: until a job wants its next turn, or until it is time to look for others.
    fn pause(&mut self) -> Duration {
        let usual = self.context.jittered(self.context.settings.jobs_every);
        self.soonest.take().map_or(usual, |soonest| soonest.min(usual))
    }

    /// Works all that is due; tells whether that could be done.
    async fn look(&mut self) -> bool {
        loop {
            match self.round().await {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    warn!(error = %chain(&error), "could not look for jobs, will retry");
                    return false;
                }
            }
        }
    }

    /// Gives every job that is due a turn; tells whether to look again at once.
    async fn round(&mut self) -> Result<bool> {
        // Before the jobs are read: what is due is told by the store's time.
        let now = self.context.time().await?;
        self.recur().await?;
        let mut moved = false;
        let due = self.context.repository.due_jobs(now, DUE);
        let due = self.context.all_readable(due).await?;
        // Reconciling has a loop of its own, so that no long job keeps a lost change waiting.
        for job in due.into_iter().filter(|job| job.kind != JobKind::Reconcile) {
            moved |= self.work(job).await?;
            self.pulse.advances();
        }
        Ok(moved)
    }

    /// Makes sure of the job that comes round: at the start, and as often as it does, for a store
    /// may have lost it.
    async fn recur(&mut self) -> Result<()> {
        let now = self.context.now();
        if now >= self.recurring_at {
            ask(self.context, JobKind::Expire, expire::SUBJECT, AT_ONCE).await?;
            self.recurring_at = now + self.context.settings.expire_every;
        }
        Ok(())
    }

    async fn epoch(&mut self) -> Result<Epoch> {
        match self.epoch {
            Some(epoch) => Ok(epoch),
            None => Ok(*self.epoch.insert(self.context.repository.next_epoch().await?.epoch)),
        }
    }

    /// Has a turn at a job; tells whether it moved on.
    async fn work(&mut self, job: Job) -> Result<bool> {
        let (id, kind, subject) = (job.id, job.kind, job.subject);
        let epoch = self.epoch().await?;
        let mut held = match ClaimedJob::take(self.context, epoch, id).await {
            Ok(held) => held,
            Err(Ended::Taken) => return Ok(self.overtaken()),
            Err(Ended::Failed(error)) => return Err(error),
        };
        let span = debug_span!(observe::JOB, ?kind, subject);
        let outcome = guarded(turn(&mut held, &mut self.windows)).instrument(span).await;
        let stored = match outcome {
            Ok(Next::Done) => held.finish().await,
            Ok(Next::GoOn) => {
                let cursor = held.job().cursor.clone();
                held.leave(cursor, std::time::Duration::ZERO).await
            }
            Ok(Next::Later { cursor, after }) => {
                self.soonest = Some(self.soonest.map_or(after, |soonest| soonest.min(after)));
                held.leave(cursor, after).await
            }
            Err(Ended::Taken) => Err(Ended::Taken),
            Err(Ended::Failed(error)) => {
                let mut after = self.context.jittered(pause_after(self.failed(id)));
                if let Retry::After(time) = error.retryable() {
                    after = after.max(time);
                }
                warn!(?kind, subject, ?after, error = %chain(&error), "job failed, will retry");
                let cursor = held.job().cursor.clone();
                return match held.leave(cursor, after).await {
                    Err(Ended::Taken) => Ok(self.overtaken()),
                    // If not even that can be stored, it comes back when our claim lapses.
                    Ok(()) | Err(Ended::Failed(_)) => Ok(false),
                };
            }
        };
        match stored {
            Ok(()) => {
                debug!(?kind, subject, "had a turn at a job");
                self.failures.remove(&id);
                Ok(true)
            }
            Err(Ended::Taken) => Ok(self.overtaken()),
            Err(Ended::Failed(error)) => {
                warn!(?kind, subject, error = %chain(&error), "could not store how far a job is");
                Ok(false)
            }
        }
    }

    /// A runtime with a greater epoch has the job, or finished it: the next one is taken under a
    /// greater one still.
    fn overtaken(&mut self) -> bool {
        self.epoch = None;
        false
    }

    fn failed(&mut self, id: JobId) -> u32 {
        if self.failures.len() >= REMEMBERED {
            self.failures.clear();
        }
        let failures = self.failures.entry(id).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }
}

async fn turn(held: &mut ClaimedJob<'_>, windows: &mut BackfillWindows) -> Result<Next, Ended> {
    match held.job().kind {
        JobKind::RemoveSubscription => subscription::remove(held).await,
        JobKind::RemoveResource => resource::remove(held).await,
        JobKind::Expire => expire::expire(held).await,
        JobKind::Queue => queues::align(held).await,
        JobKind::Backfill | JobKind::Resync => backfill::turn(held, windows).await,
        JobKind::Migrate | JobKind::Reconcile => {
            // A newer runtime on the same stores may know it.
            let error = Error::new(ErrorKind::Unsupported, "job");
            Err(error.with_detail("this version does not know how to do this").into())
        }
    }
}

/// Turns a panic into a failure like any other.
async fn guarded<T>(work: impl Future<Output = Result<T, Ended>>) -> Result<T, Ended> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let error =
            Error::new(ErrorKind::Internal, "job").with_detail(format!("it panicked: {said}"));
        Err(error.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_failure_like_any_other() {
        let ended = guarded::<()>(async { panic!("no {}", "way") }).await.unwrap_err();
        let Ended::Failed(error) = ended else { panic!("{ended:?}") };
        assert_eq!(error.to_string(), "job: internal: it panicked: no way");
        assert!(matches!(guarded(async { Ok(Next::Done) }).await, Ok(Next::Done)));
    }
}
