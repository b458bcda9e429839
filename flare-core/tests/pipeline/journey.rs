//! The journey as a host sees it: a whole Flare on memory, with a transport that records.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_core::model::subscription::Mode;
use flare_core::model::{
    Action, DocumentChange, Method, NewResource, Resource, SubscriptionSpec, Timestamp,
};
use flare_core::pipeline::{EventKind, Settings};
use flare_core::port::{Clock, DeliveryOutcome, Page, Queue, QueueName, SystemClock};
use flare_core::{ErrorKind, Flare};
use flare_testkit::{FaultPlan, FaultyQueue, FaultyRepository, ManualClock, RecordingDelivery};
use futures::StreamExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(20);

/// A Flare with a transport that records, and whatever runs behind it.
struct World {
    flare: Flare,
    delivery: RecordingDelivery,
    stop: oneshot::Sender<()>,
    running: JoinHandle<flare_core::Result<()>>,
}

impl World {
    fn start(memory: &MemoryBackend, settings: Settings) -> Self {
        let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
        let (flare, runtime) = Flare::builder(memory.clone())
            .delivery(Arc::new(delivery.clone()))
            .settings(settings)
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(runtime.run(async { drop(stopped.await) }));
        Self { flare, delivery, stop, running }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.running.await.unwrap().unwrap();
    }
}

fn few_slots() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(4);
    settings
}

async fn users(flare: &Flare) -> Resource {
    let new = NewResource::new("http://api.example/users/{id}").change_field("rev");
    flare.create_resource(new).await.unwrap()
}

fn hook(name: &str) -> flare_core::model::subscription::SubscriptionBuilder {
    SubscriptionSpec::post(format!("http://{name}.example/hook/{{id}}?rev={{revision}}"))
}

async fn put(flare: &Flare, id: &str, rev: i64) -> flare_core::Result<DocumentChange> {
    flare.put_json(&format!("http://api.example/users/{id}"), format!(r#"{{"rev":{rev}}}"#)).await
}

#[tokio::test]
async fn a_request_is_built_as_promised() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let resource = users(&world.flare).await;
    let spec = hook("a")
        .header("x-user", "{id}")
        .data("kind", "user {id}")
        .action_method(Action::Delete, Method::Delete);
    let subscription = world.flare.create_subscription(resource.id, spec).await.unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let url = "http://API.example:80/users/a%2Fb%20c";
    let json = r#"{"rev": 7, "big": 12345678901234567890}"#;
    world.flare.put_traced(url, json, Some(trace.parse().unwrap())).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    world.flare.delete_document_at(url, 9).await.unwrap();
    world.flare.settled(SOON).await.unwrap();

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
    assert!(header("webhook-timestamp").unwrap().parse::<i64>().unwrap() > 1_700_000_000);
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
    let world = World::start(&MemoryBackend::new(), settings);
    let resource = users(&world.flare).await;
    for n in 0..10 {
        world.flare.create_subscription(resource.id, hook(&format!("c{n}"))).await.unwrap();
    }
    let documents = (0..20).map(|n| (format!("http://api.example/users/{n}"), r#"{"rev":1}"#));
    for answer in world.flare.put_documents(documents).await {
        assert_eq!(answer.unwrap(), DocumentChange::Created);
    }
    world.flare.settled(SOON).await.unwrap();
    assert_eq!(world.delivery.total(), 200);
    world.stop().await;
}

#[tokio::test]
async fn the_same_or_an_older_revision_is_told_nobody() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let resource = users(&world.flare).await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let mut answers = Vec::new();
    for rev in [5, 5, 4, 6] {
        answers.push(put(&world.flare, "1", rev).await.unwrap());
        world.flare.settled(SOON).await.unwrap();
    }
    use DocumentChange::*;
    assert_eq!(answers, [Created, Unchanged, Stale, Updated]);
    assert_eq!(world.delivery.total(), 2);
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_was_down_gets_the_newest_version_once() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let resource = users(&world.flare).await;
    let retry = flare_core::model::subscription::RetryPolicy::builder()
        .num_retries(100)
        .min_delay_target(1)
        .max_delay_target(1)
        .build()
        .unwrap();
    world.flare.create_subscription(resource.id, hook("a").retry(retry)).await.unwrap();
    let url = "http://a.example/hook/1?rev=1";
    world.delivery.answer(url, DeliveryOutcome::answered(503));
    let mut events = world.flare.events();
    put(&world.flare, "1", 1).await.unwrap();
    let failed = events.next().await.unwrap();
    assert!(matches!(failed.kind, EventKind::Failed { attempts: 1, .. }), "{failed:?}");
    for rev in 2..50 {
        put(&world.flare, "1", rev).await.unwrap();
    }
    world.flare.settled(SOON).await.unwrap();
    let told: Vec<_> = world.delivery.requests().iter().map(|it| it.request.url.clone()).collect();
    assert_eq!(told.last().map(String::as_str), Some("http://a.example/hook/1?rev=49"));
    assert_eq!(told.len(), 2, "{told:?}");
    world.stop().await;
}

#[tokio::test]
async fn a_refusal_is_not_repeated_and_a_hopeless_one_becomes_a_dead_letter() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let resource = users(&world.flare).await;
    let never =
        flare_core::model::subscription::RetryPolicy::builder().num_retries(0).build().unwrap();
    world
        .flare
        .create_subscription(resource.id, hook("a").discard([409]).retry(never))
        .await
        .unwrap();
    world.delivery.answer("http://a.example/hook/1?rev=1", DeliveryOutcome::answered(409));
    world.delivery.answer("http://a.example/hook/2?rev=1", DeliveryOutcome::answered(500));
    let mut events = world.flare.events();
    put(&world.flare, "1", 1).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    put(&world.flare, "2", 1).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    assert!(matches!(events.next().await.unwrap().kind, EventKind::Discarded(_)));
    let dead = events.next().await.unwrap();
    let EventKind::DeadLettered { told, error } = dead.kind else { panic!("{dead:?}") };
    assert_eq!(
        (told.document.as_str(), error.as_str()),
        ("http://api.example/users/2", "answered 500")
    );
    // A refused create stays a create.
    put(&world.flare, "1", 2).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    assert_eq!(world.delivery.requests().last().unwrap().request.action, Action::Create);
    world.stop().await;
}

#[tokio::test]
async fn a_client_that_hangs_delays_no_other_and_no_put() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let resource = users(&world.flare).await;
    for name in ["slow", "quick"] {
        let spec = hook(name).concurrency(1);
        world.flare.create_subscription(resource.id, spec).await.unwrap();
    }
    world.delivery.hang("http://slow.example/hook/0?rev=1");
    for n in 0..50 {
        put(&world.flare, &n.to_string(), 1).await.unwrap();
    }
    // Fifty for the quick one, and the one that hangs.
    world.delivery.wait_for(51).await;
    let requests = world.delivery.requests();
    let slow = requests.iter().filter(|it| it.request.url.starts_with("http://slow")).count();
    assert_eq!(slow, 1);
    world.delivery.release("http://slow.example/hook/0?rev=1");
    world.flare.settled(SOON).await.unwrap();
    assert_eq!(world.delivery.total(), 100);
    world.stop().await;
}

#[tokio::test]
async fn draining_finishes_what_is_in_flight_and_loses_nothing() {
    let memory = MemoryBackend::new();
    let world = World::start(&memory, few_slots());
    let resource = users(&world.flare).await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    world.delivery.hang("http://a.example/hook/1?rev=1");
    put(&world.flare, "1", 1).await.unwrap();
    world.delivery.wait_for(1).await;
    let World { flare, delivery, stop, running } = world;
    let _ = stop.send(());
    // Accepted although nothing runs any more.
    put(&flare, "2", 1).await.unwrap();
    delivery.release("http://a.example/hook/1?rev=1");
    running.await.unwrap().unwrap();

    let world = World::start(&memory, few_slots());
    world.flare.settled(SOON).await.unwrap();
    let told: Vec<_> = world.delivery.requests().iter().map(|it| it.request.url.clone()).collect();
    assert_eq!(told, ["http://a.example/hook/2?rev=1"], "what was answered is not told again");
    world.stop().await;
}

#[tokio::test]
async fn a_second_runtime_takes_puts_but_works_no_lane_until_the_first_is_gone() {
    let memory = MemoryBackend::new();
    let first = World::start(&memory, few_slots());
    let resource = users(&first.flare).await;
    first.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    put(&first.flare, "1", 1).await.unwrap();
    first.flare.settled(SOON).await.unwrap();
    let second = World::start(&memory, few_slots());
    put(&second.flare, "2", 1).await.unwrap();
    second.flare.settled(SOON).await.unwrap();
    assert_eq!((first.delivery.total(), second.delivery.total()), (2, 0));
    first.stop().await;
    put(&second.flare, "3", 1).await.unwrap();
    second.flare.settled(SOON).await.unwrap();
    assert_eq!(second.delivery.total(), 1);
    second.stop().await;
}

#[tokio::test]
async fn two_flares_in_one_process_do_not_meet() {
    let one = World::start(&MemoryBackend::new(), few_slots());
    let two = World::start(&MemoryBackend::new(), few_slots());
    for world in [&one, &two] {
        let resource = users(&world.flare).await;
        world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    }
    put(&one.flare, "1", 1).await.unwrap();
    one.flare.settled(SOON).await.unwrap();
    assert_eq!((one.delivery.total(), two.delivery.total()), (1, 0));
    one.stop().await;
    put(&two.flare, "1", 1).await.unwrap();
    two.flare.settled(SOON).await.unwrap();
    assert_eq!(two.delivery.total(), 1);
    two.stop().await;
}

#[tokio::test]
async fn a_put_is_accepted_while_the_queue_fails_and_arrives_once_it_works() {
    let memory = MemoryBackend::new();
    let faults = FaultPlan::seeded(1).with_before(1.0);
    let queue = Arc::new(FaultyQueue::new(memory.queue(), faults.clone()));
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let mut settings = few_slots();
    settings.reconcile_every = Duration::from_millis(50);
    settings.rederive_every = Duration::from_millis(50);
    settings.sweep_every = Duration::from_millis(50);
    let (flare, runtime) = Flare::builder(memory)
        .queue(queue)
        .delivery(Arc::new(delivery.clone()))
        .settings(settings)
        .build()
        .unwrap();
    let running = tokio::spawn(runtime.run(std::future::pending::<()>()));
    let resource = users(&flare).await;
    flare.create_subscription(resource.id, hook("a")).await.unwrap();
    assert_eq!(put(&flare, "1", 1).await.unwrap(), DocumentChange::Created);
    faults.heal();
    flare.settled(SOON).await.unwrap();
    assert_eq!(delivery.total(), 1);
    running.abort();
}

#[tokio::test]
async fn a_queue_that_vanished_is_brought_back() {
    let memory = MemoryBackend::new();
    let world = World::start(&memory, few_slots());
    let resource = users(&world.flare).await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    put(&world.flare, "1", 1).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    let names: Vec<_> = memory.queue().list().collect().await;
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        memory.queue().delete(&name.unwrap()).await.unwrap();
    }
    put(&world.flare, "2", 1).await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    assert_eq!(world.delivery.total(), 2);
    assert!(memory.queue().depth(&QueueName::Partition).await.is_ok());
    world.stop().await;
}

#[tokio::test]
async fn a_full_store_answers_busy_and_goes_on_delivering() {
    let config = MemoryConfig::default().max_bytes(2_000);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let world = World::start(&MemoryBackend::with_config(config, clock), few_slots());
    let resource = users(&world.flare).await;
    world.flare.create_subscription(resource.id, hook("a")).await.unwrap();
    let mut refused = None;
    for n in 0..20 {
        if let Err(error) = put(&world.flare, &n.to_string(), 1).await {
            refused = Some(error);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.is_temporary() && refused.to_string().contains("max-bytes"), "{refused}");
    world.flare.delete_document("http://api.example/users/0").await.unwrap();
    world.flare.settled(SOON).await.unwrap();
    world.stop().await;
}

#[tokio::test]
async fn wrong_input_is_explained() {
    let world = World::start(&MemoryBackend::new(), few_slots());
    let flare = &world.flare;
    let refused = flare.create_resource(NewResource::new("http://a.example/x").change_field("rev"));
    let error = refused.await.unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("endpoint")));

    let resource = users(flare).await;
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

    let unsupported = [
        (hook("b").filter("true"), "filter"),
        (hook("b").backfill(true), "backfill"),
        (hook("b").mode(Mode::Passive), "mode"),
        (hook("b").lanes(1_000), "delivery.lanes"),
    ];
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
    let clock = ManualClock::new(Timestamp::EPOCH);
    let memory = MemoryBackend::with_clock(Arc::new(clock.clone()));
    let late = FaultyRepository::new(memory.repository(), FaultPlan::seeded(1)).delaying(
        1.0,
        Duration::from_secs(1),
        Arc::new(clock.clone()),
    );
    let mut settings = few_slots();
    settings.ingest_limit = 1;
    // It waits for a quarter of this, and the first one takes longer.
    settings.ingest_wait = Duration::from_nanos(4);
    let delivery = RecordingDelivery::new(Arc::new(clock.clone()));
    let (flare, _) = Flare::builder(memory)
        .repository(Arc::new(late))
        .delivery(Arc::new(delivery))
        .settings(settings)
        .build()
        .unwrap();
    let (created, ()) = tokio::join!(users(&flare), clock.advance(Duration::from_secs(9)));
    assert_eq!(created.endpoint.as_str(), "http://api.example/users/{id}");
    let (first, second, ()) = tokio::join!(
        put(&flare, "1", 1),
        put(&flare, "2", 1),
        clock.advance(Duration::from_secs(9))
    );
    assert_eq!(first.unwrap(), DocumentChange::Created);
    let busy = second.unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    assert!(busy.to_string().contains("ingest_limit"), "{busy}");
    let (again, ()) = tokio::join!(put(&flare, "2", 1), clock.advance(Duration::from_secs(9)));
    assert_eq!(again.unwrap(), DocumentChange::Created);
}
