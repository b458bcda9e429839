//! Takes a runtime of Flare; gives it a thread of its own to think it has, so that it can be frozen,
//! and dropped with all it does, from one moment to the next.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use flare_core::{Flare, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// One node of a cluster, as a process of its own would be.
pub(crate) struct Node {
    pub(crate) flare: Flare,
    pub(crate) frozen: bool,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<flare_core::Result<()>>,
    /// All tasks of the node and no others.
    tasks: tokio::runtime::Runtime,
    /// Whether none of them can run.
    idle: Arc<AtomicBool>,
}

impl Node {
    pub(crate) fn start(flare: Flare, runtime: Runtime) -> Self {
        let idle = Arc::<AtomicBool>::default();
        let parks = Arc::clone(&idle);
        let tasks = tokio::runtime::Builder::new_current_thread()
            .on_thread_park(move || parks.store(true, Ordering::Relaxed))
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tasks.spawn(runtime.run(async move { drop(stopped.await) }));
        Self { flare, frozen: false, stop: Some(stop), running, tasks, idle }
    }

    /// Lets everything in it run that can, for so many turns at most, unless it is frozen.
    pub(crate) fn turns(&self, count: u32) {
        if self.frozen {
            return;
        }
        self.idle.store(false, Ordering::Relaxed);
        let mut left = count;
        self.tasks.block_on(poll_fn(|context| {
            if left == 0 || self.idle.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
    }

    /// Asks it to end.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.running.is_finished()
    }
}
