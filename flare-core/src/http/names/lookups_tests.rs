//! Names that no server answers for, next to names that resolve, in simulated time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::*;
use crate::model::Timestamp;

/// A clock for one thread: who sleeps looks again whenever it is its turn.
#[derive(Debug, Default)]
struct Turns(Mutex<Duration>);

impl Turns {
    /// Lets time pass, in small steps.
    async fn pass(&self, time: Duration) {
        let end = self.monotonic() + time;
        while self.monotonic() < end {
            *self.0.lock().unwrap() += STEP;
            self.settle().await;
        }
    }

    /// Lets everybody do what there is to do now.
    async fn settle(&self) {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

const STEP: Duration = Duration::from_millis(10);
/// What a name that resolves may take: its 20 ms, and the steps in which turns are given.
const AT_ONCE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(4);

#[async_trait]
impl Clock for Turns {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    async fn sleep_until(&self, deadline: Timestamp) {
        while self.now() < deadline {
            tokio::task::yield_now().await;
        }
    }

    async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }
}

/// Answers for `good…` after 20 ms and for `late…` after a second, and for nothing else.
struct Silent {
    clock: Arc<Turns>,
    asking: AtomicUsize,
    most: AtomicUsize,
    asked: Mutex<HashMap<String, usize>>,
}

/// One that asks, until it is dropped.
struct Asking<'s>(&'s Silent);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Ask for Silent {
    async fn ask(&self, host: &str) -> Result<FoundName, Unresolved> {
        *self.asked.lock().unwrap().entry(host.to_owned()).or_default() += 1;
        let asking = self.asking.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(asking, Ordering::SeqCst);
        let _asking = Asking(self);
        let takes = match host {
            good if good.starts_with("good") => Duration::from_millis(20),
            late if late.starts_with("late") => Duration::from_secs(1),
            _ => Duration::MAX / 4,
        };
        self.clock.sleep(takes).await;
        let addresses = vec![[192, 0, 2, 1].into()];
        let seconds = if host == "good" { 600 } else { 1 };
        Ok(FoundName { addresses, lifetime: Duration::from_secs(seconds) })
    }
}

fn world() -> (Arc<Turns>, Arc<Silent>, Arc<Lookups>) {
    let clock = Arc::new(Turns::default());
    let silent = Arc::new(Silent {
        clock: Arc::clone(&clock),
        asking: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        asked: Mutex::default(),
    });
    let lookups = Lookups::new(silent.clone(), clock.clone(), PATIENCE);
    (clock, silent, lookups)
}

/// Looks a name up while time passes; gives the result and how long it took.
async fn timed(clock: &Turns, lookups: &Arc<Lookups>, host: &str) -> (Known, Duration) {
    let before = clock.monotonic();
    let found = std::pin::pin!(lookups.find(host));
    let passing = std::pin::pin!(clock.pass(Duration::from_secs(60)));
    match select(found, passing).await {
        Either::Left((known, _)) => (known, clock.monotonic() - before),
        Either::Right(_) => panic!("{host} takes a minute"),
    }
}

fn crowd(lookups: &Arc<Lookups>, names: usize) -> Vec<tokio::task::JoinHandle<Known>> {
    let find = |number| {
        let lookups = Arc::clone(lookups);
        tokio::spawn(async move { lookups.find(&format!("mute{number}")).await })
    };
    (0..names).map(find).collect()
}

#[tokio::test]
async fn names_that_nobody_answers_for_delay_no_others() {
    let (clock, silent, lookups) = world();
    for name in ["good", "good-before", "late-before"] {
        timed(&clock, &lookups, name).await.0.unwrap();
    }
    // Their clients try them again and again, for half a minute.
    for round in 0..4 {
        clock.pass(Duration::from_secs(2)).await;
        let crowd = crowd(&lookups, 600);
        clock.settle().await;
        for number in 0..8 {
            // One that is remembered takes no time.
            let (_, took) = timed(&clock, &lookups, "good").await;
            assert_eq!(took, Duration::ZERO);
            // One that is not, but has resolved before, takes what it always does.
            let (known, took) = timed(&clock, &lookups, "good-before").await;
            assert!(known.is_ok() && took <= AT_ONCE, "round {round}: {took:?}");
            let (known, took) = timed(&clock, &lookups, "late-before").await;
            assert!(known.is_ok() && took <= Duration::from_secs(1) + AT_ONCE, "{round}: {took:?}");
            // A new one waits for a permit in the first round, and later for nothing.
            let (known, took) = timed(&clock, &lookups, &format!("good{round}-{number}")).await;
            let limit = if round == 0 { BRISK } else { Duration::ZERO } + AT_ONCE;
            assert!(known.is_ok() && took <= limit, "round {round}: {took:?}");
        }
        clock.pass(PATIENCE * 2).await;
        for mute in crowd {
            mute.await.unwrap().unwrap_err();
        }
    }
    assert!(silent.most.load(Ordering::SeqCst) <= PROVEN + NEW + SLOW);
}

#[tokio::test]
async fn nor_do_names_that_once_resolved_and_have_no_server_any_more() {
    let (clock, silent, lookups) = world();
    {
        let mut state = lookups.lock();
        let address =
            FoundName { addresses: vec![[192, 0, 2, 1].into()], lifetime: Duration::ZERO };
        for number in 0..600 {
            state.memory.learn(
                &format!("mute{number}"),
                Ok(address.clone()),
                false,
                Duration::ZERO,
            );
        }
    }
    timed(&clock, &lookups, "good-before").await.0.unwrap();
    clock.pass(Duration::from_secs(2)).await;
    // Ten of them a second are asked for again, as their lifetimes end.
    for number in 0..60 {
        let (asking, name) = (Arc::clone(&lookups), format!("mute{number}"));
        tokio::spawn(async move { asking.find(&name).await });
        let (known, took) = timed(&clock, &lookups, "good-before").await;
        assert!(known.is_ok() && took <= AT_ONCE, "{took:?}");
        clock.pass(Duration::from_millis(100)).await;
    }
    assert!(silent.most.load(Ordering::SeqCst) <= PROVEN + NEW + SLOW);
}

#[tokio::test]
async fn a_name_is_asked_for_once_for_all_that_want_it() {
    let (clock, silent, lookups) = world();
    let all = futures::future::join_all((0..100).map(|_| lookups.find("good")));
    let (found, ()) = futures::join!(all, clock.pass(Duration::from_secs(1)));
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(silent.asked.lock().unwrap()["good"], 1);
    assert!(lookups.lock().running.is_empty());
}

#[tokio::test]
async fn silence_is_explained_and_asked_for_again_after_a_while() {
    let (clock, silent, lookups) = world();
    let (known, took) = timed(&clock, &lookups, "mute").await;
    assert_eq!(known.unwrap_err(), "no name server answered within 4s");
    assert!(took <= PATIENCE + 2 * STEP, "{took:?}");
    timed(&clock, &lookups, "mute").await.0.unwrap_err();
    assert_eq!(silent.asked.lock().unwrap()["mute"], 1);
    clock.pass(Duration::from_secs(2)).await;
    timed(&clock, &lookups, "mute").await.0.unwrap_err();
    assert_eq!(silent.asked.lock().unwrap()["mute"], 2);
}

#[tokio::test]
async fn what_nobody_wants_any_more_is_not_asked_for() {
    let (clock, silent, lookups) = world();
    let crowd = crowd(&lookups, 600);
    clock.settle().await;
    for wanting in crowd {
        wanting.abort();
    }
    clock.pass(PATIENCE * 2).await;
    assert!(lookups.lock().running.is_empty());
    assert!(silent.asked.lock().unwrap().len() <= PROVEN + NEW + SLOW);
}

#[test]
fn a_look_up_that_ends_with_its_runtime_stands_in_nobody_s_way() {
    let (clock, _, lookups) = world();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let first = runtime();
    first.block_on(async {
        let waiting = std::pin::pin!(lookups.find("good"));
        drop(select(waiting, std::pin::pin!(clock.settle())).await);
    });
    drop(first);
    assert!(lookups.lock().running.is_empty());
    let (known, _) = runtime().block_on(timed(&clock, &lookups, "good"));
    assert!(known.is_ok());
}
