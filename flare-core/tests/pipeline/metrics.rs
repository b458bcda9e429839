//! What is counted. One thread, whose recorder is its own.

use std::collections::BTreeMap;

use crate::support::{few_slots, in_memory, url};
use flare_core::model::subscription::RetryPolicy;
use flare_core::model::{RecordKind, RecordName, SubscriptionSpec, WhyUnreadable};
use flare_core::observe;
use flare_core::port::DeliveryOutcome;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

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
    for gauge in [
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
