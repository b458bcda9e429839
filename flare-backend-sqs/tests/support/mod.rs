//! What every trial needs: queues of its own on the real server, gone afterwards.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod isolated;
pub(crate) mod own_server;
mod stub;
pub(crate) mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_smithy_http_client::Builder;
use flare_backend_sqs::SqsConfig;
pub(crate) use isolated::Isolated;
pub(crate) use stub::{Seen, Stub};

/// SQS without Flare in between.
pub(crate) fn raw(endpoint: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"));
    Client::from_conf(config.build())
}

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
        // As long as any other: none is the beginning of another one, whose queues would go with its own.
        let prefix = format!("t-{:x}-{now:x}-{count:05}", std::process::id());
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
        let (endpoint, prefix) = (self.endpoint.clone(), self.prefix.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let client = raw(&endpoint);
                let list = client.list_queues().queue_name_prefix(&prefix).send().await?;
                for url in list.queue_urls.unwrap_or_default() {
                    client.delete_queue().queue_url(url).send().await?;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not delete {}: {error}", self.prefix);
        }
    }
}
