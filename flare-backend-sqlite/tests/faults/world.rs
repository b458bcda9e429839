//! What most of these tests begin with: a Flare on a file, a kind of document, and a client.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_sqlite::{SqliteBackend, SqliteConfig};
use flare_core::model::{DocumentChange, NewResource, SubscriptionSpec};
use flare_core::{Flare, Result, Runtime, Settings};
use flare_testkit::RecordingDelivery;

/// The URL of a document.
pub(crate) fn url(name: &str) -> String {
    format!("http://api.example/docs/{name}")
}

/// Runs to the end on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Settings of a host that is never told to come back later: what is tried is the file, on a machine that may be
/// busy with other tests.
pub(crate) fn patient() -> Settings {
    let mut settings = Settings::default();
    settings.ingest_wait = Duration::from_secs(60);
    settings
}

/// A Flare on a file, with a kind of document and one client.
pub(crate) struct World {
    pub(crate) flare: Flare,
    pub(crate) runtime: Runtime,
    pub(crate) client: RecordingDelivery,
}

impl World {
    pub(crate) async fn open(config: &SqliteConfig) -> Self {
        let client = RecordingDelivery::default();
        let stores = SqliteBackend::with_config(config).unwrap();
        let builder = Flare::builder(stores).delivery(Arc::new(client.clone())).settings(patient());
        let (flare, runtime) = builder.build().unwrap();
        let docs = NewResource::new(url("{id}")).change_field("rev");
        let docs = flare.ensure_resource(docs).await.unwrap();
        let wish = SubscriptionSpec::post("http://client.example/{id}");
        flare.ensure_subscription(docs.id, wish).await.unwrap();
        Self { flare, runtime, client }
    }

    /// The same, of which nothing is to be delivered.
    pub(crate) async fn idle(config: &SqliteConfig) -> Flare {
        let Self { flare, runtime, .. } = Self::open(config).await;
        runtime.unused();
        flare
    }
}

/// Puts a document with content of a size.
pub(crate) async fn put(
    flare: &Flare,
    name: &str,
    revision: i64,
    bytes: usize,
) -> Result<DocumentChange> {
    let content = format!("{{\"rev\":{revision},\"x\":\"{}\"}}", "x".repeat(bytes));
    flare.put_json(&url(name), content).await
}

/// The revision that is stored.
pub(crate) async fn stored(flare: &Flare, name: &str) -> Result<i64> {
    flare.document(&url(name)).await.map(|document| document.version.revision().get())
}
