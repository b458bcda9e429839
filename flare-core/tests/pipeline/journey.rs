//! The journey as a host sees it: a whole Flare on memory, with a transport that records.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_core::model::subscription::{RetryPolicy, SubscriptionBuilder};
use flare_core::model::{Action, DocumentChange, Method, NewResource, SubscriptionSpec};
use flare_core::port::{DeliveryOutcome, Page, Queue, QueueName};
use flare_core::{ErrorKind, Flare};
use flare_core::{EventKind, Settings};
use flare_testkit::{FaultPlan, FaultyQueue, FaultyRepository};
use futures::StreamExt;

use crate::support::{World, in_memory, url};

/// A Flare that runs.
fn running(settings: Settings) -> World {
    let mut world = in_memory(settings);
    world.start();
    world
}

fn few_slots() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(4);
    settings
}

fn hook(name: &str) -> SubscriptionBuilder {
    SubscriptionSpec::post(format!("http://{name}.example/hook/{{id}}?rev={{revision}}"))
}

/// What clients were asked for, in order.
fn told(world: &World) -> Vec<String> {
    world.delivery.requests().into_iter().map(|it| it.request.url).collect()
}

#[tokio::test]
async fn a_request_is_built_as_promised() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    let spec = hook("a")
        .header("x-user", "{id}")
        .data("kind", "user {id}")
        .action_method(Action::Delete, Method::Delete);
    let subscription = world.flare.create_subscription(resource.id, spec).await.unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let url = "http://API.example:80/users/a%2Fb%20c";
    let json = r#"{"rev": 7, "big": 12345678901234567890}"#;
    world.flare.put_traced(url, json, Some(trace.parse().unwrap())).await.unwrap();
    world.settled().await;
    world.flare.delete_document_at(url, 9).await.unwrap();
    world.settled().await;

    let requests = world.delivery.requests();
    let [created, deleted] = requests.as_slice() else { panic!("{requests:?}") };
    let request = &created.request;
    assert_eq!(request.subscription, subscription.id);
    assert_eq!(request.url, "http://a.example/hook/a%2Fb%20c?rev=7");
    assert_eq!(request.method.as_str(), "POST");
    let header = |name: &str| {
        let found = request.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(header("x-user"), Some("a/b%20c"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("flare-action"), Some("create"));
    assert_eq!(header("flare-revision"), Some("7"));
    assert_eq!(header("traceparent"), Some(trace));
    assert!(header("webhook-id").unwrap().starts_with("msg_"));
    let began = 1_700_000_000;
    let sent: i64 = header("webhook-timestamp").unwrap().parse().unwrap();
    assert!((began..began + 60).contains(&sent), "{sent}");
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    assert!(body.starts_with(r#"{"id":"http://api.example/users/a%2Fb%20c","action":"create","revision":7,"updatedAt":""#), "{body}");
    assert!(
        body.ends_with(&format!(r#""data":{{"kind":"user a/b c"}},"document":{json}}}"#)),
        "{body}"
    );

    assert_eq!(deleted.request.method.as_str(), "DELETE");
    assert_eq!(deleted.request.url, "http://a.example/hook/a%2Fb%20c?rev=9");
    world.stop().await;
}

#[tokio::test]
async fn every_subscription_of_many_partitions_is_told_once() {
    let mut settings = few_slots();
    settings.partition_limit = 3;
    let mut world = running(settings);
    let resource = world.users().await;
    for n in 0..10 {
        world.flare.create_subscription(resource.id, hook(&format!("c{n}"))).await.unwrap();
    }
    let documents = (0..20).map(|n| (format!("http://api.example/users/{n}"), r#"{"rev":1}"#));
    for answer in world.flare.put_documents(documents).await {
        assert_eq!(answer.unwrap(), DocumentChange::Created);
    }
    world.settled().await;
    assert_eq!(world.delivery.total(), 200);
    world.stop().await;
}

#[tokio::test]
async fn the_same_or_an_older_revision_is_told_nobody() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let mut answers = Vec::new();
    for rev in [5, 5, 4, 6] {
        answers.push(world.put("1", rev).await);
        world.settled().await;
    }
    use DocumentChange::*;
    assert_eq!(answers, [Created, Unchanged, Stale, Updated]);
    assert_eq!(world.delivery.total(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_was_down_gets_the_newest_version_once() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    let retry = RetryPolicy::builder()
        .num_retries(100)
        .min_delay_target(Duration::from_secs(1))
        .max_delay_target(Duration::from_secs(1))
        .build()
        .unwrap();
    world.flare.create_subscription(resource.id, hook("a").retry(retry)).await.unwrap();
    let url = "http://a.example/hook/1?rev=1";
    world.delivery.answer(url, DeliveryOutcome::answered(503));
    let mut events = world.flare.events();
    world.put("1", 1).await;
    let failed = world.in_time(events.next()).await.unwrap();
    assert!(matches!(failed.kind, EventKind::Failed { attempts: 1, .. }), "{failed:?}");
    for rev in 2..50 {
        world.put("1", rev).await;
    }
    world.settled().await;
    let told = told(&world);
    assert_eq!(told.last().map(String::as_str), Some("http://a.example/hook/1?rev=49"));
    assert_eq!(told.len(), 2, "{told:?}");
    world.stop().await;
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_a_hopeless_one_becomes_a_dead_letter() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    let never = RetryPolicy::builder().num_retries(0).build().unwrap();
    world
        .flare
        .create_subscription(resource.id, hook("a").discard([409]).retry(never))
        .await
        .unwrap();
    world.delivery.answer("http://a.example/hook/1?rev=1", DeliveryOutcome::answered(409));
    world.delivery.answer("http://a.example/hook/2?rev=1", DeliveryOutcome::answered(500));
    let mut events = world.flare.events();
    world.put("1", 1).await;
    world.settled().await;
    world.put("2", 1).await;
    world.settled().await;
    assert!(matches!(events.next().await.unwrap().kind, EventKind::Discarded(_)));
    let dead = events.next().await.unwrap();
    let EventKind::DeadLettered { told, error } = dead.kind else { panic!("{dead:?}") };
    assert_eq!(
        (told.document.as_str(), error.as_str()),
        ("http://api.example/users/2", "answered 500")
    );
    // A refused create stays a create.
    world.put("1", 2).await;
    world.settled().await;
    assert_eq!(world.delivery.requests().last().unwrap().request.action, Action::Create);
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_hangs_delays_no_other_and_no_put() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    for name in ["slow", "quick"] {
        let spec = hook(name).concurrency(1);
        world.flare.create_subscription(resource.id, spec).await.unwrap();
    }
    world.delivery.hang("http://slow.example/hook/0?rev=1");
    for n in 0..50 {
        world.put(n, 1).await;
    }
    // Fifty for the quick one, and the one that hangs.
    world.in_time(world.delivery.wait_for(51)).await;
    let requests = world.delivery.requests();
    let slow = requests.iter().filter(|it| it.request.url.starts_with("http://slow")).count();
    assert_eq!(slow, 1);
    world.delivery.release("http://slow.example/hook/0?rev=1");
    world.settled().await;
    assert_eq!(world.delivery.total(), 100);
    world.stop().await;
}

#[tokio::test]
async fn draining_finishes_what_is_in_flight_and_loses_nothing() {
    let mut world = running(few_slots());
    let resource = world.users().await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    world.delivery.hang("http://a.example/hook/1?rev=1");
    world.put("1", 1).await;
    world.in_time(world.delivery.wait_for(1)).await;
    let stopped = world.stop();
    // Accepted although nothing runs any more.
    world.put("2", 1).await;
    world.delivery.release("http://a.example/hook/1?rev=1");
    stopped.await;
    assert_eq!(told(&world), ["http://a.example/hook/1?rev=1"]);

    world.start();
    world.settled().await;
    let told = told(&world);
    assert_eq!(told[1..], ["http://a.example/hook/2?rev=1"], "what was answered is not told again");
    world.stop().await;
}

#[tokio::test]
async fn a_second_runtime_takes_puts_but_works_no_lane_until_the_first_is_gone() {
    let mut first = running(few_slots());
    let resource = first.users().await;
    first.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    first.put("1", 1).await;
    first.settled().await;
    let mut second = World::at(first.clock.clone(), first.stores.clone(), few_slots());
    second.start();
    second.put("2", 1).await;
    second.settled().await;
    assert_eq!((first.delivery.total(), second.delivery.total()), (2, 0));
    first.stop().await;
    second.put("3", 1).await;
    second.settled().await;
    assert_eq!(second.delivery.total(), 1);
    second.stop().await;
}

#[tokio::test]
async fn two_flares_in_one_process_do_not_meet() {
    let (mut one, mut two) = (running(few_slots()), running(few_slots()));
    for world in [&one, &two] {
        let resource = world.users().await;
        world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    }
    one.put("1", 1).await;
    one.settled().await;
    assert_eq!((one.delivery.total(), two.delivery.total()), (1, 0));
    one.stop().await;
    two.put("1", 1).await;
    two.settled().await;
    assert_eq!(two.delivery.total(), 1);
    two.stop().await;
}

#[tokio::test]
async fn a_put_is_accepted_while_the_queue_fails_and_arrives_once_it_works() {
    let faults = FaultPlan::seeded(1).with_before(1.0);
    let mut settings = few_slots();
    settings.reconcile_every = Duration::from_millis(50);
    settings.rederive_every = Duration::from_millis(50);
    settings.sweep_every = Duration::from_millis(50);
    let mut world = in_memory(settings);
    let queue = FaultyQueue::new(world.stores.queue(), faults.clone());
    world.backend.queue = Some(Arc::new(queue));
    world.start();
    let resource = world.users().await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    assert_eq!(world.put("1", 1).await, DocumentChange::Created);
    faults.heal();
    world.settled().await;
    assert_eq!(world.delivery.total(), 1);
}

#[tokio::test]
async fn a_queue_that_vanished_is_brought_back() {
    let mut world = running(few_slots());
    let memory = world.stores.clone();
    let resource = world.users().await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    world.put("1", 1).await;
    world.settled().await;
    let names: Vec<_> = memory.queue().list().collect().await;
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        memory.queue().delete(&name.unwrap()).await.unwrap();
    }
    world.put("2", 1).await;
    world.settled().await;
    assert_eq!(world.delivery.total(), 2);
    assert!(memory.queue().depth(&QueueName::Partition).await.is_ok());
    world.stop().await;
}

#[tokio::test]
async fn a_full_store_answers_busy_and_goes_on_delivering() {
    let config = MemoryConfig::default().max_bytes(2_000);
    let full = |clock| MemoryBackend::with_config(config, clock);
    let mut world = World::on(full, few_slots());
    world.start();
    let resource = world.users().await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let mut refused = None;
    for n in 0..20 {
        if let Err(error) = world.flare.put_json(&url(n), r#"{"rev":1}"#).await {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.is_temporary() && refused.to_string().contains("max-bytes"), "{refused}");
    world.flare.delete_document("http://api.example/users/0").await.unwrap();
    world.settled().await;
    world.stop().await;
}

#[tokio::test]
async fn wrong_input_is_explained() {
    let mut world = running(few_slots());
    let flare = world.flare.clone();
    let refused = flare.create_resource(NewResource::new("http://a.example/x").change_field("rev"));
    let error = refused.await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("endpoint")));

    let resource = world.users().await;
    let error = flare
        .create_resource(NewResource::new("http://API.example/users/{name}").change_field("v"))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("endpoint")));

    let unknown = hook("a").header("x", "{nobody}");
    let error = flare.create_subscription(resource.id, unknown).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("nobody"), "{error}");

    flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let error = flare.create_subscription(resource.id, hook("a")).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("endpoint.url")));

    let unsupported =
        [(hook("b").filter("nobody"), "filter"), (hook("b").lanes(1_000), "delivery.lanes")];
    for (spec, field) in unsupported {
        let error = flare.create_subscription(resource.id, spec).await.unwrap_err();
        assert_eq!(error.field(), Some(field), "never stored and ignored");
    }

    for (url, json, kind, field) in [
        ("http://other.example/users/1", r#"{"rev":1}"#, ErrorKind::NotFound, "url"),
        ("ftp://api.example/users/1", r#"{"rev":1}"#, ErrorKind::Invalid, "url"),
        ("http://api.example/users/1", r#"{"rev":1.5}"#, ErrorKind::Invalid, "rev"),
        ("http://api.example/users/1", "[]", ErrorKind::Invalid, "document"),
        ("http://api.example/users/1", "", ErrorKind::Invalid, "document"),
    ] {
        let error = flare.put_json(url, json).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (kind, Some(field)), "{url} {json}");
    }
    let error = flare.delete_document_at("http://api.example/users/1", "x").await.unwrap_err();
    assert_eq!(error.field(), Some("revision"));
    assert_eq!(flare.subscriptions(resource.id, Page::new(30, 0)).await.unwrap().total, 1);
    world.stop().await;
}

#[tokio::test]
async fn figures_that_cannot_work_are_refused_before_anything_starts() {
    type Spoil = fn(&mut Settings);
    let wrong: [(&str, Spoil); 3] = [
        ("slots", |settings| settings.slots = Some(0)),
        ("concurrency", |settings| settings.concurrency = 0),
        ("timeout", |settings| settings.timeout = Duration::ZERO),
    ];
    for (field, spoil) in wrong {
        let mut settings = Settings::default();
        spoil(&mut settings);
        let error = Flare::builder(MemoryBackend::new()).settings(settings).build().unwrap_err();
        assert_eq!(error.field(), Some(field));
    }
    let error = Flare::builder(flare_core::Backend::none()).build().unwrap_err();
    assert_eq!(error.field(), Some("repository"));
}

#[tokio::test]
async fn one_put_more_than_allowed_is_answered_busy() {
    let mut settings = few_slots();
    settings.ingest_limit = 1;
    // It waits for a quarter of this, and the first one takes longer.
    settings.ingest_wait = Duration::from_nanos(4);
    let world = in_memory(settings).behind(|repository, clock| {
        let late = FaultyRepository::new(repository, FaultPlan::seeded(1));
        late.delaying(1.0, Duration::from_secs(1), clock)
    });
    world.users().await;
    let put = |id: &'static str| {
        let flare = world.flare.clone();
        async move { flare.put_json(&url(id), r#"{"rev":1}"#).await }
    };
    let (first, second) = world.in_time(async { tokio::join!(put("1"), put("2")) }).await;
    assert_eq!(first.unwrap(), DocumentChange::Created);
    let busy = second.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains("ingest_limit"), "{busy}");
    assert_eq!(world.in_time(put("2")).await.unwrap(), DocumentChange::Created);
}
