//! A backfill moves between nodes from turn to turn: together they have no more of its rows pending than
//! one of them would, and none says that it is done while rows of another one are pending.

use std::time::Duration;

use flare_core::model::{SubscriptionId, SubscriptionSpec};
use flare_core::port::RowStore;
use futures::FutureExt;

use super::world::World;

const CONCURRENCY: u32 = 4;
const DOCUMENTS: u32 = 200;

/// Nodes that look for jobs so often that each turn is had by whichever comes first.
fn world(names: &[&str], seed: u64) -> World {
    let mut world = World::new(seed);
    for name in names {
        world.start_as(name, |settings, _| settings.jobs_every = Duration::from_millis(10));
    }
    world.rest();
    world
}

fn pending(world: &World, of: SubscriptionId) -> u64 {
    world.memory.repository().count_pending(Some(of)).now_or_never().unwrap().unwrap().count
}

fn is_done(world: &World, by: &str, of: SubscriptionId) -> bool {
    let status = world.ask(world.flare(by).subscription_status(of)).unwrap();
    status.backfill.is_some_and(|backfill| backfill.done)
}

#[test]
fn nodes_that_take_turns_at_a_backfill_are_bounded_together() {
    for (seed, names) in [(50, ["a", "b"].as_slice()), (51, &["a", "b", "c"])] {
        let world = world(names, seed);
        let users = world.users("a");
        for id in 0..DOCUMENTS {
            world.put("a", id, 1).unwrap();
        }
        world.pass(Duration::from_secs(1));
        // Slower than a turn, so that what was taken lately allows no more than what is in flight.
        world.hosts.take(Duration::from_millis(300));
        let spec = SubscriptionSpec::post("http://client.example/{id}");
        let spec = spec.concurrency(CONCURRENCY).backfill(true);
        let client = world.ask(world.flare("b").create_subscription(users.id, spec)).unwrap().id;
        let mut most = 0;
        for _ in 0..4_000 {
            let done = is_done(&world, "a", client);
            let lag = pending(&world, client);
            assert!(!done || lag == 0, "done while {lag} of its rows are pending");
            if done {
                break;
            }
            most = most.max(lag);
            world.pass(Duration::from_millis(10));
        }
        assert_eq!(most, u64::from(CONCURRENCY), "{names:?}");
        assert!(is_done(&world, "a", client));
        assert_eq!(world.hosts.told_to(client), DOCUMENTS as usize, "each once");
    }
}
