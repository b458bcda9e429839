//! A Flare whose queue is on SQS and whose other stores are in memory, with clients that accept
//! everything and remember the newest revision they were told.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::Flare;
use flare_core::Settings;
use flare_core::model::{NewResource, Resource, SubscriptionSpec};
use flare_core::port::{Clock, Delivery, DeliveryOutcome, DeliveryRequest, Queue, SystemClock};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) struct World {
    pub(crate) flare: Flare,
    pub(crate) clients: Arc<Clients>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<flare_core::Result<()>>,
}

impl World {
    pub(crate) fn start(queue: Arc<dyn Queue>, settings: Settings) -> Self {
        let clients = Arc::new(Clients::default());
        let (flare, runtime) = Flare::builder(MemoryBackend::new())
            .queue(queue)
            .delivery(Arc::clone(&clients) as Arc<dyn Delivery>)
            .settings(settings)
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));
        Self { flare, clients, stop, running }
    }

    /// A resource, and so many subscriptions to it.
    pub(crate) async fn subscribe(&self, kind: &str, subscriptions: usize) -> Resource {
        let new = NewResource::new(format!("http://api.example/{kind}/{{id}}")).change_field("rev");
        let resource = self.flare.create_resource(new).await.unwrap();
        let created = stream::iter(0..subscriptions).map(|number| {
            let spec = SubscriptionSpec::post(client(kind, number));
            self.flare.create_subscription(resource.id, spec)
        });
        created.buffer_unordered(16).try_collect::<Vec<_>>().await.unwrap();
        resource
    }

    /// Puts documents at once, each at a newer revision than before.
    pub(crate) async fn put(&self, kind: &str, ids: std::ops::Range<usize>, rev: i64) {
        let documents = ids.map(|id| (url(kind, id), body(rev)));
        for answer in self.flare.put_documents(documents).await {
            assert!(answer.unwrap().notifies());
        }
    }

    /// Waits until everybody has the newest version of everything.
    pub(crate) async fn settled(&self) {
        self.flare.settled(PATIENCE).await.unwrap();
    }

    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.unwrap().unwrap();
    }
}

pub(crate) fn client(kind: &str, number: usize) -> String {
    format!("http://client-{number}.example/{kind}")
}

pub(crate) fn url(kind: &str, id: usize) -> String {
    format!("http://api.example/{kind}/{id}")
}

pub(crate) fn body(rev: i64) -> String {
    format!(r#"{{"rev":{rev},"pad":"{}"}}"#, "x".repeat(200))
}

/// Clients that accept everything.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    told: Mutex<Told>,
    changed: Notify,
}

#[derive(Debug, Default, Clone)]
struct Told {
    /// The newest revision of each document that each client was told.
    newest: HashMap<(String, String), i64>,
    total: u64,
    repeated: u64,
    backwards: Vec<String>,
}

impl Clients {
    /// Requests made so far.
    pub(crate) fn total(&self) -> u64 {
        self.told.lock().unwrap().total
    }

    /// Requests that told nothing new.
    pub(crate) fn repeated(&self) -> u64 {
        self.told.lock().unwrap().repeated
    }

    /// Requests that told something older than one before.
    pub(crate) fn backwards(&self) -> Vec<String> {
        self.told.lock().unwrap().backwards.clone()
    }

    /// The revision of a document that a client has.
    pub(crate) fn revision(&self, client: &str, url: &str) -> Option<i64> {
        let key = (client.to_owned(), url.to_owned());
        self.told.lock().unwrap().newest.get(&key).copied()
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let clock = SystemClock::new();
        let late = clock.sleep_until(clock.now() + PATIENCE);
        let so = async {
            loop {
                // Listening starts before looking: what changes in between is not missed.
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if is_so(self) {
                    return;
                }
                changed.await;
            }
        };
        tokio::select! {
            biased;
            () = so => {}
            () = late => panic!("not within {PATIENCE:?}: {what}"),
        }
    }
}

#[async_trait]
impl Delivery for Clients {
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        let (id, revision) = (body["id"].as_str().unwrap(), body["revision"].as_i64().unwrap());
        let mut told = self.told.lock().unwrap();
        told.total += 1;
        let before = told.newest.insert((request.url.clone(), id.to_owned()), revision);
        match before {
            Some(before) if before == revision => told.repeated += 1,
            Some(before) if before > revision => {
                told.backwards.push(format!("{}: {id} at {revision} after {before}", request.url));
            }
            _ => {}
        }
        drop(told);
        self.changed.notify_waiters();
        DeliveryOutcome::answered(200)
    }
}
