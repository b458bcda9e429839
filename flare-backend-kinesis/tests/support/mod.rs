//! What every trial needs: a stream of its own on the emulator, gone afterwards, and ways to Kinesis that can be cut or
//! that say what a script says.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "helpers of tests"
)]

mod proxy;
mod script;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_kinesis::primitives::Blob;
use aws_smithy_http_client::Builder;
use flare_backend_kinesis::{KinesisConfig, KinesisConnector};
use flare_core::Result;
use flare_core::model::{Checkpoint, ConsumerId, SourceSettings};
use flare_core::port::{Source, SourceConnector, SourceOpening};
pub(crate) use proxy::Proxy;
pub(crate) use script::{Asked, Script};
use serde_json::json;

/// Kinesis without Flare in between.
pub(crate) fn raw(endpoint: &str) -> Client {
    let config = aws_sdk_kinesis::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(Builder::new().build_http())
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"));
    Client::from_conf(config.build())
}

/// A stream that no other trial uses.
#[derive(Debug)]
pub(crate) struct Scratch {
    endpoint: String,
    pub(crate) client: Client,
    pub(crate) stream: String,
}

impl Scratch {
    pub(crate) async fn new(endpoint: &str, shards: i32) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let stream = format!("t-{:x}-{now:x}-{count}", std::process::id());
        let client = raw(endpoint);
        client.create_stream().stream_name(&stream).shard_count(shards).send().await.unwrap();
        Self { endpoint: endpoint.to_owned(), client, stream }
    }

    /// Puts records, those of one key in this order.
    pub(crate) async fn put(&self, key: &str, body: impl Into<Vec<u8>>) {
        let data = Blob::new(body.into());
        let put = self.client.put_record().stream_name(&self.stream).partition_key(key).data(data);
        put.send().await.unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (endpoint, stream) = (self.endpoint.clone(), self.stream.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let deleted = raw(&endpoint).delete_stream().stream_name(stream).send().await;
                deleted.map(drop).map_err(Box::new)
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not delete {}: {error}", self.stream);
        }
    }
}

/// Opens a source on a stream, from its oldest record or these places on.
pub(crate) async fn open(
    endpoint: &str,
    stream: &str,
    from: &str,
    checkpoints: Vec<Checkpoint>,
) -> Result<Arc<dyn Source>> {
    // Tests share their machine, so a call may take long.
    let config = KinesisConfig::new()
        .endpoint(endpoint)
        .region("us-east-1")
        .credentials("test", "test")
        .timeout(Duration::from_secs(60))
        .attempts(2)
        .backoff(Duration::from_millis(20))
        .poll_every(Duration::from_millis(50));
    let settings = json!({"stream": stream, "from": from});
    let settings = SourceSettings::new("kinesis", settings).unwrap();
    let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
    KinesisConnector::new(config).open(opening.checkpoints(checkpoints)).await
}
