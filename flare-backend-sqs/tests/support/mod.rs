//! What every trial needs: queues of its own on the real server, gone afterwards.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::port::Queue;
use futures::TryStreamExt;

/// A prefix that nobody else uses; its queues are deleted with it.
#[derive(Debug)]
pub(crate) struct Scratch {
    endpoint: String,
    pub(crate) prefix: String,
}

impl Scratch {
    pub(crate) fn new(endpoint: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("t-{:x}-{now:x}-{count}", std::process::id());
        Self { endpoint: endpoint.to_owned(), prefix }
    }

    /// How to reach them.
    pub(crate) fn config(&self) -> SqsConfig {
        // Tests share their machine, so a call may take long.
        SqsConfig::new()
            .endpoint(&self.endpoint)
            .region("us-east-1")
            .credentials("test", "test")
            .prefix(&self.prefix)
            .timeout(Duration::from_secs(60))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let config = self.config();
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let queue = SqsQueue::connect(config).await?;
                let left: Vec<_> = queue.list().try_collect().await?;
                for name in &left {
                    queue.delete(name).await?;
                }
                Ok::<_, flare_core::Error>(())
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not delete {}: {error}", self.prefix);
        }
    }
}
