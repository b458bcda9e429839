//! Where wake-ups wait: in the queue of the slot, or in each lane's own.

use std::time::Duration;

use flare_core::Settings;
use flare_core::internals::Shortcuts;
use flare_core::model::{LaneId, Placement};
use flare_core::port::{Clock, DeliveryOutcome, Queue, QueueName, Reply, RetryAfter};
use futures::TryStreamExt;

use super::node::{Node, SLOTS, settings};

const SECOND: Duration = Duration::from_secs(1);

fn isolated() -> Settings {
    let mut settings = settings();
    settings.placement = Placement::Isolated;
    settings
}

fn lane(node: &Node, slot: usize) -> QueueName {
    QueueName::Lane(LaneId::new(node.clients[slot].id, 0))
}

/// Messages that wait in a queue; none, if there is no such queue.
async fn waiting(node: &Node, queue: &QueueName) -> u64 {
    node.stores.queue().depth(queue).await.map_or(0, |depth| depth.ready + depth.in_flight)
}

async fn queues(node: &Node) -> Vec<QueueName> {
    node.stores.queue().list().try_collect().await.unwrap()
}

#[tokio::test]
async fn lanes_that_are_blocked_hold_nobody_up_in_the_queue_they_share() {
    let node = Node::start(settings()).await;
    node.subscribe_in(0, "held").await;
    node.subscribe_in(0, "hanging").await;
    node.subscribe_in(0, "failing").await;
    let mut leave_me = DeliveryOutcome::answered(429);
    let retry_after = Some(RetryAfter::Delay(Duration::from_secs(600)));
    leave_me.reply = Reply::Answered { status: 429, retry_after, excerpt: Default::default() };
    for id in 0..20 {
        node.delivery.answer(format!("http://held/{id}/1"), leave_me.clone());
        node.delivery.answer(format!("http://failing/{id}/1"), DeliveryOutcome::answered(500));
        node.delivery.hang(format!("http://hanging/{id}/1"));
    }
    node.grant(0..SLOTS).await;
    for id in 0..20 {
        node.put(id, 1).await;
    }
    node.pass(SECOND).await;
    for id in 0..20 {
        assert_eq!(node.told(&format!("http://client-0/{id}/1")), 1, "{id}");
    }
    let blocked = async |host: &str| {
        let told = node.delivery.requests();
        told.iter().filter(|it| it.request.url.starts_with(&format!("http://{host}/"))).count()
    };
    assert!(blocked("held").await < 20 && blocked("failing").await < 20);
    // All of their wake-ups were heard and settled: what they have to do is in their rows.
    assert_eq!(waiting(&node, &QueueName::Slot(0)).await, 0);
    for id in 0..20 {
        node.delivery.release(&format!("http://hanging/{id}/1"));
        node.delivery.answer(format!("http://held/{id}/1"), DeliveryOutcome::answered(200));
        node.delivery.answer(format!("http://failing/{id}/1"), DeliveryOutcome::answered(200));
    }
    node.pass(Duration::from_secs(3_600)).await;
    node.flare.settled(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn an_isolated_lane_is_woken_by_a_queue_of_its_own() {
    let node = Node::start(isolated()).await;
    node.grant(0..SLOTS).await;
    node.pass(SECOND).await;
    // Nobody looks for a while: what arrives was said in a queue.
    for rev in 1..4 {
        node.put(1, rev).await;
        for slot in 0..SLOTS {
            assert_eq!(node.told(&format!("http://client-{slot}/1/{rev}")), 1);
        }
    }
    let there = queues(&node).await;
    for slot in 0..SLOTS as usize {
        assert!(there.contains(&lane(&node, slot)), "{there:?}");
        assert_eq!(waiting(&node, &lane(&node, slot)).await, 0);
    }
    // News go through the slot's queue: only its owner knows which lanes there are.
    node.flare.pause(node.clients[2].id).await.unwrap();
    node.turns().await;
    node.put(2, 1).await;
    assert_eq!([node.told("http://client-2/2/1"), node.told("http://client-3/2/1")], [0, 1]);
    assert_eq!(node.flare.node().lanes, 3);
}

#[tokio::test]
async fn nobody_listens_to_a_lane_that_is_not_worked() {
    let node = Node::start(isolated()).await;
    node.grant(0..SLOTS).await;
    node.put(1, 1).await;
    node.pass(SECOND).await;
    let released = node.release([0]).await;
    assert!(released.await.is_err());
    node.lose([1]).await;
    node.put(1, 2).await;
    node.pass(Duration::from_secs(100)).await;
    for slot in [0, 1] {
        assert_eq!(waiting(&node, &lane(&node, slot)).await, 1, "it waits for the next owner");
        assert_eq!(node.told(&format!("http://client-{slot}/1/2")), 0);
    }
    node.grant([0, 1]).await;
    node.pass(SECOND).await;
    for slot in [0, 1] {
        assert_eq!(waiting(&node, &lane(&node, slot)).await, 0);
        assert_eq!(node.told(&format!("http://client-{slot}/1/2")), 1);
    }
}

#[tokio::test]
async fn a_lanes_queue_that_vanishes_comes_back_and_nothing_is_lost() {
    let node = Node::start(isolated()).await;
    node.grant(0..SLOTS).await;
    node.put(1, 1).await;
    node.pass(SECOND).await;
    for rev in 2..6 {
        for slot in 0..SLOTS as usize {
            node.stores.queue().delete(&lane(&node, slot)).await.unwrap();
        }
        node.put(1, rev).await;
        node.pass(SECOND).await;
        for slot in 0..SLOTS as usize {
            assert_eq!(node.told(&format!("http://client-{slot}/1/{rev}")), 1);
            assert!(queues(&node).await.contains(&lane(&node, slot)));
        }
    }
}

#[tokio::test]
async fn a_status_tells_when_the_queue_was_made_again() {
    for mut settings in [settings(), isolated()] {
        let shared = settings.placement == Placement::Shared;
        // Lanes of the same process are told without a queue, so nobody would miss it.
        settings.shortcuts = Shortcuts::new(false);
        let node = Node::start(settings).await;
        node.grant(0..SLOTS).await;
        node.put(1, 1).await;
        node.pass(Duration::from_secs(5)).await;
        let status = async |slot: usize| {
            node.flare.subscription_status(node.clients[slot].id).await.unwrap()
        };
        let queue = if shared { QueueName::Slot(0) } else { lane(&node, 0) };
        assert_eq!(status(0).await.queue, queue.to_string());
        let before = (node.clock.now(), status(1).await.queue_restored_at);
        node.stores.queue().delete(&queue).await.unwrap();
        node.put(1, 2).await;
        node.pass(Duration::from_secs(5)).await;
        let restored = status(0).await.queue_restored_at;
        assert!(restored >= Some(before.0), "{restored:?}");
        assert_eq!(status(1).await.queue_restored_at, before.1, "another queue");
        assert_eq!(node.told("http://client-0/1/2"), 1);
    }
}
