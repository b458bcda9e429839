//! Limits, by what arrives on the wire.

use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::http::{Guard, HttpConfig};
use flare_core::model::subscription::SubscriptionBuilder;
use flare_core::model::{NewResource, SubscriptionSpec};
use flare_core::{EventKind, Flare, Settings};
use flare_testkit::{Answer, HttpTarget};

use super::gauge::{Gauge, pause};

/// A Flare that runs, and delivers over real HTTP to this machine.
async fn flare(settings: Settings, clients: Vec<SubscriptionBuilder>) -> Flare {
    let guard = Guard::default().allow("127.0.0.0/8").unwrap();
    let (flare, runtime) = Flare::builder(MemoryBackend::new())
        .http(HttpConfig::new().guard(guard))
        .settings(settings)
        .build()
        .unwrap();
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    let new = NewResource::new("http://api.example/docs/{id}").change_field("rev");
    let resource = flare.create_resource(new).await.unwrap();
    for client in clients {
        flare.create_subscription(resource.id, client).await.unwrap();
    }
    flare
}

async fn put(flare: &Flare, count: u32) {
    let documents = (0..count).map(|id| (format!("http://api.example/docs/{id}"), r#"{"rev":1}"#));
    for answer in flare.put_documents(documents).await {
        answer.unwrap();
    }
}

fn few_slots() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(8);
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_of_fifty_a_second_delivers_five_hundred_in_ten_seconds() {
    let gauge = Gauge::start(Some(Duration::ZERO)).await;
    let spec = SubscriptionSpec::post(gauge.url()).rate(50, Duration::from_secs(1));
    let flare = flare(few_slots(), vec![spec]).await;
    put(&flare, 1_000).await;
    gauge.wait_for(600).await;
    let arrivals = gauge.arrivals();
    let within = |at: &&std::time::Instant| **at - arrivals[0] < Duration::from_secs(10);
    let count = arrivals.iter().filter(within).count();
    assert!((475..=525).contains(&count), "{count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_concurrency_of_three_is_reached_and_never_exceeded() {
    let gauge = Gauge::start(Some(Duration::from_millis(5))).await;
    let spec = SubscriptionSpec::post(gauge.url()).concurrency(3);
    let sharded = Gauge::start(Some(Duration::from_millis(5))).await;
    let lanes = SubscriptionSpec::post(sharded.url()).concurrency(3).lanes(2);
    let flare = flare(few_slots(), vec![spec, lanes]).await;
    put(&flare, 300).await;
    flare.settled(Duration::from_secs(60)).await.unwrap();
    assert_eq!((gauge.most(), gauge.arrivals().len()), (3, 300));
    assert_eq!((sharded.most(), sharded.arrivals().len()), (3, 300));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_by_its_timeout_and_the_next_one_gets_its_place() {
    let gauge = Gauge::start(None).await;
    let timeout = Duration::from_millis(100);
    let spec = SubscriptionSpec::post(gauge.url()).concurrency(1).timeout(timeout);
    let flare = flare(few_slots(), vec![spec]).await;
    #[allow(clippy::disallowed_methods, reason = "requests on a wire take real time")]
    let start = std::time::Instant::now();
    put(&flare, 3).await;
    gauge.wait_for(3).await;
    // Each has its whole time, from connecting on, before the next one connects; how long a request
    // then takes to arrive differs, so arrivals are counted from the start, not from each other.
    for (arrival, before) in gauge.arrivals().into_iter().zip(0_u32..) {
        assert!(arrival - start >= timeout * before, "{before}: {:?}", arrival - start);
    }
}

/// Forty places for all; four clients that hang want thirty each.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_hang_cannot_fill_the_places_of_all() {
    let mut settings = few_slots();
    settings.in_flight_limit = 40;
    settings.timeout = Duration::from_secs(600);
    let mut hanging = Vec::new();
    for _ in 0..4 {
        hanging.push(Gauge::start(None).await);
    }
    let quick = Gauge::start(Some(Duration::ZERO)).await;
    let spec = |gauge: &Gauge| SubscriptionSpec::post(gauge.url()).concurrency(30);
    let mut clients: Vec<_> = hanging.iter().map(spec).collect();
    clients.push(spec(&quick));
    let flare = flare(settings, clients).await;
    put(&flare, 500).await;
    quick.wait_for(500).await;
    let all: usize = hanging.iter().map(Gauge::most).sum();
    assert!(all <= 44, "{all} in flight: the limit, and one for each idle lane at most");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_down_and_one_that_fails_delay_nobody() {
    let refusing = HttpTarget::refusing().await;
    let failing = HttpTarget::start(Answer::status(500)).await;
    let quick = Gauge::start(Some(Duration::ZERO)).await;
    let clients = vec![
        SubscriptionSpec::post(format!("{refusing}{{id}}")),
        SubscriptionSpec::post(failing.url("/{id}")),
        SubscriptionSpec::post(quick.url()),
    ];
    let flare = flare(few_slots(), clients).await;
    put(&flare, 500).await;
    quick.wait_for(500).await;
    // At most what was under way when probing began, and some probes.
    assert!(failing.requests().len() < 100, "{}", failing.requests().len());
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
async fn retry_after_is_honoured_in_seconds_and_as_a_date() {
    const HOLD: Duration = Duration::from_secs(1);
    for value in ["1", "Mon, 01 Jan 2120 00:00:00 GMT"] {
        let target = HttpTarget::start(Answer::status(204)).await;
        target.on_next("/0", Answer::status(503).header("Retry-After", value));
        let mut settings = few_slots();
        settings.hold_limit = HOLD;
        let spec = SubscriptionSpec::post(target.url("/{id}"));
        let flare = flare(settings, vec![spec]).await;
        let start = std::time::Instant::now();
        let mut events = flare.events();
        put(&flare, 1).await;
        // That it came is not enough: what is sent before its answer is read is not held.
        let event = events.next().await.map(|event| event.kind);
        assert!(matches!(event, Some(EventKind::Failed { .. })), "{value}: {event:?}");
        // Another document, which nobody refused.
        flare.put_json("http://api.example/docs/9", r#"{"rev":1}"#).await.unwrap();
        reaches(&target, 2).await;
        assert!(start.elapsed() >= HOLD, "{value}: not held");
        flare.settled(Duration::from_secs(60)).await.unwrap();
        assert_eq!(target.requests().len(), 3, "{value}");
    }
}

/// Waits until so many requests have come.
async fn reaches(target: &HttpTarget, count: usize) {
    for _ in 0..12_000 {
        if target.requests().len() >= count {
            return;
        }
        pause(Duration::from_millis(5)).await;
    }
    panic!("{} of {count} requests came", target.requests().len());
}
