//! How far behind a client is has an exact answer, the same from every handle on the same stores.

use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_core::ErrorKind;
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{
    LaneId, LaneState, SubscriptionId, SubscriptionReport, SubscriptionSpec, SubscriptionStatus,
};
use flare_core::port::{
    Clock, DeliveryOutcome, DocumentStore, QueueName, RowStore, SubscriptionStore,
};

/// What every handle answers.
async fn status(world: &World, id: SubscriptionId) -> SubscriptionReport {
    let here = world.flare.subscription_status(id).await.unwrap();
    let elsewhere = world.calm.subscription_status(id).await.unwrap();
    assert_eq!(here, elsewhere);
    here
}

#[tokio::test]
async fn lag_spreading_and_dead_letters_are_counted() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    let retry = RetryPolicy::builder()
        .num_retries(9)
        .min_delay_target(Duration::from_secs(60))
        .max_delay_target(Duration::from_secs(60));
    let spec = hook("a").retry(retry.build().unwrap());
    let behind = world.flare.create_subscription(resource.id, spec).await.unwrap();
    let dead = world.subscribe(&resource, "b").await;
    let idle = status(&world, behind.id).await;
    assert_eq!(idle.status, SubscriptionStatus::Active);
    assert_eq!((idle.lag, idle.spreading, idle.in_flight), (0, 0, 0));
    assert_eq!((idle.oldest_pending, idle.next_attempt_at), (Duration::ZERO, None));
    assert!(idle.queue.parse::<QueueName>().is_ok(), "{}", idle.queue);

    // Nobody spreads yet.
    for id in 1..=4 {
        world.put(id, 1).await;
    }
    let accepted = status(&world, behind.id).await;
    assert_eq!((accepted.lag, accepted.spreading), (0, 4));

    for id in 1..=3 {
        for name in ["a", "b"] {
            let url = format!("http://{name}.example/{id}");
            world.delivery.answer(url, DeliveryOutcome::answered(500));
        }
    }
    world.start();
    world.pass(Duration::from_secs(1)).await;
    let tried_at = world.clock.now();
    world.pass(Duration::from_secs(29)).await;
    let report = status(&world, behind.id).await;
    assert_eq!((report.lag, report.spreading, report.dead_letters), (3, 0, 0));
    assert!(report.oldest_pending >= Duration::from_secs(29), "{report:?}");
    let next = report.next_attempt_at.unwrap();
    assert!(next > world.clock.now() && next <= tried_at + Duration::from_secs(73), "{next}");
    let report = status(&world, dead.id).await;
    assert_eq!((report.lag, report.dead_letters, report.next_attempt_at), (0, 3, None));

    for id in 1..=3 {
        world.delivery.answer(format!("http://a.example/{id}"), DeliveryOutcome::answered(200));
    }
    world.settled().await;
    assert_eq!(status(&world, behind.id).await.lag, 0);
}

#[tokio::test]
async fn changes_of_another_resource_are_not_spreading_here() {
    let world = in_memory(few_slots());
    let users = world.users().await;
    let subscription = world.subscribe(&users, "a").await;
    let notes = flare_core::model::NewResource::new("http://api.example/notes/{id}");
    let notes = world.flare.create_resource(notes.change_field("rev")).await.unwrap();
    for id in 0..50 {
        let url = format!("http://api.example/notes/{id}");
        world.flare.put_json(&url, r#"{"rev":1}"#).await.unwrap();
    }
    world.put(1, 1).await;
    assert_eq!(status(&world, subscription.id).await.spreading, 1);
    let store = world.stores.repository();
    assert_eq!(store.count_undispatched(Some(notes.id)).await.unwrap(), 50);
    assert_eq!(store.count_undispatched(None).await.unwrap(), 51);
    // Removed as well as spread, they are not counted any more.
    assert_eq!(store.remove_documents(notes.id, 20).await.unwrap(), 20);
    assert_eq!(store.count_undispatched(Some(notes.id)).await.unwrap(), 30);
}

#[tokio::test]
async fn what_lanes_remember_is_reported() {
    let world = in_memory(few_slots());
    let resource = world.users().await;
    let spec = hook("a").lanes(2);
    let subscription = world.flare.create_subscription(resource.id, spec).await.unwrap();
    let store = world.stores.repository();
    let epoch = store.next_epoch().await.unwrap().epoch;
    let now = world.clock.now();
    let mut states = [0, 1].map(|shard| LaneState::new(LaneId::new(subscription.id, shard)));
    for (state, delivered) in states.iter_mut().zip([3, 4]) {
        state.delivered = delivered;
        state.node = Some("node-1".to_owned());
    }
    states[0].last_success_at = Some(now);
    states[1].last_error_at = Some(now);
    states[1].last_error = Some("answered 500".to_owned());
    states[1].hold_until = Some(now + Duration::from_secs(600));
    for stored in store.store_lanes(epoch, states.to_vec()).await {
        stored.unwrap();
    }
    let report = status(&world, subscription.id).await;
    assert_eq!((report.delivered, report.last_success_at), (7, Some(now)));
    assert_eq!(report.last_error.as_deref(), Some("answered 500"));
    assert_eq!(report.node, None, "nobody works it now");
    assert_eq!(report.next_attempt_at, None, "nothing is pending");
}

#[tokio::test]
async fn a_paused_subscription_says_why_and_plans_nothing() {
    let mut world = in_memory(few_slots());
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    let mut suspended = subscription.clone();
    suspended.status = SubscriptionStatus::Suspended;
    suspended.reason = Some("answered 410".to_owned());
    let store = world.stores.repository();
    store.replace_subscription(subscription.generation, suspended).await.unwrap();
    world.start();
    world.put(1, 1).await;
    world.pass(Duration::from_secs(10)).await;
    let report = status(&world, subscription.id).await;
    assert_eq!(report.status, SubscriptionStatus::Suspended);
    assert_eq!(report.reason.as_deref(), Some("answered 410"));
    assert_eq!((report.lag, report.next_attempt_at), (1, None));
    assert!(report.oldest_pending >= Duration::from_secs(9), "{report:?}");
}

#[tokio::test]
async fn a_subscription_that_is_not_there_has_no_status() {
    let world = in_memory(few_slots());
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    for id in [gone.id, SubscriptionId::from_bytes([7; 16])] {
        let error = world.flare.subscription_status(id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains(&id.to_string()), "{error}");
    }
}

#[tokio::test]
async fn who_has_which_version_and_what_the_rest_waits_for() {
    use flare_core::model::WaitsFor;
    use flare_core::model::subscription::Mode;
    use flare_core::port::Page;

    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let has = world.subscribe(&resource, "has").await;
    world.put(1, 1).await;
    world.settled().await;
    let paused = world.subscribe(&resource, "paused").await;
    world.flare.pause(paused.id).await.unwrap();
    let passive = hook("passive").mode(Mode::Passive);
    let passive = world.calm.create_subscription(resource.id, passive).await.unwrap();
    let fails = SubscriptionSpec::post("http://fails.example/{id}");
    let fails = world.calm.create_subscription(resource.id, fails).await.unwrap();
    world.delivery.answer("http://fails.example/1", DeliveryOutcome::answered(404));
    world.put(1, 2).await;
    world.pass(Duration::from_secs(4)).await;

    let all = world.flare.deliveries(&url(1), Page::new(100, 0)).await.unwrap();
    let waits: Vec<_> = all.items.iter().map(|it| (it.subscription, it.waits_for)).collect();
    let expected = [
        (has.id, None),
        (paused.id, Some(WaitsFor::Resume)),
        (passive.id, Some(WaitsFor::Demand)),
        (fails.id, Some(WaitsFor::Retry)),
    ];
    assert_eq!((waits.as_slice(), all.total), (&expected[..], 4));
    let failed = &all.items[3];
    assert_eq!((failed.attempts, failed.last_error.as_deref()), (1, Some("answered 404")));
    assert!(failed.next_attempt_at.unwrap() > world.clock.now());
    assert_eq!(all.items[0].settled.map(|it| it.revision().get()), Some(2));

    let one = world.flare.deliveries(&url(1), Page::new(1, 2)).await.unwrap();
    assert_eq!((one.items.len(), one.items[0].subscription, one.total), (1, passive.id, 4));
    let none = world.flare.deliveries(&url(9), Page::new(1, 0)).await.unwrap();
    assert_eq!((none.items.len(), none.total), (0, 0), "never put");
    let unknown = world.flare.deliveries("http://nobody.example/1", Page::new(1, 0)).await;
    assert_eq!(unknown.unwrap_err().kind(), flare_core::ErrorKind::NotFound);
    let wrong = world.flare.deliveries("nonsense", Page::new(1, 0)).await.unwrap_err();
    assert_eq!(wrong.field(), Some("url"));
}
