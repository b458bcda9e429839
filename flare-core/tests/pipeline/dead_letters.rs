//! What was given up is listed, explained, and tried again as often as somebody wants.

use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_core::ErrorKind;
use flare_core::model::{
    Action, DeadLetterId, DeadNotification, DeathReason, NewResource, ShownRevision, Subscription,
    SubscriptionId, SubscriptionSpec, Version,
};
use flare_core::port::{Clock, DeliveryOutcome, Page};
use flare_testkit::{FaultPlan, FaultyRepository};

const ALL: Page = Page::new(100, 0);

async fn listed(world: &World, subscription: &Subscription) -> Vec<DeadNotification> {
    world.flare.dead_letters(subscription.id, ALL).await.unwrap().items
}

fn fails(world: &World, id: u32) {
    // An answer that is no sign of a client that is down, which would be probed.
    world.delivery.answer(format!("http://a.example/{id}"), DeliveryOutcome::answered(422));
}

fn works(world: &World, id: u32) {
    world.delivery.answer(format!("http://a.example/{id}"), DeliveryOutcome::answered(200));
}

#[tokio::test]
async fn dead_letters_say_what_was_given_up_and_why() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    world.put(3, 1).await;
    world.settled().await;
    let mut died = Vec::new();
    for (id, rev) in [(2, 7), (1, 4), (3, 9)] {
        fails(&world, id);
        world.put(id, rev).await;
        world.settled().await;
        died.push(id);
    }
    let letters = listed(&world, &subscription).await;
    let documents: Vec<&str> = letters.iter().map(|letter| letter.document.as_str()).collect();
    assert_eq!(documents, [&*url(2), &*url(1), &*url(3)], "oldest death first");
    let letter = &letters[0];
    assert_eq!(letter.version, Version::live(7.into()));
    assert_eq!(letter.revision, ShownRevision::Number(7));
    assert_eq!((letter.action, letter.reason), (Action::Create, DeathReason::Exhausted));
    assert_eq!((letter.attempts, letter.last_status), (1, Some(422)));
    assert_eq!(letter.last_error.as_deref(), Some("answered 422"));
    assert_eq!(letter.first_failure_at, letter.died_at);
    assert!(letter.died_at <= world.clock.now());
    assert_eq!(letters[2].action, Action::Update);

    let page = world.flare.dead_letters(subscription.id, Page::new(1, 1)).await.unwrap();
    assert_eq!((page.total, &page.items[..]), (3, &letters[1..2]));
    let past = world.flare.dead_letters(subscription.id, Page::new(10, 3)).await.unwrap();
    assert_eq!((past.total, past.items.len()), (3, 0));

    // A settlement of a later version takes it off the list.
    works(&world, 2);
    world.put(2, 8).await;
    world.settled().await;
    assert_eq!(listed(&world, &subscription).await, letters[1..]);
}

#[tokio::test]
async fn a_revision_is_shown_as_its_resource_has_it() {
    let mut world = in_memory(few_slots());
    world.start();
    let timed = NewResource::new("http://api.example/users/{id}").change("at", "rfc3339");
    let resource = world.flare.create_resource(timed).await.unwrap();
    let subscription = world.subscribe(&resource, "a").await;
    fails(&world, 1);
    let json = r#"{"at":"2024-05-01T14:00:00.50+02:00"}"#;
    world.flare.put_json(&url(1), json).await.unwrap();
    world.settled().await;
    let letters = listed(&world, &subscription).await;
    assert_eq!(letters[0].revision.to_string(), "2024-05-01T12:00:00.5Z");
}

#[tokio::test]
async fn a_replay_tries_the_newest_version_again_and_again() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    for id in 1..=3 {
        fails(&world, id);
        world.put(id, 1).await;
        world.settled().await;
    }
    let mut ids: Vec<DeadLetterId> =
        listed(&world, &subscription).await.iter().map(|it| it.id).collect();
    for round in 0_u64..3 {
        let before = world.delivery.total();
        // Named twice, replayed once.
        let named = [ids[0], ids[1], ids[0]];
        assert_eq!(world.flare.replay(subscription.id, named).await.unwrap(), 2);
        assert_eq!(listed(&world, &subscription).await.len(), 1);
        world.settled().await;
        assert_eq!(world.delivery.total(), before + 2, "round {round}: tried at once");
        let letters = listed(&world, &subscription).await;
        assert_eq!(letters.len(), 3, "and given up again");
        ids = letters.iter().skip(1).map(|it| it.id).collect();
        ids.push(letters[0].id);
    }
    works(&world, 1);
    works(&world, 2);
    works(&world, 3);
    assert_eq!(world.flare.replay(subscription.id, ids).await.unwrap(), 3);
    world.settled().await;
    assert!(listed(&world, &subscription).await.is_empty());
    let ids: Vec<String> = world.delivery.requests().iter().map(webhook_id).collect();
    let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), 3, "a replay is the same notification to the client");
}

fn webhook_id(recorded: &flare_testkit::Recorded) -> String {
    let mut headers = recorded.request.headers.iter();
    headers.find(|(name, _)| name.eq_ignore_ascii_case("webhook-id")).unwrap().1.clone()
}

#[tokio::test]
async fn one_unknown_dead_letter_and_nothing_is_replayed() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let (a, b) = (world.subscribe(&resource, "a").await, world.subscribe(&resource, "b").await);
    fails(&world, 1);
    world.put(1, 1).await;
    world.settled().await;
    let known = listed(&world, &a).await[0].id;
    let unknown = DeadLetterId::from_bytes([9; 16]);
    let error = world.flare.replay(a.id, [known, unknown]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&unknown.to_string()), "{error}");
    assert_eq!(listed(&world, &a).await.len(), 1, "nothing is replayed");
    let elsewhere = world.flare.replay(b.id, [known]).await.unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::NotFound, "it is somebody else's");
    assert_eq!(world.flare.replay(a.id, []).await.unwrap(), 0);
    assert_eq!(world.flare.replay(a.id, [known]).await.unwrap(), 1);
    let twice = world.flare.replay(a.id, [known]).await.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::NotFound, "it is off the list");
}

#[tokio::test]
async fn everything_is_replayed_once_even_if_it_dies_again_meanwhile() {
    // Calls take their time, so that the lanes work between any two batches.
    let mut world = in_memory(few_slots()).behind(|repository, clock| {
        let late = FaultyRepository::new(repository, FaultPlan::seeded(1));
        late.delaying(1.0, Duration::from_millis(300), clock)
    });
    world.start();
    let resource = world.users().await;
    let subscription = world.subscribe(&resource, "a").await;
    // More than a store takes at a time.
    let count = 2_500;
    for id in 0..count {
        fails(&world, id);
    }
    let documents = (0..count).map(|id| (url(id), r#"{"rev":1}"#));
    for answer in world.calm.put_documents(documents).await {
        answer.unwrap();
    }
    world.settled().await;
    let replayed = world.in_time(world.flare.replay_all(subscription.id)).await.unwrap();
    assert_eq!(replayed, u64::from(count));
    world.settled().await;
    assert_eq!(world.delivery.total(), 2 * u64::from(count));
    let left = world.calm.dead_letters(subscription.id, ALL).await.unwrap().total;
    assert_eq!(left, u64::from(count));
    let other = world.subscribe(&resource, "b").await;
    assert_eq!(world.calm.replay_all(other.id).await.unwrap(), 0);
}

#[tokio::test]
async fn a_subscription_that_is_not_there_has_no_dead_letters() {
    let world = in_memory(few_slots());
    let resource = world.users().await;
    let gone = world.subscribe(&resource, "a").await;
    world.flare.delete_subscription(gone.id).await.unwrap();
    for id in [gone.id, SubscriptionId::from_bytes([7; 16])] {
        for error in [
            world.flare.dead_letters(id, ALL).await.map(drop).unwrap_err(),
            world.flare.replay(id, []).await.map(drop).unwrap_err(),
            world.flare.replay_all(id).await.map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains(&id.to_string()), "{error}");
        }
    }
}

#[tokio::test]
async fn a_replay_wakes_the_lanes_it_concerns() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec: SubscriptionSpec = hook("a").lanes(4).build().unwrap();
    let subscription = world.flare.create_subscription(resource.id, spec).await.unwrap();
    for id in 0..20 {
        fails(&world, id);
        world.put(id, 1).await;
    }
    world.settled().await;
    let before = world.clock.now();
    assert_eq!(world.flare.replay_all(subscription.id).await.unwrap(), 20);
    world.settled().await;
    assert!(world.clock.now() - before < Duration::from_secs(2), "at once");
    assert_eq!(world.delivery.total(), 40);
}
