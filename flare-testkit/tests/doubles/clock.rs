//! The manual clock keeps the clauses of the `Clock` contract.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::port::Clock;
use flare_testkit::ManualClock;
use futures::FutureExt;
use futures::future::join_all;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_seconds(seconds)
}

#[tokio::test]
async fn c1_the_wall_clock_goes_where_it_is_set() {
    let clock = ManualClock::new(at(100));
    clock.advance(SECOND).await;
    assert_eq!(clock.now(), at(101));
    clock.set_wall(at(5));
    assert_eq!(clock.now(), at(5));
    clock.set_wall(at(500));
    assert_eq!(clock.now(), at(500));
}

#[tokio::test]
async fn c2_monotonic_moves_with_time_and_not_with_the_wall() {
    let clock = ManualClock::new(at(100));
    clock.advance(3 * SECOND).await;
    clock.set_wall(at(0));
    clock.set_wall(at(1_000));
    assert_eq!(clock.monotonic(), 3 * SECOND);
    clock.advance(SECOND).await;
    assert_eq!(clock.monotonic(), 4 * SECOND);
}

#[tokio::test]
async fn who_turns_without_waiting_fails_and_so_does_whoever_runs_the_simulation() {
    let clock = ManualClock::new(at(0)).limited(100);
    for _ in 0..5 {
        for _ in 0..99 {
            clock.now();
        }
        clock.advance(SECOND).await;
    }
    let before = clock.asked();
    let spinning = clock.clone();
    let spins = tokio::spawn(async move {
        loop {
            spinning.sleep_until(at(1)).await;
        }
    });
    let panic = spins.await.unwrap_err().into_panic();
    let said = panic.downcast_ref::<String>().unwrap();
    assert!(said.contains("more than 100 times within a second"), "{said}");
    assert_eq!(clock.asked() - before, 101);
    clock.advance(10 * SECOND).await;
    let later = std::panic::catch_unwind(|| clock.now());
    assert!(later.is_err(), "it is not forgotten with the second");
}

#[tokio::test]
async fn c3_sleepers_wake_in_the_order_of_their_deadlines_and_in_time() {
    let clock = ManualClock::new(at(0));
    let woken = Mutex::new(Vec::new());
    let sleeps = [5, 1, 3, 3, 9].map(|deadline| {
        let (clock, woken) = (&clock, &woken);
        async move {
            clock.sleep_until(at(deadline)).await;
            woken.lock().unwrap().push((deadline, clock.now()));
        }
    });
    tokio::join!(clock.advance(10 * SECOND), join_all(sleeps));
    let expected = [1, 3, 3, 5, 9].map(|deadline| (deadline, at(deadline)));
    assert_eq!(*woken.lock().unwrap(), expected);
    assert_eq!(clock.now(), at(10));
}

#[tokio::test]
async fn c3_who_sleeps_again_on_waking_is_woken_again_in_time() {
    let clock = ManualClock::new(at(0));
    let naps = async {
        for second in 1..=10 {
            clock.sleep_until(clock.now() + SECOND).await;
            assert_eq!(clock.now(), at(second));
        }
    };
    tokio::join!(naps, clock.advance(10 * SECOND));
}

#[tokio::test]
async fn c3_a_deadline_that_has_come_is_no_sleep() {
    let clock = ManualClock::new(at(7));
    assert!(clock.sleep_until(at(7)).now_or_never().is_some());
    assert!(clock.sleep_until(at(8)).now_or_never().is_none());
}

#[tokio::test]
async fn c3_setting_the_wall_wakes_those_it_passes_and_holds_up_the_others() {
    let clock = ManualClock::new(at(0));
    let mut near = clock.sleep_until(at(10));
    let mut far = clock.sleep_until(at(20));
    assert!((&mut near).now_or_never().is_none() && (&mut far).now_or_never().is_none());
    clock.set_wall(at(15));
    assert!((&mut near).now_or_never().is_some());
    clock.set_wall(at(0));
    clock.advance(15 * SECOND).await;
    assert!((&mut far).now_or_never().is_none());
    clock.advance(5 * SECOND).await;
    assert!(far.now_or_never().is_some());
}

#[tokio::test]
async fn c3_sleepers_on_other_threads_wake_too() {
    let clock = ManualClock::new(at(0));
    let sleeping = clock.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(sleeping.sleep_until(at(60)));
        sleeping.now()
    });
    while clock.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    clock.advance(61 * SECOND).await;
    assert!(thread.join().unwrap() >= at(60));
}

#[tokio::test]
async fn c5_a_sleep_is_as_long_as_it_is_wherever_the_wall_is_set() {
    let clock = ManualClock::new(at(10_000));
    for wall in [0, 10_000, 20_000] {
        let mut sleep = clock.sleep(10 * SECOND);
        assert!((&mut sleep).now_or_never().is_none());
        clock.advance(4 * SECOND).await;
        clock.set_wall(at(wall));
        assert_eq!(clock.next_deadline(), Some(at(wall + 6)));
        clock.advance(5 * SECOND).await;
        assert!((&mut sleep).now_or_never().is_none());
        clock.advance(SECOND).await;
        assert!((&mut sleep).now_or_never().is_some());
    }
    assert!(clock.sleep(Duration::ZERO).now_or_never().is_some());
    assert!(clock.sleep(Duration::MAX).now_or_never().is_none());
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn c5_who_waits_for_either_clock_wakes_in_the_order_of_time() {
    let clock = ManualClock::new(at(100));
    let woken = Mutex::new(Vec::new());
    let sleeps = [3_u32, 1, 4, 2].map(|second| {
        let (clock, woken) = (&clock, &woken);
        async move {
            match second % 2 {
                0 => clock.sleep_until(at(100 + i64::from(second))).await,
                _ => clock.sleep(second * SECOND).await,
            }
            woken.lock().unwrap().push((second, clock.monotonic()));
        }
    });
    tokio::join!(clock.advance(5 * SECOND), join_all(sleeps));
    assert_eq!(*woken.lock().unwrap(), [1, 2, 3, 4].map(|second| (second, second * SECOND)));
}

#[tokio::test]
async fn c4_dropped_sleeps_leave_nothing_behind() {
    let clock = ManualClock::new(at(0));
    for second in 1..=1_000 {
        assert!(clock.sleep_until(at(second)).now_or_never().is_none());
    }
    assert_eq!((clock.sleepers(), clock.next_deadline()), (0, None));
    // One that is polled again and again takes one place.
    let mut sleep = clock.sleep_until(at(5));
    for _ in 0..100 {
        assert!((&mut sleep).now_or_never().is_none());
    }
    assert_eq!((clock.sleepers(), clock.next_deadline()), (1, Some(at(5))));
}

#[tokio::test]
async fn a_simulation_moves_from_deadline_to_deadline() {
    let clock = ManualClock::new(at(0));
    let log = Arc::new(Mutex::new(Vec::new()));
    let tasks = [30, 10, 20].map(|period| {
        let (clock, log) = (clock.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            clock.sleep_until(at(period)).await;
            log.lock().unwrap().push(clock.now());
        })
    });
    tokio::task::yield_now().await;
    while let Some(deadline) = clock.next_deadline() {
        clock.advance(deadline - clock.now()).await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*log.lock().unwrap(), [at(10), at(20), at(30)]);
}
