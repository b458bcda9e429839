//! No `Debug`, error or read shows a secret.

use std::error::Error as _;
use std::sync::Arc;

use flare_backend_memory::MemoryBackend;
use flare_core::Error;
use flare_core::model::SubscriptionInput;
use flare_core::port::{Page, SystemClock};
use flare_testkit::RecordingDelivery;

use crate::leak::{assert_debug_safe, assert_no_secret};
use crate::world::{OTHER_SECRET, SECRET, SOON, builder, hook, put, start, subscribe};

#[tokio::test]
async fn nothing_a_host_can_print_shows_a_secret() {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let memory = MemoryBackend::new();
    let building = builder(memory.clone()).delivery(Arc::new(delivery.clone()));
    let (flare, runtime) = building.build().unwrap();
    assert_debug_safe("the runtime", &runtime);
    tokio::spawn(runtime.run(std::future::pending::<()>()));
    let spec = hook().signing([SECRET, OTHER_SECRET]);
    assert_debug_safe("the builder of a subscription", &spec);
    let input = SubscriptionInput::from(spec.clone().build().unwrap());
    assert_debug_safe("an input", &input);
    let created = subscribe(&flare, spec).await.unwrap();
    let mut events = flare.events();
    put(&flare, 1).await;
    flare.settled(SOON).await.unwrap();

    let read = flare.subscription(created.id).await.unwrap();
    let listed = flare.subscriptions(created.resource, Page::new(10, 0)).await.unwrap();
    assert_debug_safe("what creating answers", &created);
    assert_debug_safe("a list", &listed);
    for subscription in listed.items.iter().chain([&created, &read]) {
        assert_debug_safe("a subscription", subscription);
        let shown = serde_json::to_string_pretty(&subscription.spec).unwrap();
        assert_no_secret("a read", &shown);
        assert!(shown.contains(r#""secrets": 2"#), "{shown}");
    }
    assert_debug_safe("an event", &events.next().await.unwrap());
    assert_debug_safe("what was sent", &delivery.requests());
    assert_debug_safe("the handle", &flare);
    assert_debug_safe("the memory backend", &memory);
    assert_debug_safe("the repository", &memory.repository());
    assert_debug_safe("the builder", &builder(memory));
}

#[tokio::test]
async fn a_refusal_does_not_repeat_the_secret() {
    let delivery = RecordingDelivery::new(Arc::new(SystemClock::new()));
    let flare = start(builder(MemoryBackend::new()).delivery(Arc::new(delivery)));
    let signed = || hook().signing([SECRET, OTHER_SECRET]);
    let resource = subscribe(&flare, signed()).await.unwrap().resource;
    let broken = format!("{SECRET}?");
    let unprefixed = SECRET.trim_start_matches("whsec_");
    for (spec, field) in [
        (signed(), "endpoint.url"),
        (signed().header("x", "{nobody}"), "endpoint.headers.x[0]"),
        (hook().signing([broken.as_str()]), "signing.secrets[0]"),
        (hook().signing([OTHER_SECRET, unprefixed]), "signing.secrets[1]"),
        (hook().signing([SECRET, SECRET]), "signing.secrets[1]"),
    ] {
        let refused = flare.create_subscription(resource, spec).await.unwrap_err();
        assert_eq!(refused.field(), Some(field));
        assert_error_safe(&refused);
    }
}

fn assert_error_safe(error: &Error) {
    assert_debug_safe("an error", error);
    assert_no_secret("an error", &error.to_string());
    let mut source = error.source();
    while let Some(cause) = source {
        assert_no_secret("an error's cause", &format!("{cause} {cause:?}"));
        source = cause.source();
    }
}
