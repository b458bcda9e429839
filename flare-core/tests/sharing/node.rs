//! Takes a runtime of Flare; gives it a thread of its own to think it has, so that it can be frozen,
//! and dropped with all it does, from one moment to the next.

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
}

impl Node {
    pub(crate) fn start(flare: Flare, runtime: Runtime) -> Self {
        let tasks = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tasks.spawn(runtime.run(async move { drop(stopped.await) }));
        Self { flare, frozen: false, stop: Some(stop), running, tasks }
    }

    /// Lets everything in it run that can, unless it is frozen.
    pub(crate) fn turns(&self, count: u32) {
        if !self.frozen {
            self.tasks.block_on(async {
                for _ in 0..count {
                    tokio::task::yield_now().await;
                }
            });
        }
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
