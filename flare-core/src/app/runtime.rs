//! Takes the context; gives the loops that spread and deliver, started and stopped together.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::left::Left;
use super::scripted::{Script, follow};
use super::settled::others_work;
use super::sharing::{SlotWorkers, share_slots, tell_both};
use crate::cluster::ClusterMember;
use crate::error::{Error, ErrorKind, Result};
use crate::ownership::SlotChange;
use crate::pipeline::beside::announce_puts_beside;
use crate::pipeline::consumers::Consumers;
use crate::pipeline::context::Context;
use crate::pipeline::crew::{self, Stage};
use crate::pipeline::ingest::Ingest;
use crate::pipeline::jobs;
use crate::pipeline::lanes::Lanes;
use crate::pipeline::reconcile::reconcile;
use crate::pipeline::stage::chain;
use crate::pipeline::stop::{Stop, Stopper, stop};
use crate::pipeline::store_clock::keep_time;

/// Beyond the lanes' own limit: what the other loops may take to end.
pub(super) const MARGIN: Duration = Duration::from_secs(5);
/// How long is waited for what is left to be counted.
const COUNTING: Duration = Duration::from_secs(1);

/// The work behind a [`Flare`](crate::Flare): nothing is delivered unless it runs.
///
/// Dropping the future of [`run`](Self::run) ends everything at once; nothing accepted is lost,
/// but what was in flight may be sent again. Ending it by its `shutdown` is kinder.
#[derive(Debug)]
#[must_use = "nothing is delivered unless the runtime runs"]
pub struct Runtime {
    context: Arc<Context>,
    ingest: Arc<Ingest>,
    member: ClusterMember,
    unused: Unused,
}

/// A runtime that has not begun, and says so when it is dropped.
#[derive(Debug)]
struct Unused {
    is_fine: bool,
}

impl Drop for Unused {
    fn drop(&mut self) {
        if !self.is_fine {
            warn!(
                "a runtime was dropped and never ran: nothing is delivered, unless another one runs \
                 on the same stores"
            );
        }
    }
}

/// Where a runtime learns which slots are its own.
type Changes = mpsc::Sender<SlotChange>;

/// What a runtime takes part in.
#[derive(Debug, Clone, Copy)]
struct RuntimePart {
    /// It spreads changes and does stored jobs.
    works: bool,
}

impl RuntimePart {
    const ALL: Self = Self { works: true };
}

/// Says that a runtime runs, for as long as it does.
struct RunningSign(Arc<Context>);

impl RunningSign {
    fn new(context: Arc<Context>) -> Self {
        context.progress.set_running(true);
        Self(context)
    }
}

impl Drop for RunningSign {
    fn drop(&mut self) {
        self.0.progress.set_running(false);
    }
}

impl Runtime {
    pub(super) fn new(context: Arc<Context>, ingest: Arc<Ingest>, member: ClusterMember) -> Self {
        Self { context, ingest, member, unused: Unused { is_fine: false } }
    }

    /// Works until `shutdown` is ready, then takes no more work, finishes what is in flight
    /// within the drain limit and gives its lanes back.
    ///
    /// If there are other nodes, it first has them take its slots over.
    ///
    /// Any future does for `shutdown`, `tokio::signal::ctrl_c()` for instance; what it gives is not
    /// looked at. See [`spawn`](Self::spawn) for a runtime in a task of its own.
    pub async fn run<T>(self, shutdown: impl Future<Output = T> + Send) -> Result<()> {
        self.start().work_until(Box::pin(async { drop(shutdown.await) })).await
    }

    /// Says that it is not needed: another process works on the same stores, and this one only takes
    /// documents. Dropped without that, the log has a warning.
    pub fn unused(mut self) {
        self.unused.is_fine = true;
    }

    pub(super) fn context(&self) -> Arc<Context> {
        Arc::clone(&self.context)
    }

    /// As [`run`](Self::run), with slots granted and taken away by a test.
    #[doc(hidden)]
    pub async fn run_scripted(
        self,
        script: mpsc::Receiver<Script>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        self.start_scripted(script).work_until(Box::pin(shutdown)).await
    }

    /// Starts all loops. Like all that follows it is neither generic nor async, so that it is compiled
    /// once, here, and not by every host that runs it.
    fn start(self) -> Working {
        let Self { context, ingest, member, mut unused } = self;
        unused.is_fine = true;
        let part = RuntimePart { works: member.settings().roles.works };
        let own = |context, changes, workers, stop| {
            share_slots(member, context, changes, workers, stop).boxed()
        };
        start_owning(context, ingest, own, part)
    }

    fn start_scripted(self, script: mpsc::Receiver<Script>) -> Working {
        let Self { context, ingest, mut unused, .. } = self;
        unused.is_fine = true;
        let own = |context, changes, _, stop| follow(script, context, changes, stop).boxed();
        start_owning(context, ingest, own, RuntimePart::ALL)
    }
}

fn start_owning(
    context: Arc<Context>,
    ingest: Arc<Ingest>,
    own: impl FnOnce(Arc<Context>, Changes, SlotWorkers, Stop) -> BoxFuture<'static, ()>,
    part: RuntimePart,
) -> Working {
    let (stopper, stop) = stop();
    let (changes, ownership) = mpsc::channel(4);
    let (lane_changes, lane_ownership) = mpsc::channel(4);
    let (consumer_changes, consumer_ownership) = mpsc::channel(4);
    let lanes = Lanes::new(Arc::clone(&context));
    let consumers = Consumers::new(Arc::clone(&context), ingest);
    let workers = SlotWorkers { lanes: lanes.handle(), consumers: consumers.handle() };
    let own = own(Arc::clone(&context), changes, workers, stop.clone());
    let mut loops = JoinSet::new();
    if part.works {
        start_stages(&context, &mut loops, &stop);
    }
    #[cfg(feature = "metrics")]
    loops.spawn(crate::pipeline::meter::sample(Arc::clone(&context), stop.clone()));
    loops.spawn(tell_both(ownership, lane_changes, consumer_changes));
    loops.spawn(lanes.run(lane_ownership));
    loops.spawn(consumers.run(consumer_ownership));
    loops.spawn(keep_time(Arc::clone(&context), stop.clone()));
    let (audit, mut told_until) = (context.audit.clone(), stop.clone());
    loops.spawn(async move { audit.serve(told_until.requested()).await });
    loops.spawn(once_time_is_known(Arc::clone(&context), stop, own));
    let running = RunningSign::new(Arc::clone(&context));
    Working { context, loops, stopper, _running: running }
}

/// What any node may do for all of them.
fn start_stages(context: &Arc<Context>, loops: &mut JoinSet<()>, stop: &Stop) {
    for stage in [Stage::Partition, Stage::Spread] {
        crew::start(context, stage, loops, stop);
    }
    loops.spawn(reconcile(Arc::clone(context), stop.clone()));
    if context.repository.facts().puts_beside {
        loops.spawn(announce_puts_beside(Arc::clone(context), stop.clone()));
    }
    loops.spawn(jobs::run(Arc::clone(context), stop.clone()));
}

/// Takes part in sharing slots as soon as the store has said what time it is: by that all that is stored
/// is due. A node that cannot ask it could not work a lane either.
async fn once_time_is_known(context: Arc<Context>, mut stop: Stop, own: BoxFuture<'static, ()>) {
    tokio::select! {
        biased;
        () = stop.requested() => {}
        () = context.store_clock.known() => own.await,
    }
}

/// A runtime whose loops were started.
struct Working {
    context: Arc<Context>,
    loops: JoinSet<()>,
    stopper: Stopper,
    /// Also when this is dropped.
    _running: RunningSign,
}

impl Working {
    fn work_until(self, mut shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, Result<()>> {
        let work = async move {
            // All of it, also what is only held.
            let Self { context, mut loops, stopper, _running } = self;
            info!("flare runs");
            let ended = tokio::select! {
                biased;
                () = &mut shutdown => None,
                ended = loops.join_next() => ended,
            };
            // A loop never ends by itself: if one does, that is a fault of ours, and the host learns it.
            let outcome = match ended {
                None => Ok(()),
                Some(ended) => {
                    let fault = Error::new(ErrorKind::Internal, "run")
                        .with_detail("a loop ended by itself");
                    Err(match ended {
                        Ok(()) => fault,
                        Err(panic) => fault.with_source(panic),
                    })
                }
            };
            info!("flare drains");
            stopper.stop();
            let drained = async { while loops.join_next().await.is_some() {} };
            tokio::select! {
                biased;
                () = drained => {
                    context.audit.flush(COUNTING).await;
                    say_what_is_left(&context).await;
                }
                () = context.sleep(context.settings.drain_limit + MARGIN) => warn!("flare did not drain in time"),
            }
            outcome
        };
        work.boxed()
    }
}

/// So that no host has to find out later that something was not delivered.
async fn say_what_is_left(context: &Context) {
    let counted = tokio::select! {
        biased;
        counted = Left::counted(context) => Some(counted),
        () = context.sleep(COUNTING) => None,
    };
    match counted {
        Some(Ok(left)) if left.is_nothing() => info!("flare is drained, and nothing is left"),
        Some(Ok(Left { spreading, backfills, pending, .. })) if others_work(context).await => {
            info!(
                spreading,
                pending, backfills, "flare is drained; others go on with what is left"
            );
        }
        Some(Ok(Left { spreading, backfills, pending, .. })) => warn!(
            spreading,
            pending,
            backfills,
            "flare is drained; what is left waits for the next runtime on these stores"
        ),
        Some(Err(error)) => {
            warn!(error = %chain(&error), "flare is drained; what is left could not be counted");
        }
        None => warn!("flare is drained; what is left could not be counted in time"),
    }
}
