//! A subscription with a slot of its own: it moves there and back without a request too many or too few,
//! whoever dies meanwhile, and a slot can be put on a node of one's choice.

use std::time::Duration;

use flare_core::ErrorKind;
use flare_core::model::{Placement, Subscription, SubscriptionId};
use flare_core::port::{RowStore, SubscriptionStore};
use futures::FutureExt;

use super::world::{SLOTS, World, secs};

const RESERVED: u32 = 2;

/// Nodes of a cluster that has slots for single subscriptions.
fn world(seed: u64, placement: Placement) -> World {
    let mut world = World::new(seed);
    for name in ["a", "b"] {
        start(&mut world, name, placement);
    }
    world.rest();
    world
}

fn start(world: &mut World, name: &str, placement: Placement) {
    world.start_as(name, |settings, _| {
        settings.pinned_slots = RESERVED;
        settings.placement = placement;
        settings.rederive_every = secs(3_600);
        settings.sweep_every = secs(300);
    });
}

fn stored(world: &World, id: SubscriptionId) -> Subscription {
    let store = world.memory.repository();
    store.subscription(id).now_or_never().unwrap().unwrap().unwrap()
}

/// How many rows wait for something.
fn pending(world: &World) -> u64 {
    world.memory.repository().count_pending(None).now_or_never().unwrap().unwrap().count
}

/// The name of the node that works a slot.
fn worker(world: &World, by: &str, slot: u32) -> Option<String> {
    let view = world.view(by);
    let (node, _) = view.slot(slot)?.worker()?;
    let record = view.nodes.iter().find(|it| it.id == node)?.record.clone()?;
    Some(record.name.clone())
}

#[test]
fn a_subscription_moves_to_a_slot_of_its_own_and_back() {
    for (seed, placement) in [(40, Placement::Shared), (41, Placement::Isolated)] {
        let world = world(seed, placement);
        let users = world.users("a");
        let hot = world.subscribe("a", &users, 4).remove(1).id;
        world.pass(secs(1));
        let mut rev = 0;
        let mut moves = |to: Option<u32>| {
            // Requests are in flight while it moves, and more are wanted.
            world.hosts.take(secs(3));
            rev += 1;
            (0..5).for_each(|id| _ = world.put("b", id, rev).unwrap());
            world.pass(Duration::from_millis(100));
            match to {
                Some(slot) => assert_eq!(world.ask(world.flare("b").pin(hot)).unwrap(), slot),
                None => world.ask(world.flare("a").unpin(hot)).unwrap(),
            }
            rev += 1;
            (0..5).for_each(|id| _ = world.put("a", id, rev).unwrap());
            world.until(secs(20), |world| pending(world) == 0);
            let now = stored(&world, hot);
            assert_eq!((now.slot, now.moving_from), (to, None));
            assert_eq!(world.told(rev).len(), 20);

            // Long after nobody looks more often than once an hour: it is woken where it is.
            world.hosts.take(Duration::ZERO);
            world.pass(secs(200));
            rev += 1;
            world.put("b", 1, rev).unwrap();
            world.until(secs(1), |world| world.told(rev).len() == 4);
            assert_eq!(world.lanes(), 4);
        };
        moves(Some(SLOTS));
        moves(None);
        moves(Some(SLOTS));
    }
}

#[test]
fn a_slot_is_one_subscriptions_until_it_gives_it_back() {
    let world = world(42, Placement::Shared);
    let users = world.users("a");
    let ids: Vec<_> = world.subscribe("a", &users, 4).iter().map(|it| it.id).collect();
    // At the same moment, on different nodes.
    let (a, b) = (world.flare("a"), world.flare("b"));
    let both = async { futures::join!(a.pin(ids[0]), b.pin(ids[1])) };
    let (first, second) = world.ask(both);
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_ne!(first, second);
    assert!([first, second].iter().all(|slot| (SLOTS..SLOTS + RESERVED).contains(slot)));
    assert_eq!(world.ask(a.pin(ids[0])).unwrap(), first, "it has one");
    let full = world.ask(b.pin(ids[2])).unwrap_err();
    assert_eq!((full.kind(), full.field()), (ErrorKind::Conflict, Some("slot")));
    world.ask(a.unpin(ids[1])).unwrap();
    assert_eq!(world.ask(b.pin(ids[2])).unwrap(), second);
    // One that is gone needs none.
    world.ask(a.delete_subscription(ids[0])).unwrap();
    assert_eq!(world.ask(a.pin(ids[3])).unwrap(), first);
    let unknown = SubscriptionId::from_bytes([9; 16]);
    assert_eq!(world.ask(a.pin(unknown)).unwrap_err().kind(), ErrorKind::NotFound);
    world.put("a", 1, 1).unwrap();
    world.until(secs(10), |world| world.told(1).len() == 3);
}

#[test]
fn whoever_dies_while_a_subscription_moves_is_made_up_for() {
    for step in 0..12_u64 {
        let mut world = world(50 + step, Placement::Shared);
        let users = world.users("a");
        let hot = world.subscribe("a", &users, 3).remove(0).id;
        world.hosts.take(secs(2));
        (0..5).for_each(|id| _ = world.put("a", id, 1).unwrap());
        world.pass(Duration::from_millis(100));
        // The other way round, in every second case.
        if step % 2 == 1 {
            world.ask(world.flare("a").pin(hot)).unwrap();
            world.pass(secs(10));
            world.ask(world.flare("a").unpin(hot)).unwrap();
        } else {
            world.ask(world.flare("a").pin(hot)).unwrap();
        }
        // Before it is heard, while requests end, when it may start.
        world.pass(Duration::from_millis(700) * (step / 4) as u32);
        let dies = if step % 4 < 2 { "a" } else { "b" };
        world.kill(dies);
        world.hosts.freeze(dies);
        start(&mut world, "c", Placement::Shared);
        world.pass(secs(40));
        (0..5).for_each(|id| _ = world.put("c", id, 2).unwrap());
        world.until(secs(30), |world| world.told(2).len() == 15);
        assert_eq!(stored(&world, hot).moving_from, None, "{step}");
    }
}

#[test]
fn a_slot_is_put_on_the_node_that_somebody_names() {
    let world = world(43, Placement::Shared);
    let users = world.users("a");
    let hot = world.subscribe("a", &users, 1).remove(0).id;
    let slot = world.ask(world.flare("a").pin(hot)).unwrap();
    for (rev, name) in [(1, "b"), (2, "a"), (3, "b")] {
        world.ask(world.flare("a").pin_slot(slot, Some(name))).unwrap();
        world.until(secs(60), |world| worker(world, "b", slot).as_deref() == Some(name));
        assert_eq!(world.view("b").pins.get(&slot).map(String::as_str), Some(name));
        world.pass(secs(5));
        world.put("a", 1, rev).unwrap();
        world.until(secs(5), |world| world.told(rev).len() == 1);
        assert_eq!(world.tellers(rev), [name.to_owned()].into());
    }
    let (a, b) = (world.flare("a"), world.flare("b"));
    let both = async { futures::join!(a.pin_slot(slot, None), b.pin_slot(0, Some("a"))) };
    let (first, second) = world.ask(both);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(*world.view("a").pins, [(0, "a".to_owned())].into(), "neither undoes the other");
    let beyond = world.ask(a.pin_slot(SLOTS + RESERVED, None)).unwrap_err();
    assert_eq!((beyond.kind(), beyond.field()), (ErrorKind::NotFound, Some("slot")));
    let unknown = world.ask(a.pin_slot(0, Some("c"))).unwrap_err();
    assert_eq!((unknown.kind(), unknown.field()), (ErrorKind::Invalid, Some("node")));
    assert_eq!(unknown.detail(), "no node has that name: there are a, b");
    assert_eq!(*world.view("a").pins, [(0, "a".to_owned())].into(), "it changes nothing");
}
