//! Takes a runtime; gives it running in a task of its own, with an end that says what is left.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tracing::warn;

use super::left::Left;
use super::runtime::Runtime;
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
    task: JoinHandle<Result<()>>,
}

impl Runtime {
    /// Works in a task of its own until it is drained. Has to be called within a tokio runtime.
    pub fn spawn(self) -> RuntimeHandle {
        let context = self.context();
        let (stop, stopped) = oneshot::channel::<()>();
        // Whoever only drops the handle does not want it to end.
        let shutdown = async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        RuntimeHandle { context, stop, task: tokio::spawn(self.run(shutdown)) }
    }
}

impl RuntimeHandle {
    /// Whether it is still at work.
    pub fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Waits for a failure that ends the runtime, which is a fault of Flare's: for ever, usually. For
    /// a `select!` beside the host's own work.
    pub async fn failed(&mut self) -> Error {
        match (&mut self.task).await {
            Ok(Err(error)) => error,
            Ok(Ok(())) => Error::new(ErrorKind::Internal, "run").detail("it ended by itself"),
            Err(ended) => died(ended),
        }
    }

    /// Takes no more work, finishes what is in flight, gives its lanes back; tells what is left to
    /// deliver, for the next runtime on these stores. What is in flight after `limit`, or after the
    /// [drain limit](crate::pipeline::Settings::drain_limit) if that is shorter, is dropped, and
    /// may be sent again.
    pub async fn drain(self, limit: Duration) -> Result<Left> {
        let Self { context, stop, mut task, .. } = self;
        // It has ended by itself, and the task says why.
        let _ = stop.send(());
        tokio::select! {
            biased;
            ended = &mut task => ended.map_err(died)??,
            () = context.sleep(limit) => {
                warn!(?limit, "flare did not drain in time");
                task.abort();
                // Its end is awaited, whatever it was at.
                let _ = task.await;
            }
        }
        Left::read(&context).await
    }

    /// Waits until every client has the newest version of everything, but no longer than `limit`,
    /// and drains then; tells what is left, if there was not time enough.
    pub async fn settle_and_drain(self, limit: Duration) -> Result<Left> {
        let give_up_at = self.context.clock.monotonic() + limit;
        match settled(&self.context, limit).await {
            Err(error) if error.kind() != ErrorKind::Timeout => return Err(error),
            _ => {}
        }
        let rest = give_up_at.saturating_sub(self.context.clock.monotonic());
        let least = self.context.settings.drain_limit.min(limit);
        self.drain(rest.max(least)).await
    }
}

fn died(ended: JoinError) -> Error {
    Error::new(ErrorKind::Internal, "run").detail("the runtime's task ended").source(ended)
}
