//! What a host meets in its first hour: running and ending it, what it says of itself, what it takes and
//! what it refuses, with the hint that helps.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::model::{DocumentUrl, Invalid, SubscriptionReport};
use flare_core::port::{Clock, DeliveryOutcome, Lease, Page};
use flare_core::prelude::*;
use flare_testkit::RecordingDelivery;

use crate::support::{World, few_slots, in_memory};

const LONG: Duration = Duration::from_secs(30);

fn notes() -> NewResource {
    NewResource::new("http://api.example/notes/{id}").change_field("rev")
}

fn hook() -> SubscriptionSpec {
    SubscriptionSpec::post("http://client.example/{id}").build().unwrap()
}

struct Host {
    delivery: RecordingDelivery,
    flare: Flare,
    runtime: Runtime,
}

fn host(memory: &MemoryBackend) -> Host {
    let delivery = RecordingDelivery::default();
    let builder = Flare::builder(memory.clone()).delivery(Arc::new(delivery.clone()));
    let (flare, runtime) = builder.build().unwrap();
    Host { delivery, flare, runtime }
}

#[tokio::test]
async fn a_spawned_runtime_delivers_what_there_is_before_it_ends() {
    let Host { delivery, flare, runtime } = host(&MemoryBackend::new());
    let running = runtime.spawn();
    let resource = flare.create_resource(notes()).await.unwrap();
    flare.create_subscription(resource.id, hook()).await.unwrap();
    for id in 0..20 {
        flare.put_json(&resource.url([id.to_string()]).unwrap(), r#"{"rev":1}"#).await.unwrap();
    }
    assert!(running.is_running());
    let left = running.settle_and_drain(LONG).await.unwrap();
    assert!(left.is_nothing() && left.subscriptions.is_empty(), "{left}");
    assert_eq!(left.to_string(), "nothing is left");
    assert_eq!(delivery.total(), 20);
    assert!(!flare.node().running);
}

#[tokio::test]
async fn an_end_says_what_is_left_and_for_whom() {
    let Host { delivery, flare, runtime } = host(&MemoryBackend::new());
    let running = runtime.spawn();
    let resource = flare.create_resource(notes()).await.unwrap();
    let hangs = SubscriptionSpec::post("http://hangs.example/").build().unwrap();
    let hangs = flare.create_subscription(resource.id, hangs).await.unwrap();
    flare.create_subscription(resource.id, hook()).await.unwrap();
    delivery.hang("http://hangs.example/");
    for id in 0..3 {
        flare.put_json(&resource.url([id.to_string()]).unwrap(), r#"{"rev":1}"#).await.unwrap();
    }
    let left = running.settle_and_drain(Duration::from_millis(300)).await.unwrap();
    assert_eq!((left.spreading, left.pending), (0, 3));
    assert_eq!(left.subscriptions, [(hangs.id, 3)]);
    let said = left.to_string();
    assert_eq!(said, "0 changes are not spread and 3 notifications are pending");
}

#[tokio::test]
async fn an_end_in_a_hurry_leaves_no_lease_behind() {
    let memory = MemoryBackend::new();
    let Host { delivery, flare, runtime } = host(&memory);
    let mut running = runtime.spawn();
    let resource = flare.create_resource(notes()).await.unwrap();
    flare.create_subscription(resource.id, hook()).await.unwrap();
    delivery.hang("http://client.example/1");
    flare.put_json("http://api.example/notes/1", r#"{"rev":1}"#).await.unwrap();
    while delivery.in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    // Asked for a failure beside other work, which ends first: it can still be drained.
    tokio::select! {
        biased;
        error = running.failed() => panic!("{error}"),
        () = std::future::ready(()) => {}
    }
    let left = running.drain(Duration::from_millis(50)).await.unwrap();
    assert_eq!(left.pending, 1);
    let nodes = memory.lease().list("cluster/nodes/").await.unwrap();
    assert!(nodes.entries.is_empty(), "the next runtime works at once: {nodes:?}");
}

#[tokio::test]
async fn any_future_ends_a_run_whatever_it_gives() {
    let Host { runtime, .. } = host(&MemoryBackend::new());
    runtime.run(async { Ok::<u8, std::io::Error>(7) }).await.unwrap();
}

#[tokio::test]
async fn what_never_settles_says_that_nobody_works() {
    let memory = MemoryBackend::new();
    let Host { flare, runtime, .. } = host(&memory);
    let resource = flare.create_resource(notes()).await.unwrap();
    flare.create_subscription(resource.id, hook()).await.unwrap();
    flare.put_json("http://api.example/notes/1", r#"{"rev":1}"#).await.unwrap();
    let error = flare.settled(Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let nobody = "no runtime has run on these stores";
    assert!(error.to_string().contains(nobody), "{error}");
    // One of another handle is a runtime too.
    let running = host(&memory).runtime.spawn();
    flare.settled(LONG).await.unwrap();
    running.drain(LONG).await.unwrap();
    drop(runtime);
}

#[tokio::test]
async fn after_settled_the_counters_are_right() {
    let Host { flare, runtime, .. } = host(&MemoryBackend::new());
    let running = runtime.spawn();
    let resource = flare.create_resource(notes()).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..3 {
        let spec = SubscriptionSpec::post(format!("http://client.example/{number}/{{id}}"));
        ids.push(flare.create_subscription(resource.id, spec.lanes(2)).await.unwrap().id);
    }
    for round in 1..=10 {
        for id in 0..7 {
            let url = format!("http://api.example/notes/{id}");
            flare.put_json(&url, format!(r#"{{"rev":{round}}}"#)).await.unwrap();
        }
        flare.settled(LONG).await.unwrap();
        for id in &ids {
            let report = flare.subscription_status(*id).await.unwrap();
            assert_eq!(report.delivered, 7 * round, "each round was settled before the next");
            assert_eq!((report.in_flight, report.lag), (0, 0), "round {round}");
        }
    }
    running.drain(LONG).await.unwrap();
}

/// A client that fails, and how it is doing after a minute.
async fn failing(world: &mut World) -> (Resource, Subscription, SubscriptionReport) {
    let resource = world.users().await;
    let spec = SubscriptionSpec::post("http://down.example/");
    let subscription = world.calm.create_subscription(resource.id, spec).await.unwrap();
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(500));
    world.start();
    world.put(1, 1).await;
    world.pass(Duration::from_secs(60)).await;
    let report = world.flare.subscription_status(subscription.id).await.unwrap();
    (resource, subscription, report)
}

#[tokio::test]
async fn a_status_says_how_the_client_is_and_when_it_is_tried() {
    let mut world = in_memory(few_slots());
    let (_, subscription, report) = failing(&mut world).await;
    assert!(report.probing, "{report:?}");
    assert!(report.consecutive_failures >= 5, "{report:?}");
    assert!(report.last_error_at.is_some_and(|at| at <= world.clock.now()), "{report:?}");
    for _ in 0..100 {
        world.pass(Duration::from_secs(1)).await;
        let report = world.flare.subscription_status(subscription.id).await.unwrap();
        let next = report.next_attempt_at.unwrap();
        assert!(next >= world.clock.now(), "{next} is past at {}", world.clock.now());
    }
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(200));
    world.settled().await;
    world.pass(Duration::from_secs(2)).await;
    let report = world.flare.subscription_status(subscription.id).await.unwrap();
    assert_eq!((report.probing, report.consecutive_failures), (false, 0));
    assert!(report.last_error_at < report.last_success_at, "what is past is marked so");
    assert_eq!(report.next_attempt_at, None);
}

#[tokio::test]
async fn a_client_that_is_mended_can_be_tried_now() {
    let mut world = in_memory(few_slots());
    let (_, subscription, _) = failing(&mut world).await;
    world.pass(Duration::from_secs(3_600)).await;
    let report = world.flare.subscription_status(subscription.id).await.unwrap();
    let wait = report.next_attempt_at.unwrap() - world.clock.now();
    assert!(wait > Duration::from_secs(10), "it waits by then: {wait:?}");
    world.delivery.answer("http://down.example/", DeliveryOutcome::answered(200));
    world.flare.retry_now(subscription.id).await.unwrap();
    world.pass(Duration::from_secs(2)).await;
    let report = world.flare.subscription_status(subscription.id).await.unwrap();
    assert_eq!((report.lag, report.delivered, report.probing), (0, 1, false));

    world.flare.pause(subscription.id).await.unwrap();
    let error = world.flare.retry_now(subscription.id).await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some("status")));
    assert!(error.to_string().contains("paused"), "{error}");
}

#[tokio::test]
async fn events_go_on_for_whoever_was_too_slow() {
    let Host { flare, runtime, .. } = host(&MemoryBackend::new());
    let running = runtime.spawn();
    let resource = flare.create_resource(notes()).await.unwrap();
    flare.create_subscription(resource.id, hook()).await.unwrap();
    let mut events = flare.events();
    for id in 0..1_500 {
        flare.put_json(&format!("http://api.example/notes/{id}"), r#"{"rev":1}"#).await.unwrap();
    }
    flare.settled(LONG).await.unwrap();
    let heard = std::iter::from_fn(|| events.try_next()).count() as u64;
    assert!(heard > 0 && events.missed() > 0, "{heard} heard, {} missed", events.missed());
    assert_eq!(heard + events.missed(), 1_500);
    running.drain(LONG).await.unwrap();
}

#[tokio::test]
async fn a_host_that_starts_again_finds_what_it_made() {
    let memory = MemoryBackend::new();
    let Host { flare, runtime, .. } = host(&memory);
    drop(runtime);
    let resource = flare.ensure_resource(notes()).await.unwrap();
    assert_eq!(flare.ensure_resource(notes()).await.unwrap(), resource);
    let made = flare.ensure_subscription(resource.id, hook()).await.unwrap();
    assert_eq!(flare.ensure_subscription(resource.id, hook()).await.unwrap().id, made.id);
    assert_eq!(flare.subscriptions(resource.id, Page::new(10, 0)).await.unwrap().total, 1);

    let differing = [
        (NewResource::new("http://api.example/notes/{note}").change_field("rev"), "endpoint"),
        (NewResource::new("http://api.example/notes/{id}").change_field("version"), "change.field"),
        (NewResource::new("http://api.example/notes/{id}").change("rev", "unix"), "change.format"),
    ];
    for (new, field) in differing {
        let error = flare.ensure_resource(new).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some(field)));
        assert_eq!(error.operation(), "ensure_resource");
        assert!(error.to_string().contains(&resource.id.to_string()), "{error}");
    }
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let post = || SubscriptionSpec::post("http://client.example/{id}");
    let differing = [
        (post().concurrency(3), "delivery.concurrency"),
        (post().signing([secret]), "signing"),
        (post().header("x-tenant", "a"), "endpoint.headers.x-tenant"),
        (post().header("authorization", "a"), "endpoint.headers.authorization"),
        (post().data("tenant", "a"), "data"),
    ];
    for (spec, field) in differing {
        let error = flare.ensure_subscription(resource.id, spec).await.unwrap_err();
        assert_eq!((error.kind(), error.field()), (ErrorKind::Conflict, Some(field)));
        assert!(error.to_string().contains(&made.id.to_string()), "{error}");
    }
}

#[tokio::test]
async fn a_conflict_names_what_the_caller_did_and_what_clashes() {
    let Host { flare, .. } = host(&MemoryBackend::new());
    let resource = flare.create_resource(notes()).await.unwrap();
    let error = flare.create_resource(notes()).await.unwrap_err();
    assert_eq!((error.operation(), error.field()), ("create_resource", Some("endpoint")));
    flare.create_subscription(resource.id, hook()).await.unwrap();
    let error = flare.create_subscription(resource.id, hook()).await.unwrap_err();
    assert_eq!((error.operation(), error.field()), ("create_subscription", Some("endpoint.url")));
    assert!(error.to_string().contains("http://client.example/{id} "), "{error}");
}

#[test]
fn habits_from_elsewhere_are_refused_with_what_to_write() {
    let endpoints = [
        ("http://a.example/users/:id", "{id}"),
        ("http://a.example/shops/{shop}/users/:id", "{id}"),
        ("http://a.example/users/*", "{id}"),
        ("http://a.example/shops/{shop}/*", "{id}"),
        ("http://a.example/files/{*rest}", "{rest}"),
        ("http://a.example/files/{rest...}", "{rest}"),
        ("http://a.example/users", "{id}"),
    ];
    for (endpoint, hint) in endpoints {
        let refused = NewResource::new(endpoint).change_field("rev").check().unwrap_err();
        assert_eq!(refused.field(), "endpoint", "{endpoint}");
        assert!(refused.reason().contains(hint), "{endpoint}: {refused}");
    }
    let on = |field: &str, format: Option<&str>| {
        let new = NewResource::new("http://a.example/users/{id}");
        match format {
            Some(format) => new.change(field, format).check(),
            None => new.change_field(field).check(),
        }
    };
    let refused = on("meta.rev", None).unwrap_err();
    assert_eq!(refused.field(), "change.field");
    assert!(refused.reason().contains("/meta/rev"), "{refused}");
    assert!(on("/meta.rev", None).is_ok() && on("/meta/rev", None).is_ok());
    for format in
        ["iso8601", "RFC1123", "15:04", "2006-01", "01-02", "2006-01-02 HH:mm", "2006-01-02Tss"]
    {
        let refused = on("at", Some(format)).unwrap_err();
        assert_eq!(refused.field(), "change.format", "{format}");
        assert!(refused.reason().contains("2006-01-02T15:04:05Z07:00"), "{format}: {refused}");
    }
    for format in [
        "2006-01-02",
        "2006-01-02T15:04:05Z",
        "Mon, 02 Jan 2006 15:04:05 GMT",
        "January 2, 2006 at 3:04pm (MST)",
        "2006-002",
        "02.01.06 15:04",
        "02/01/2006 15h04m05s",
    ] {
        assert!(on("at", Some(format)).is_ok(), "{format}");
    }
}

#[test]
fn a_secret_of_the_wrong_form_says_how_one_is_made() {
    let wrong = vec!["secret".to_owned()];
    let refused = SubscriptionSpec::post("http://c.example/").signing(&wrong).build().unwrap_err();
    assert_eq!(refused.field(), "signing.secrets[0]");
    assert!(refused.reason().contains("openssl rand -base64 32"), "{refused}");
}

#[test]
fn refusals_of_values_pass_for_errors() {
    fn check() -> Result<()> {
        SubscriptionSpec::post("nowhere").build()?;
        Ok(())
    }
    let error = check().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("endpoint.url")));
    let error = Error::from(Invalid::new("a", "b"));
    assert_eq!(error.to_string(), "check: invalid: a: b");
}

#[tokio::test]
async fn a_deletion_takes_its_revision_as_integer_or_text() {
    let Host { flare, .. } = host(&MemoryBackend::new());
    flare.create_resource(notes()).await.unwrap();
    for (put, deleted) in [(1, 2_i64), (3, 4)] {
        let url = "http://api.example/notes/1";
        flare.put_json(url, format!(r#"{{"rev":{put}}}"#)).await.unwrap();
        let change = match deleted {
            2 => flare.delete_document_at(url, deleted).await,
            _ => flare.delete_document_at(url, "4").await,
        };
        assert_eq!(change.unwrap(), DocumentChange::Deleted);
    }
}

#[test]
fn urls_of_documents_are_made_by_their_resource() {
    let (endpoint, change) =
        NewResource::new("http://api.example/a/{x}/b/{y}").change_field("rev").check().unwrap();
    let id = ResourceId::from_bytes([1; 16]);
    let resource = Resource::new(id, endpoint, change, flare_core::model::Timestamp::EPOCH);
    for (values, made) in [
        (["1", "2"], "http://api.example/a/1/b/2"),
        (["a/b", "c d?"], "http://api.example/a/a%2Fb/b/c%20d%3F"),
        (["é", "%"], "http://api.example/a/%C3%A9/b/%25"),
    ] {
        assert_eq!(resource.url(values).unwrap(), made);
        let url = DocumentUrl::parse(made).unwrap();
        let params = resource.endpoint.matches(&url).unwrap();
        assert_eq!([params.get("x"), params.get("y")], values.map(Some));
    }
    for wrong in [vec!["1"], vec!["1", "2", "3"], vec!["", "2"], vec!["..", "2"]] {
        assert_eq!(resource.url(&wrong).unwrap_err().field(), "values", "{wrong:?}");
    }
}

#[cfg(feature = "http")]
#[test]
fn networks_are_allowed_on_the_builder() {
    let memory = MemoryBackend::new();
    let built = Flare::builder(memory.clone()).allow("10.0.0.0/8").allow("127.0.0.1");
    assert!(built.http(HttpConfig::new()).build().is_ok(), "in whatever order");
    let refused = Flare::builder(memory).allow("home").build().unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("allow")));
}

#[tokio::test]
async fn a_subscription_is_shown_as_json() {
    let Host { flare, .. } = host(&MemoryBackend::new());
    let resource = flare.create_resource(notes()).await.unwrap();
    let made = flare.create_subscription(resource.id, hook()).await.unwrap();
    let shown = serde_json::to_value(&made).unwrap();
    assert_eq!(shown["id"], made.id.to_string());
    assert_eq!(shown["endpoint"]["url"], "http://client.example/{id}");
    assert_eq!((&shown["status"], &shown["generation"]), (&"active".into(), &2.into()));
    assert!(shown.get("leastEpoch").is_none(), "{shown}");
}
