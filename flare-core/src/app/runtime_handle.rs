//! Takes a runtime; gives it running in a task of its own, with an end that says what is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tracing::warn;

use super::left::Left;
use super::runtime::{MARGIN, Runtime};
use super::settled::settled;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::context::Context;

/// A runtime at work, as [`Runtime::spawn`] gives it. Dropped, it lets the runtime work on.
///
/// ```
/// use std::time::Duration;
///
/// use flare_backend_memory::MemoryBackend;
/// use flare_core::prelude::*;
/// use flare_testkit::RecordingDelivery;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let delivery = std::sync::Arc::new(RecordingDelivery::default());
/// let (flare, runtime) = Flare::builder(MemoryBackend::new()).delivery(delivery.clone()).build()?;
/// let running = runtime.spawn();
/// let notes = NewResource::new("http://api.example/notes/{id}").change_field("rev");
/// let notes = flare.ensure_resource(notes).await?;
/// flare.ensure_subscription(notes.id, SubscriptionSpec::post("http://client.example/{id}")).await?;
/// flare.put_json(&notes.url(["1"])?, r#"{"rev":1}"#).await?;
///
/// let left = running.settle_and_drain(Duration::from_secs(10)).await?;
/// assert!(left.is_nothing(), "{left}");
/// assert_eq!(delivery.total(), 1);
/// # Ok::<(), Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "it tells of failures, and drains"]
pub struct RuntimeHandle {
    context: Arc<Context>,
    stop: oneshot::Sender<()>,
    work: Work,
}

/// A task, or what it ended with: it can be asked only once.
#[derive(Debug)]
enum Work {
    Running(JoinHandle<Result<()>>),
    Ended(Result<()>),
}

impl Work {
    /// Waits for its end; gives the same however often it is asked.
    async fn ended(&mut self) -> Result<()> {
        if let Self::Running(task) = self {
            let ended = task.await;
            *self = Self::Ended(ended.unwrap_or_else(|ended| Err(died(ended))));
        }
        match self {
            Self::Running(_) => Ok(()),
            Self::Ended(outcome) => outcome.clone(),
        }
    }

    fn abort(&self) {
        if let Self::Running(task) = self {
            task.abort();
        }
    }
}

impl Runtime {
    /// Works in a task of its own until it is drained. Has to be called within a tokio runtime.
    pub fn spawn(self) -> RuntimeHandle {
        let context = self.context();
        let (stop, stopped) = oneshot::channel::<()>();
        // A host that only drops the handle does not want it to end.
        let shutdown = async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let work = Work::Running(tokio::spawn(self.run(shutdown)));
        RuntimeHandle { context, stop, work }
    }
}

impl RuntimeHandle {
    /// Whether it is still at work.
    pub fn is_running(&self) -> bool {
        matches!(&self.work, Work::Running(task) if !task.is_finished())
    }

    /// Waits for a failure that ends the runtime, which is a fault of Flare's: for ever, usually. For
    /// a `select!` beside the host's own work.
    pub async fn failed(&mut self) -> Error {
        let ended = self.work.ended().await;
        ended.err().unwrap_or_else(|| {
            Error::new(ErrorKind::Internal, "run").with_detail("the runtime ended by itself")
        })
    }

    /// Takes no more work, finishes what is in flight, gives its lanes back; tells what is left to
    /// deliver, for the next runtime on these stores. What is in flight after `limit`, or after the
    /// [drain limit](crate::pipeline::Settings::drain_limit) if that is shorter, is dropped, and
    /// may be sent again. What else there is to end, and to count, has some seconds more.
    ///
    /// If there are other nodes, they take its slots over first, for at most half of that time.
    pub async fn drain(mut self, limit: Duration) -> Result<Left> {
        self.context.drain_limit.shorten(limit);
        // If it has ended by itself, it says why.
        let _ = self.stop.send(());
        let ended = tokio::select! {
            biased;
            ended = self.work.ended() => ended,
            () = self.context.sleep(limit.saturating_add(MARGIN)) => {
                warn!(?limit, "flare did not drain in time");
                self.work.abort();
                // Whatever it was at: it was told to drop it.
                drop(self.work.ended().await);
                Ok(())
            }
        };
        ended?;
        Left::read(&self.context).await.map_err(|error| error.during("drain"))
    }

    /// Waits until every client has the newest version of everything, but no longer than `limit`,
    /// and drains then; tells what is left, if there was not time enough.
    pub async fn settle_and_drain(mut self, limit: Duration) -> Result<Left> {
        let context = Arc::clone(&self.context);
        let give_up_at = context.clock.monotonic().saturating_add(limit);
        let settled = tokio::select! {
            biased;
            ended = self.work.ended() => ended,
            settled = settled(&context, limit) => settled,
        };
        let rest = give_up_at.saturating_sub(context.clock.monotonic());
        let left = self.drain(rest.max(context.settings.drain_limit.min(limit))).await;
        match settled {
            Err(error) if error.kind() != ErrorKind::Timeout => Err(error),
            _ => left,
        }
    }
}

fn died(ended: JoinError) -> Error {
    Error::new(ErrorKind::Internal, "run")
        .with_detail("the runtime's task ended")
        .with_source(ended)
}
