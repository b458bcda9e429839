//! What queues cost and bear: few requests when nothing happens, more workers when much does, one
//! creation however many miss a queue, and deliveries while it is away.

mod watched;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::{World, few_slots, in_memory, url};
use flare_core::Settings;
use flare_core::model::Resource;
use flare_core::port::{Clock, Page, QueueName};
use flare_testkit::{FaultPlan, FaultyRepository, intercept};
use futures::future::join_all;
use watched::{BATCH, Watched};

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    let mut settings = few_slots();
    settings.workers = 4;
    settings
}

/// A Flare that runs, with a subscription, on a queue that is watched.
async fn running(mut world: World) -> (World, Resource, Arc<Watched>) {
    let queue = intercept::queue(world.queue(), Watched::default());
    world.backend.queue = Some(Arc::new(queue.clone()));
    world.start();
    let users = world.users().await;
    world.subscribe(&users, "c").await;
    world.calm.put_json(&url(0), r#"{"rev":1}"#).await.unwrap();
    world.settled().await;
    (world, users, queue.hooks)
}

#[tokio::test]
async fn an_idle_queue_costs_one_request_that_waits() {
    let (world, users, queue) = running(in_memory(settings())).await;
    let all = world.flare.subscriptions(users.id, Page::new(1, 0)).await.unwrap().items;
    let status = world.flare.subscription_status(all[0].id).await.unwrap();
    assert_eq!(status.queue_restored_at, None, "a new queue has not vanished");
    let queues = 2 + 2;
    let before = queue.all("receive");
    for _ in 0..600 {
        world.pass(SECOND).await;
    }
    let polls = queue.all("receive") - before;
    assert!(polls <= queues * (600 / 20 + 1), "{polls} requests of {queues} queues in ten minutes");
    assert_eq!(queue.all("extend"), 0);
}

#[tokio::test]
async fn many_tasks_have_several_workers_and_no_more_than_these() {
    let slow = |inner, clock| {
        FaultyRepository::new(inner, FaultPlan::seeded(1)).delaying(1.0, SECOND, clock)
    };
    let (world, _, queue) = running(in_memory(settings()).behind(slow)).await;
    for id in 1..=200 {
        world.calm.put_json(&url(id), r#"{"rev":1}"#).await.unwrap();
    }
    world.settled().await;
    let most = queue.most_held.load(Ordering::Relaxed);
    assert!(most > 2 * BATCH, "at most {most} messages at a time: one worker was alone");
    // Four at each stage with one more for what they leave undone, and one for each slot.
    assert!(most <= (5 + 5 + 2) * BATCH, "{most} messages at a time");
    assert_eq!(world.delivery.total(), 201);
}

#[tokio::test]
async fn a_message_is_kept_from_others_while_it_is_worked_on() {
    let stuck = |inner, clock| {
        FaultyRepository::new(inner, FaultPlan::seeded(3)).delaying(1.0, SECOND * 120, clock)
    };
    let mut settings = settings();
    // Nobody asks again by himself.
    settings.reconcile_every = SECOND * 86_400;
    let (world, _, queue) = running(in_memory(settings).behind(stuck)).await;
    world.calm.put_json(&url(1), r#"{"rev":1}"#).await.unwrap();
    world.settled().await;
    assert!(queue.calls("extend", &QueueName::Partition) > 0, "nothing was extended");
    assert_eq!(world.delivery.total(), 2, "worked on twice");
}

#[tokio::test]
async fn a_queue_that_a_hundred_miss_is_made_once() {
    let mut settings = settings();
    // A hundred puts at once are more than a store is given before it has shown its pace.
    settings.ingest_wait = SECOND * 60;
    let (world, _, queue) = running(in_memory(settings)).await;
    let made = queue.calls("create", &QueueName::Partition);
    world.queue().delete(&QueueName::Partition).await.unwrap();
    join_all((1..=100).map(|id| world.put(id, 1))).await;
    assert_eq!(queue.calls("create", &QueueName::Partition) - made, 1);
    world.settled().await;
    assert_eq!(world.delivery.total(), 101);
}

/// Whoever found out goes on listening until the queue answers: then it is at work no more.
#[tokio::test]
async fn a_queue_that_failed_once_while_there_was_nothing_to_do_makes_nobody_ill() {
    let (world, ..) = running(in_memory(settings())).await;
    for queue in [QueueName::Partition, QueueName::Spread] {
        world.queue().delete(&queue).await.unwrap();
        for _ in 0..150 {
            world.pass(SECOND).await;
            let node = world.flare.node();
            let ill: Vec<_> = node.stuck(SECOND * 30).collect();
            assert!(ill.is_empty(), "{queue:?}: {ill:?}");
        }
    }
}

#[tokio::test]
async fn tasks_that_were_lost_with_their_queue_are_found_at_once() {
    let mut settings = settings();
    settings.reconcile_every = SECOND * 86_400;
    let (world, _, _) = running(in_memory(settings)).await;
    // Stored, and announced to a queue that is gone before anybody looked into it.
    world.put(1, 1).await;
    world.queue().delete(&QueueName::Partition).await.unwrap();
    let began = world.clock.now();
    world.settled().await;
    assert!(world.clock.now() - began < SECOND * 10);
    assert_eq!(world.delivery.total(), 2);
}

#[tokio::test]
async fn lanes_look_for_themselves_while_their_queue_cannot_be_made() {
    let mut settings = settings();
    settings.rederive_every = SECOND * 86_400;
    let (world, _, queue) = running(in_memory(settings)).await;
    queue.refuses_queues.store(true, Ordering::Relaxed);
    for slot in 0..2 {
        world.queue().delete(&QueueName::Slot(slot)).await.unwrap();
    }
    let began = world.clock.now();
    world.put(1, 1).await;
    let delivered = async || world.delivery.total() == 2;
    world.until("delivered without its queue", delivered).await;
    assert!(world.clock.now() - began < SECOND * 30);

    queue.refuses_queues.store(false, Ordering::Relaxed);
    world.settled().await;
    let stored = world.queue();
    let made = async || {
        let slots = [0, 1].map(QueueName::Slot);
        join_all(slots.iter().map(|slot| stored.depth(slot))).await.iter().all(Result::is_ok)
    };
    world.until("the queues are back", made).await;
}

#[tokio::test]
async fn news_that_were_lost_with_a_queue_are_found_once_it_is_made_again() {
    let (world, users, queue) = running(in_memory(settings())).await;
    let client = world.subscribe(&users, "d").await;
    world.flare.pause(client.id).await.unwrap();
    world.put(1, 1).await;
    world.pass(SECOND).await;
    queue.loses.store(true, Ordering::Relaxed);
    world.flare.resume(client.id).await.unwrap();
    queue.loses.store(false, Ordering::Relaxed);
    let began = world.clock.now();
    for slot in 0..2 {
        world.queue().delete(&QueueName::Slot(slot)).await.unwrap();
    }
    world.settled().await;
    assert!(world.clock.now() - began < SECOND * 60, "it waited for the sweep");
}

#[tokio::test]
async fn messages_are_hidden_for_longer_than_a_request_may_take() {
    for (timeout, hidden) in [(SECOND, SECOND * 30), (SECOND * 90, SECOND * 180)] {
        let mut settings = settings();
        settings.timeout = timeout;
        let (_world, _, queue) = running(in_memory(settings)).await;
        assert_eq!(*queue.visibility.lock().unwrap(), hidden);
    }
}
