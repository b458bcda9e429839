//! A server whose consumers pull from a broker in memory.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryBroker};
use flare_core::Flare;
use flare_core::cluster::Health;
use flare_core::port::{Clock, Outgoing, SystemClock};
use serde_json::{Value, json};

use crate::support::Server;

pub(crate) const USERS: &str = "http://api.example.com/users";
/// More than a node takes on a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(60);

/// A server with a resource `users` and a broker with the queue `users` and the stream `events`.
pub(crate) struct Pulling {
    pub(crate) server: Server,
    pub(crate) broker: MemoryBroker,
    pub(crate) memory: MemoryBackend,
    /// The path of the resource.
    pub(crate) users: String,
}

impl Pulling {
    pub(crate) async fn start() -> Self {
        let (memory, broker) = (MemoryBackend::new(), MemoryBroker::new());
        broker.create_queue("users");
        broker.create_stream("events");
        let builder = Flare::builder(memory.clone()).source(Arc::new(broker.clone()));
        let server = Server::on(builder, true, |api| api).await;
        while server.flare.cluster().await.unwrap().health != Health::Green {
            tokio::task::yield_now().await;
        }
        let users = server.resource("users").await;
        Self { server, broker, memory, users }
    }

    /// The id of the resource.
    pub(crate) fn resource(&self) -> &str {
        last(&self.users)
    }

    /// A consumer of the queue: messages are documents, with their id at `/id`.
    pub(crate) fn asked(&self) -> Value {
        json!({
            "resource": self.resource(),
            "memory": {"queue": "users"},
            "document": {"url": format!("{USERS}/{{/id}}")},
        })
    }

    /// Creates one; its path.
    pub(crate) async fn create(&self, asked: &Value) -> String {
        self.server.post("/consumers", &asked.to_string()).await.created()
    }

    pub(crate) fn publish(&self, topic: &str, message: &Value) {
        self.broker.publish(topic, Outgoing::new(message.to_string())).unwrap();
    }

    /// What a path answers once that is as wanted.
    #[track_caller]
    pub(crate) fn until(
        &self,
        path: String,
        wanted: impl Fn(&Value) -> bool,
    ) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let clock = SystemClock::new();
            let ends = clock.monotonic() + LONG;
            loop {
                let answer = self.server.get(&path).await.is(200).json();
                if wanted(&answer) {
                    return answer;
                }
                assert!(clock.monotonic() < ends, "{place}: {path} stays {answer}");
                clock.sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

pub(crate) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}
