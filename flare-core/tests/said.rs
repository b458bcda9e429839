//! What a host reads in its log without having asked for it. Alone in its process: whether anything is
//! logged at all is decided for the whole of it.

#![allow(clippy::unwrap_used, reason = "it is a test")]

#[path = "support/mod.rs"]
mod support;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::port::DeliveryOutcome;
use support::{few_slots, in_memory};

/// What is logged, all of it.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// How often something was said.
    fn said(&self, words: &str) -> usize {
        String::from_utf8_lossy(&self.0.lock().unwrap()).matches(words).count()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_goes_wrong_unnoticed_is_said() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();

    let mut world = in_memory(few_slots());
    drop(world.builder().build().unwrap());
    assert_eq!(log.said("a runtime was dropped and never ran"), 1, "handles alone are none");
    let users = world.users().await;
    let spec = SubscriptionSpec::post("http://down.example/");
    let down = world.calm.create_subscription(users.id, spec).await.unwrap();
    world.start();
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(log.said("stands by"), 0);
    let first = world.flare.clone();
    world.cluster.weight = 0;
    world.start();
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(log.said("stands by"), 1, "once, not each time");

    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(503));
    for id in 0..10 {
        world.put(id, 1).await;
    }
    world.pass(Duration::from_secs(300)).await;
    assert!(first.subscription_status(down.id).await.unwrap().probing);
    assert_eq!(log.said("the client is down"), 1);
    assert_eq!(log.said("the client is back"), 0);
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(200));
    world.settled().await;
    assert_eq!((log.said("the client is down"), log.said("the client is back")), (1, 1));
    // Also if somebody mends it.
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(503));
    for id in 0..10 {
        world.put(id, 2).await;
    }
    world.pass(Duration::from_secs(600)).await;
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(200));
    world.flare.retry_now(down.id).await.unwrap();
    world.settled().await;
    assert_eq!((log.said("the client is down"), log.said("the client is back")), (2, 2));

    drained(&log).await;
}

/// An end says whether something is left.
async fn drained(log: &Log) {
    let memory = flare_backend_memory::MemoryBackend::new();
    let build = || {
        let delivery = Arc::new(flare_testkit::RecordingDelivery::default());
        flare_core::Flare::builder(memory.clone()).delivery(delivery).build().unwrap()
    };
    let (flare, runtime) = build();
    let ends = std::future::ready(());
    runtime.run(ends).await.unwrap();
    assert_eq!(log.said("flare is drained, and nothing is left"), 1);
    let users = NewResource::new("http://api.example/users/{id}").change_field("rev");
    flare.create_resource(users).await.unwrap();
    flare.put_json("http://api.example/users/1", r#"{"rev":1}"#).await.unwrap();
    build().1.run(std::future::ready(())).await.unwrap();
    assert_eq!(log.said("spreading=1 pending=0"), 1);
    assert_eq!(log.said("waits for the next runtime on these stores"), 1);
}
