//! What a node says of itself: whether it runs, what it works, and which of its loops is stuck.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::{NewResource, SubscriptionSpec, Timestamp};
use flare_core::port::Clock;
use flare_core::{Backend, Flare};
use flare_testkit::{FaultPlan, FaultyRepository, ManualClock, RecordingDelivery};

const LIMIT: Duration = Duration::from_secs(30);

async fn pass(clock: &ManualClock, time: Duration) {
    let end = clock.now() + time;
    while clock.now() < end {
        for _ in 0..40 {
            tokio::task::yield_now().await;
        }
        let next = clock.next_deadline().map_or(end, |deadline| deadline.min(end));
        clock.advance_to(next);
    }
}

#[tokio::test]
async fn a_node_whose_store_is_gone_says_which_loops_are_stuck() {
    let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
    let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
    let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
    let (flare, runtime) = Flare::builder(memory.clone())
        .delivery(Arc::new(delivery))
        .clock(Arc::new(clock.clone()))
        .build()
        .unwrap();
    assert!(!flare.node().running);
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    let notes = NewResource::new("http://a.example/notes/{id}").change_field("rev");
    let notes = flare.create_resource(notes).await.unwrap();
    let spec = SubscriptionSpec::post("http://c.example/");
    flare.create_subscription(notes.id, spec).await.unwrap();
    flare.put_json("http://a.example/notes/1", r#"{"rev":1}"#).await.unwrap();
    pass(&clock, Duration::from_secs(300)).await;

    let node = flare.node();
    assert!(node.running);
    assert_eq!(node.lanes, 1);
    assert_eq!(node.stuck(LIMIT).count(), 0, "{node:?}");
    let names: Vec<&str> = node.loops.iter().map(|it| it.name).collect();
    assert_eq!(names, ["jobs", "lane", "partition", "reconcile", "spread", "wake"]);

    let faults = FaultPlan::seeded(1).with_before(1.0);
    let broken = FaultyRepository::new(memory.repository(), faults);
    let backend = Backend::new(Arc::new(broken), memory.queue(), memory.lease());
    let (other, runtime) = Flare::builder(backend)
        .delivery(Arc::new(RecordingDelivery::new(Arc::new(clock.clone()))))
        .clock(Arc::new(clock.clone()))
        .build()
        .unwrap();
    let starts = tokio::spawn(runtime.run(std::future::pending::<()>()));
    pass(&clock, Duration::from_secs(60)).await;
    let stuck: Vec<&str> = other.node().stuck(LIMIT).map(|it| it.name).collect();
    assert_eq!(stuck, ["jobs", "reconcile"]);
    assert_ne!(other.node().id, flare.node().id);

    for ends in [running, starts] {
        ends.abort();
        let _ = ends.await;
    }
    assert!(!flare.node().running && !other.node().running);
}
