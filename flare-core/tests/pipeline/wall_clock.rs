//! A machine whose wall clock is wrong, or set while it works: what is to happen happens on time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::cluster::ClusterSettings;
use flare_core::model::Timestamp;
use flare_core::model::subscription::RetryPolicy;
use flare_core::port::{Clock, DeliveryOutcome, RowStore};
use flare_testkit::ManualClock;

use crate::support::{few_slots, hook, in_memory};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600;

/// The world's clock, on a machine where somebody has set it: forth or back by so many seconds.
#[derive(Debug, Clone)]
pub(crate) struct SetClock {
    inner: ManualClock,
    by: Arc<AtomicI64>,
}

impl SetClock {
    pub(crate) fn new(inner: &ManualClock, by: i64) -> Self {
        Self { inner: inner.clone(), by: Arc::new(by.into()) }
    }

    fn set(&self, by: i64) {
        self.by.store(by, Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        let by = self.by.load(Ordering::Relaxed) * 1_000_000_000;
        Timestamp::from_unix_nanos(self.inner.now().unix_nanos() + by)
    }

    fn monotonic(&self) -> Duration {
        self.inner.monotonic()
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        while self.now() < deadline {
            self.inner.sleep(SECOND.min(deadline - self.now())).await;
        }
    }

    async fn sleep(&self, time: Duration) {
        self.inner.sleep(time).await;
    }
}

/// When requests were made, in seconds since the first.
async fn told(first: i64, then: i64) -> Vec<u64> {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    let clock = SetClock::new(&world.clock, first);
    let flare = world.start_as(world.builder().clock(Arc::new(clock.clone())));
    let resource = world.users().await;
    let retry = RetryPolicy::builder()
        .num_retries(20)
        .min_delay_target(Duration::from_secs(20))
        .max_delay_target(Duration::from_secs(20));
    let patient = hook("failing").retry(retry.build().unwrap());
    flare.create_subscription(resource.id, patient).await.unwrap();
    let paced = hook("paced").rate(1, 10 * SECOND);
    flare.create_subscription(resource.id, paced).await.unwrap();
    world.delivery.answer("http://failing.example/1", DeliveryOutcome::answered(503));
    let began = world.clock.now();
    for id in 1..=4 {
        world.put(id, 1).await;
    }
    world.pass(30 * SECOND).await;
    clock.set(then);
    world.pass(90 * SECOND).await;
    world.delivery.answer("http://failing.example/1", DeliveryOutcome::answered(200));
    world.pass(60 * SECOND).await;
    assert_eq!(world.stores.repository().count_pending(None).await.unwrap().count, 0);
    let requests = world.delivery.requests();
    requests.iter().map(|request| (request.at - began).as_secs()).collect()
}

#[tokio::test]
async fn a_wall_clock_that_is_set_by_an_hour_delays_and_hurries_nobody() {
    let right = told(0, 0).await;
    assert!(right.len() > 10, "{right:?}");
    for (first, then) in [(0, HOUR), (0, -HOUR), (HOUR, 0), (-HOUR, HOUR), (-HOUR, -HOUR)] {
        assert_eq!(told(first, then).await, right, "wrong by {first} s, then by {then} s");
    }
}
