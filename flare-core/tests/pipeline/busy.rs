//! An origin that puts faster than the store stores: it is told so soon, and whoever is let in is
//! answered soon, however slow the store is. In simulated time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{World, few_slots, in_memory, url};
use async_trait::async_trait;
use flare_core::model::DocumentChange;
use flare_core::port::{Clock, Outgoing, Queue, QueueName};
use flare_core::{ErrorKind, Result};
use flare_testkit::ManualClock;
use flare_testkit::intercept::{self, Hooks, QueueHooks};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Origins that put all the time.
const ORIGINS: u64 = 300;
/// How long one that was refused stays away: not as long as it is asked to.
const AGAIN: Duration = Duration::from_millis(200);

/// Takes a message only so fast, and those that wait in their turn: what a put costs.
#[derive(Debug)]
struct Slow {
    clock: ManualClock,
    places: Semaphore,
    micros: AtomicU64,
}

impl Slow {
    fn take(&self, each: Duration) {
        self.micros.store(u64::try_from(each.as_micros()).unwrap(), Ordering::Relaxed);
    }
}

impl Hooks for Slow {}

#[async_trait]
impl QueueHooks for Slow {
    async fn send(
        &self,
        inner: &dyn Queue,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        let _place = self.places.acquire().await.unwrap();
        self.clock.sleep(Duration::from_micros(self.micros.load(Ordering::Relaxed))).await;
        inner.send(queue, messages).await
    }
}

/// How puts were answered, each after how long.
#[derive(Debug, Default)]
struct Answers {
    accepted: Vec<Duration>,
    refused: Vec<Duration>,
}

impl Answers {
    fn median(mut all: Vec<Duration>) -> Duration {
        all.sort_unstable();
        all[all.len() / 2]
    }

    fn add(&mut self, put: &Result<DocumentChange>, took: Duration) {
        match put {
            Ok(_) => self.accepted.push(took),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                self.refused.push(took);
            }
        }
    }
}

/// Has every origin put for `time`, one put after the other, from a revision on.
async fn put_for(world: &World, time: Duration, from: i64) -> Answers {
    let answers = Arc::new(Mutex::new(Answers::default()));
    let until = world.clock.monotonic() + time;
    let mut origins = JoinSet::new();
    for origin in 0..ORIGINS {
        let (flare, clock) = (world.flare.clone(), world.clock.clone());
        let answers = Arc::clone(&answers);
        origins.spawn(async move {
            for rev in from.. {
                let begun = clock.monotonic();
                if begun >= until {
                    break;
                }
                let put = flare.put_json(&url(origin), format!(r#"{{"rev":{rev}}}"#)).await;
                answers.lock().unwrap().add(&put, clock.monotonic() - begun);
                if put.is_err() {
                    clock.sleep(AGAIN).await;
                }
            }
        });
    }
    let all = async { while origins.join_next().await.is_some_and(|it| it.is_ok()) {} };
    world.in_time(all).await;
    Arc::into_inner(answers).unwrap().into_inner().unwrap()
}

/// A queue that takes `beside` puts at a time, each for `each`.
async fn world(beside: usize, each: Duration) -> (World, Arc<Slow>) {
    let mut world = in_memory(few_slots());
    let (clock, places) = (world.clock.clone(), Semaphore::new(beside));
    let slow = intercept::queue(world.stores.queue(), Slow { clock, places, micros: 0.into() });
    slow.hooks.take(each);
    world.backend.queue = Some(Arc::new(slow.clone()));
    // A handle on that queue; nobody spreads what is put, as it is about putting.
    world.start();
    world.crash().await;
    slow.create(&QueueName::Partition).await.unwrap();
    world.users().await;
    (world, slow.hooks)
}

#[tokio::test]
async fn an_origin_that_is_too_fast_is_told_soon_and_who_is_let_in_is_answered_soon() {
    // Three trips of 5, 20 and 40 ms there and as much back, on seven connections.
    for trip in [10, 40, 80] {
        let each = Duration::from_millis(3 * trip);
        let (world, _slow) = world(7, each).await;
        let time = Duration::from_secs(5);
        let answers = put_for(&world, time, 1).await;
        let stored = 7.0 * time.as_secs_f64() / each.as_secs_f64();
        let accepted = answers.accepted.len() as f64;
        assert!(accepted >= 0.9 * stored, "{accepted} of {stored} with {each:?}");
        let longest = answers.refused.iter().max().copied().unwrap_or_default();
        assert_eq!(longest, Duration::from_millis(100), "a quarter of what a put may wait");
        let median = Answers::median(answers.accepted);
        assert!(median <= Duration::from_millis(700), "{median:?} with {each:?}");
    }
}

/// A host that begins with hundreds of puts at once, before anything is known of its store.
#[tokio::test]
async fn what_comes_all_at_once_is_no_load_yet() {
    let (world, _slow) = world(7, Duration::from_millis(1)).await;
    let put = async |id: u64| world.flare.put_json(&url(id), r#"{"rev":1}"#).await;
    let puts = world.in_time(futures::future::join_all((0..500).map(put))).await;
    assert_eq!(puts.iter().filter(|put| put.is_err()).count(), 0);
}

#[tokio::test]
async fn a_store_that_is_quick_again_is_used_again() {
    let (world, slow) = world(7, Duration::from_millis(240)).await;
    let few = put_for(&world, Duration::from_secs(5), 1).await.accepted.len();
    slow.take(Duration::from_millis(5));
    let many = put_for(&world, Duration::from_secs(1), 1_000).await.accepted.len();
    assert!(many > 5 * few, "{few} in 5 s, then {many} in 1 s");
}

#[tokio::test]
async fn a_put_that_its_origin_gives_up_makes_room() {
    let (world, slow) = world(1, Duration::from_secs(3_600)).await;
    for round in 0..50 {
        let put = async |id: u64| world.flare.put_json(&url(id), r#"{"rev":1}"#).await;
        let puts = (0..100).map(put);
        let mut puts = Box::pin(futures::future::join_all(puts));
        assert!(futures::poll!(&mut puts).is_pending(), "round {round}");
        world.pass(Duration::from_millis(500)).await;
    }
    slow.take(Duration::from_millis(1));
    world.in_time(world.put("last", 1)).await;
}
