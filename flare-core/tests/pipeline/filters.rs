//! A client with a filter has what concerns it and nothing else: it is told when a document begins to concern
//! it and when it ceases to, and costs nothing while it does not.

use std::time::Duration;

use crate::support::{World, few_slots, hook, in_memory, url};
use flare_core::PullOutcome;
use flare_core::model::subscription::{Mode, SubscriptionBuilder};
use flare_core::model::{Action, Present, Resource, Subscription, SubscriptionId};
use flare_core::port::DocumentStore;
use flare_core::{ErrorKind, Pull};

const PUBLIC: &str = "document.public";

async fn subscribe(world: &World, resource: &Resource, spec: SubscriptionBuilder) -> Subscription {
    world.calm.create_subscription(resource.id, spec).await.unwrap()
}

/// A document with more in it than the version.
async fn put(world: &World, id: u32, rev: i64, fields: &str) {
    let json = format!(r#"{{"rev":{rev},{fields}}}"#);
    world.flare.put_json(&url(id), json).await.unwrap();
}

/// What the client was told since it was last asked: documents, actions, and what came with them.
fn told(world: &World, seen: &mut usize) -> Vec<(String, Action, Option<serde_json::Value>)> {
    let requests = world.delivery.requests().split_off(*seen);
    *seen += requests.len();
    let said = |body: &[u8]| {
        let envelope: serde_json::Value = serde_json::from_slice(body).unwrap();
        envelope.get("document").cloned()
    };
    let told = requests.iter().map(|it| {
        let request = &it.request;
        (request.document.as_str().to_owned(), request.action, said(&request.body))
    });
    told.collect()
}

/// The same without the content.
fn actions(world: &World, seen: &mut usize) -> Vec<(String, Action)> {
    told(world, seen).into_iter().map(|(document, action, _)| (document, action)).collect()
}

async fn rows(world: &World, subscription: SubscriptionId, ids: std::ops::Range<u32>) -> usize {
    let mut rows = 0;
    for id in ids {
        rows += usize::from(world.row(subscription, id).await.is_some());
    }
    rows
}

#[tokio::test]
async fn entering_is_a_create_and_leaving_a_delete_that_says_nothing() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    let with = subscribe(&world, &resource, hook("a").filter(PUBLIC)).await;

    put(&world, 1, 1, r#""public":false,"secret":1"#).await;
    world.settled().await;
    assert_eq!(told(&world, &mut seen), []);
    assert_eq!(world.row(with.id, 1).await, None, "it was never told, so there is no row");

    put(&world, 1, 2, r#""public":true"#).await;
    world.settled().await;
    let content = serde_json::json!({"rev": 2, "public": true});
    assert_eq!(told(&world, &mut seen), [(url(1), Action::Create, Some(content))]);

    put(&world, 1, 3, r#""public":true,"more":1"#).await;
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(1), Action::Update)]);

    put(&world, 1, 4, r#""public":false,"secret":2"#).await;
    world.settled().await;
    assert_eq!(
        told(&world, &mut seen),
        [(url(1), Action::Delete, None)],
        "it may be secret by now"
    );
    let row = world.row(with.id, 1).await.unwrap();
    assert_eq!((row.present, row.is_pending()), (Present::No, false));

    put(&world, 1, 5, r#""public":false,"secret":3"#).await;
    world.settled().await;
    assert_eq!(told(&world, &mut seen), [], "it holds nothing, and needs to know nothing");

    put(&world, 1, 6, r#""public":true"#).await;
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(1), Action::Create)]);
}

#[tokio::test]
async fn a_delete_without_envelope_has_an_empty_body() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    subscribe(&world, &resource, hook("a").filter(PUBLIC).envelope(false)).await;
    put(&world, 1, 1, r#""public":true"#).await;
    world.settled().await;
    put(&world, 1, 2, r#""public":false,"secret":2"#).await;
    world.settled().await;
    let requests = world.delivery.requests();
    let bodies: Vec<_> = requests.iter().map(|it| it.request.body.as_ref()).collect();
    assert_eq!(bodies, [br#"{"rev":1,"public":true}"#.as_slice(), b""]);
}

#[tokio::test]
async fn deletions_are_not_filtered_and_show_only_what_the_filter_would() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    let with = subscribe(&world, &resource, hook("a").filter(PUBLIC)).await;
    put(&world, 1, 1, r#""public":true"#).await;
    put(&world, 2, 1, r#""public":true"#).await;
    put(&world, 3, 1, r#""public":false"#).await;
    world.settled().await;
    told(&world, &mut seen);

    world.flare.pause(with.id).await.unwrap();
    put(&world, 2, 2, r#""public":false,"secret":2"#).await;
    for id in 1..=3 {
        world.delete(id).await;
    }
    world.flare.resume(with.id).await.unwrap();
    world.settled().await;
    let mut said = told(&world, &mut seen);
    said.sort_by_key(|it| it.0.clone());
    let content = serde_json::json!({"rev": 1, "public": true});
    let expected = [(url(1), Action::Delete, Some(content)), (url(2), Action::Delete, None)];
    assert_eq!(said, expected);
    assert_eq!(world.row(with.id, 3).await, None);
}

#[tokio::test]
async fn what_it_says_may_depend_on_the_url_and_the_version() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    let filter = "params.id in ['2', '3'] && revision >= 2";
    subscribe(&world, &resource, hook("a").filter(filter)).await;
    for (id, rev) in [(1, 2), (2, 1), (3, 2)] {
        world.put(id, rev).await;
    }
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(3), Action::Create)]);
}

#[tokio::test]
async fn many_clients_cost_what_those_do_that_are_concerned() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let mut with = Vec::new();
    for number in 0..200 {
        let spec = hook(&format!("c{number}")).filter(format!("document.shop == {}", number % 100));
        with.push(subscribe(&world, &resource, spec).await);
    }
    for id in 0..10 {
        put(&world, id, 1, &format!(r#""shop":{id}"#)).await;
    }
    world.settled().await;
    assert_eq!(world.delivery.total(), 20);
    let mut made = 0;
    for subscription in &with {
        made += rows(&world, subscription.id, 0..10).await;
    }
    assert_eq!(made, 20, "no row but for those who are told");
}

#[tokio::test]
async fn another_filter_acts_from_the_next_change_on() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    let with = subscribe(&world, &resource, hook("a").filter(PUBLIC)).await;
    put(&world, 1, 1, r#""public":true,"hot":false"#).await;
    put(&world, 2, 1, r#""public":false,"hot":true"#).await;
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(1), Action::Create)]);

    world.flare.replace_subscription(with.id, hook("a").filter("document.hot")).await.unwrap();
    world.pass(Duration::from_secs(100)).await;
    assert_eq!(told(&world, &mut seen), []);

    put(&world, 1, 2, r#""public":true,"hot":false"#).await;
    put(&world, 2, 2, r#""public":false,"hot":true"#).await;
    world.settled().await;
    let mut said = actions(&world, &mut seen);
    said.sort();
    assert_eq!(said, [(url(1), Action::Delete), (url(2), Action::Create)]);

    world.flare.replace_subscription(with.id, hook("a")).await.unwrap();
    put(&world, 1, 3, r#""public":false,"hot":false"#).await;
    world.settled().await;
    assert_eq!(
        actions(&world, &mut seen),
        [(url(1), Action::Create)],
        "without a filter it has everything"
    );
}

#[tokio::test]
async fn what_waits_is_judged_by_the_filter_there_is_when_it_is_sent() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    let with = subscribe(&world, &resource, hook("a").filter(PUBLIC)).await;
    world.flare.pause(with.id).await.unwrap();
    put(&world, 1, 1, r#""public":true,"hot":false"#).await;
    put(&world, 2, 1, r#""public":true,"hot":true"#).await;
    world.flare.replace_subscription(with.id, hook("a").filter("document.hot")).await.unwrap();
    world.flare.resume(with.id).await.unwrap();
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(2), Action::Create)]);
}

#[tokio::test]
async fn an_expression_that_fails_is_no_match() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    subscribe(&world, &resource, hook("a").filter("document.total > 5")).await;
    put(&world, 1, 1, r#""total":6"#).await;
    put(&world, 2, 1, r#""other":6"#).await;
    put(&world, 3, 1, r#""total":"6""#).await;
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(1), Action::Create)]);
    put(&world, 1, 2, r#""total":null"#).await;
    world.settled().await;
    assert_eq!(actions(&world, &mut seen), [(url(1), Action::Delete)]);
}

#[tokio::test]
async fn whoever_pulls_is_filtered_too() {
    let mut world = in_memory(few_slots());
    world.start();
    let resource = world.users().await;
    let spec = || hook("a").mode(Mode::Passive).filter(PUBLIC);
    let with = subscribe(&world, &resource, spec()).await;
    put(&world, 1, 1, r#""public":true"#).await;
    put(&world, 2, 1, r#""public":false"#).await;
    spread(&world).await;
    let pull = async || world.flare.pull(with.id, Pull::new(10)).await.unwrap();
    let pulled = pull().await;
    assert_eq!(pulled.len(), 1);
    let receipts = pulled.into_iter().map(|it| (it.receipt, PullOutcome::Success));
    world.flare.settle(with.id, receipts).await.unwrap();

    put(&world, 1, 2, r#""public":false,"secret":1"#).await;
    spread(&world).await;
    let pulled = pull().await;
    let said: serde_json::Value = serde_json::from_slice(&pulled[0].notification).unwrap();
    assert_eq!((said["action"].as_str(), said.get("document")), (Some("delete"), None));
}

async fn spread(world: &World) {
    let store = world.stores.repository();
    world.until("all is spread", async || store.count_undispatched(None).await.unwrap() == 0).await;
}

#[tokio::test]
async fn a_backfill_gives_what_the_filter_wants_and_a_resync_takes_back_what_it_refuses() {
    let mut world = in_memory(few_slots());
    world.start();
    let mut seen = 0;
    let resource = world.users().await;
    for id in 0..60 {
        put(&world, id, 1, &format!(r#""public":{}"#, id % 3 == 0)).await;
    }
    world.settled().await;
    let with = subscribe(&world, &resource, hook("a").filter(PUBLIC).backfill(true)).await;
    let done = async |resync: bool| {
        let report = world.flare.subscription_status(with.id).await.unwrap();
        let progress = if resync { report.resync } else { report.backfill };
        progress.is_some_and(|it| it.done && it.scanned == 60)
    };
    world.until("the backfill is done", async || done(false).await).await;
    let mut said = actions(&world, &mut seen);
    said.sort();
    let mut expected: Vec<_> =
        (0..60).filter(|id| id % 3 == 0).map(|id| (url(id), Action::Create)).collect();
    expected.sort();
    assert_eq!(said, expected);
    assert_eq!(rows(&world, with.id, 0..60).await, 20);

    // Every other one of them is to go, and one that it never had is to come.
    let filter = "int(params.id) % 2 == 0 || params.id == '1'";
    world.flare.replace_subscription(with.id, hook("a").filter(filter)).await.unwrap();
    world.flare.resync(with.id, None).await.unwrap();
    world.until("the resync is done", async || done(true).await).await;
    let mut said = actions(&world, &mut seen);
    said.sort();
    let wanted = |id: &u32| id.is_multiple_of(2) || *id == 1;
    let has = |id: &u32| id.is_multiple_of(3);
    let mut expected: Vec<_> = (0..60)
        .filter(|id| wanted(id) || has(id))
        .map(|id| (url(id), if wanted(&id) { Action::Create } else { Action::Delete }))
        .collect();
    expected.sort();
    assert_eq!(said, expected);
}

#[tokio::test]
async fn what_is_wrong_is_refused_where_it_stands() {
    let world = in_memory(few_slots());
    let resource = world.users().await;
    let cases = [
        ("document.a ==", "filter", "line 1, column 14"),
        ("true &&\n  nobody.a", "filter", "line 2, column 3"),
        ("params.name == 'x'", "filter", "no wildcard {name}"),
        ("document.size() + 1", "filter", "must be true or false"),
    ];
    for (filter, field, reason) in cases {
        let spec = hook("a").filter(filter);
        let error = world.flare.create_subscription(resource.id, spec).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)), "{filter}");
        assert!(error.to_string().contains(reason), "{filter}: {error}");
    }
    let with = world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let wrong = world.flare.replace_subscription(with.id, hook("a").filter("1")).await;
    assert_eq!(wrong.unwrap_err().field(), Some("filter"));
}
