//! A Flare on a backend, with a client that accepts everything and is remembered.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use flare_core::Settings;
use flare_core::model::{DocumentChange, NewResource, Resource, SubscriptionSpec};
use flare_core::port::{Clock, SystemClock};
use flare_core::{Backend, Flare};
use flare_testkit::RecordingDelivery;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) struct World {
    pub(crate) flare: Flare,
    pub(crate) delivery: RecordingDelivery,
    stop: oneshot::Sender<()>,
    running: JoinHandle<flare_core::Result<()>>,
}

impl World {
    pub(crate) fn start(backend: impl Into<Backend>, settings: Settings) -> Self {
        let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
        let (flare, runtime) = Flare::builder(backend)
            .delivery(Arc::new(delivery.clone()))
            .settings(settings)
            .exclusive()
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));
        Self { flare, delivery, stop, running }
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.unwrap().unwrap();
    }

    /// Waits until so many requests have been made.
    pub(crate) async fn delivered(&self, total: u64) {
        let clock = SystemClock::new();
        let deadline = clock.now() + Duration::from_secs(120);
        while self.delivery.total() < total {
            assert!(clock.now() < deadline, "{} of {total} delivered", self.delivery.total());
            clock.sleep_until(clock.now() + Duration::from_millis(5)).await;
        }
    }
}

pub(crate) async fn items(flare: &Flare) -> Resource {
    let new = NewResource::new("http://api.example/items/{id}").change_field("rev");
    flare.create_resource(new).await.unwrap()
}

pub(crate) async fn subscribe(flare: &Flare, resource: &Resource, number: usize) {
    let spec = SubscriptionSpec::post(format!("http://client-{number}.example/hook"));
    flare.create_subscription(resource.id, spec).await.unwrap();
}

pub(crate) fn url(id: usize) -> String {
    format!("http://api.example/items/{id}")
}

pub(crate) fn body(rev: u64) -> String {
    format!(r#"{{"rev":{rev},"pad":"{}"}}"#, "x".repeat(200))
}

pub(crate) async fn put(flare: &Flare, id: usize, rev: u64) -> flare_core::Result<DocumentChange> {
    flare.put_json(&url(id), body(rev)).await
}
