//! What is counted. One thread, whose recorder is its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::support::{few_slots, hook, in_memory, url};
use flare_backend_memory::MemoryBroker;
use flare_core::model::consumer::{MappingInput, RejectReason};
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{
    NewConsumer, RecordKind, RecordName, SourceSettings, SubscriptionSpec, WhyUnreadable,
};
use flare_core::observe;
use flare_core::port::{DeliveryOutcome, Outgoing};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use serde_json::json;

#[tokio::test]
async fn what_happens_is_counted_under_the_documented_names() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);

    let mut world = in_memory(few_slots());
    world.delivery.answer("http://c.example/2", DeliveryOutcome::answered(409));
    world.delivery.answer("http://c.example/3", DeliveryOutcome::answered(500));
    world.start();
    let users = world.users().await;
    let once = RetryPolicy::builder().num_retries(1).num_no_delay_retries(1).build().unwrap();
    let spec = SubscriptionSpec::post("http://c.example/{id}").discard([409]).retry(once);
    world.calm.create_subscription(users.id, spec).await.unwrap();
    for id in 1..=3 {
        for _ in 0..2 {
            world.put(id, 1).await;
        }
    }
    assert!(world.flare.put_json(&url(1), "[]").await.is_err());
    world.settled().await;

    let counted: BTreeMap<String, DebugValue> = snapshots
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| (key.key().name().to_owned(), value))
        .collect();
    let count = |name: &str| match counted.get(name) {
        Some(DebugValue::Counter(count)) => *count,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!((count(observe::ACCEPTED), count(observe::CHANGED)), (6, 3));
    assert_eq!((count(observe::DELIVERED), count(observe::DISCARDED)), (1, 1));
    assert_eq!((count(observe::FAILED), count(observe::RETRIED), count(observe::DEAD)), (2, 1, 1));
    assert!(
        matches!(counted.get(observe::LATENCY), Some(DebugValue::Histogram(one)) if one.len() == 1)
    );
    assert!(
        matches!(counted.get(observe::ATTEMPT_TIME), Some(DebugValue::Histogram(all)) if all.len() == 4)
    );
    for gauge in [
        observe::PUT_RATE,
        observe::SUBSCRIPTION_LAG,
        observe::SUBSCRIPTION_OLDEST,
        observe::SUBSCRIPTION_FAILURES,
        observe::SUBSCRIPTION_RATE,
        observe::LAG,
        observe::SPREADING,
        observe::QUEUE_DEPTH,
        observe::LANES,
        observe::LOOP_IDLE,
        observe::LOOP_BUSY,
    ] {
        assert!(matches!(counted.get(gauge), Some(DebugValue::Gauge(_))), "{gauge}");
    }
}

#[tokio::test]
async fn records_that_cannot_be_read_are_counted_by_their_kind() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);

    let mut world = in_memory(few_slots());
    let users = world.users().await;
    let (spoilt, _well) = (world.subscribe(&users, "a").await, world.subscribe(&users, "b").await);
    let detail = "spec is not understood".to_owned();
    let why = Some(WhyUnreadable::Damaged { detail });
    world.stores.repository().spoil(RecordName::Subscription(spoilt.id), why);
    world.start();
    world.put(0, 1).await;
    world.pass(world.settings.sample_every * 3).await;

    let counted: BTreeMap<String, DebugValue> = snapshots
        .snapshot()
        .into_vec()
        .into_iter()
        .filter(|(key, _, _, _)| key.key().name() == observe::UNREADABLE)
        .map(|(key, _, _, value)| (key.key().labels().map(|it| it.value()).collect(), value))
        .collect();
    for kind in RecordKind::ALL {
        let records = if kind == RecordKind::Subscription { 1.0 } else { 0.0 };
        assert_eq!(
            counted.get(kind.as_str()),
            Some(&DebugValue::Gauge(records.into())),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn the_worst_have_figures_of_their_own_and_the_others_are_counted_together() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);

    let mut settings = few_slots();
    settings.metered_subscriptions = 2;
    let mut world = in_memory(settings);
    let users = world.users().await;
    let mut behind = Vec::new();
    for (number, failing) in [("a", 5), ("b", 4), ("c", 3), ("d", 0)] {
        let patient = RetryPolicy::builder().num_retries(100).build().unwrap();
        let spec = hook(number).retry(patient);
        let subscription = world.flare.create_subscription(users.id, spec).await.unwrap();
        for id in 0..failing {
            let url = format!("http://{number}.example/{id}");
            world.delivery.answer(url, DeliveryOutcome::answered(404));
        }
        behind.push(subscription.id.to_string());
    }
    world.start();
    for id in 0..5 {
        world.put(id, 1).await;
    }
    world.pass(world.settings.sample_every * 3).await;
    let mut lags: BTreeMap<String, f64> = BTreeMap::new();
    let shown = |lags: &mut BTreeMap<String, f64>| {
        for (key, _, _, value) in snapshots.snapshot().into_vec() {
            if key.key().name() == observe::SUBSCRIPTION_LAG
                && let DebugValue::Gauge(value) = value
            {
                let name = key.key().labels().map(|it| it.value()).collect();
                lags.insert(name, value.into_inner());
            }
        }
    };
    shown(&mut lags);
    assert_eq!(lags.values().sum::<f64>(), 12.0, "all of it: {lags:?}");
    assert_eq!(lags.len(), 3, "two and the others: {lags:?}");
    assert_eq!(lags.get(&behind[0]), Some(&5.0), "{lags:?}");
    for (number, failing) in [("a", 5), ("b", 4), ("c", 3)] {
        for id in 0..failing {
            let url = format!("http://{number}.example/{id}");
            world.delivery.answer(url, DeliveryOutcome::answered(200));
        }
    }
    world.settled().await;
    world.pass(world.settings.sample_every * 2).await;
    shown(&mut lags);
    assert!(lags.values().all(|lag| *lag == 0.0), "who is well is shown to be: {lags:?}");
}

/// What was told of a metric, by the values of its labels.
fn told_of(snapshots: &Snapshotter, metric: &str) -> BTreeMap<String, f64> {
    let all = snapshots.snapshot().into_vec().into_iter();
    let those = all.filter(|(key, _, _, _)| key.key().name() == metric);
    let value = |value: DebugValue| match value {
        DebugValue::Counter(count) => count as f64,
        DebugValue::Gauge(value) => value.into_inner(),
        DebugValue::Histogram(_) => panic!("{metric} is a histogram"),
    };
    let labels = |key: &metrics::Key| key.labels().map(|it| it.value()).collect();
    those.map(|(key, _, _, told)| (labels(key.key()), value(told))).collect()
}

#[tokio::test]
async fn consumers_are_counted_and_the_worst_have_figures_of_their_own() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let _counted = metrics::set_default_local_recorder(&recorder);

    let mut settings = few_slots();
    settings.metered_subscriptions = 2;
    let mut world = in_memory(settings);
    let broker = MemoryBroker::with_clock(Arc::new(world.clock.clone()));
    broker.create_queue("users");
    let builder = world.builder().source(Arc::new(broker.clone()));
    world.start_as(builder);
    let users = world.users().await;
    let pull = async |queue: &str| {
        let source = SourceSettings::new("memory", json!({"queue": queue})).unwrap();
        let mut mapping = MappingInput::default();
        mapping.url = url("{/id}");
        let new = NewConsumer::new(source, mapping);
        world.flare.create_consumer(users.id, new).await.unwrap().id.to_string()
    };
    let well = pull("users").await;
    // Queues that are not there: two fail, and there is room for the name of one of them, as none is behind.
    let (away, other) = (pull("later").await, pull("later").await);
    for message in [r#"{"id":"a","rev":1}"#, r#"{"id":"b","rev":1}"#, "no json"] {
        broker.publish("users", Outgoing::new(message.to_owned())).unwrap();
    }
    world.pass(world.settings.sample_every * 3).await;
    // A counter is told as what came since it was last looked at.
    let rejected = told_of(&snapshots, observe::REJECTED);
    assert_eq!(rejected.len(), RejectReason::ALL.len(), "each from zero on: {rejected:?}");
    assert_eq!((rejected["not-json"], rejected.values().sum::<f64>()), (1.0, 1.0));
    world.pass(world.settings.sample_every).await;
    let failing = told_of(&snapshots, observe::CONSUMER_FAILING);
    assert_eq!(failing.values().sum::<f64>(), 2.0, "{failing:?}");
    let named: Vec<&String> = failing.keys().filter(|name| *name != "others").collect();
    assert!(named.len() == 1 && [&away, &other].contains(&named[0]), "{failing:?} and {well}");
    broker.create_queue("later");
    world.pass(world.settings.sample_every * 8).await;
    let failing = told_of(&snapshots, observe::CONSUMER_FAILING);
    assert!(failing.values().all(|it| *it == 0.0), "who is well is shown to be: {failing:?}");
    for gauge in [observe::CONSUMER_LAG, observe::CONSUMER_BEHIND] {
        let told = told_of(&snapshots, gauge);
        assert_eq!(told.get("others"), Some(&0.0), "{gauge}: {told:?}");
    }
}
