//! Slots are granted, released, granted again and lost; what happens to some does not concern the
//! others.

use std::time::Duration;

use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::node::{Node, settings};

const SECOND: Duration = Duration::from_secs(1);

/// Whether slots that were released are given up.
fn given_up(released: &mut Receiver<()>) -> bool {
    released.try_recv() == Err(TryRecvError::Closed)
}

#[tokio::test]
async fn slots_are_worked_under_the_epoch_they_were_granted_with() {
    let node = Node::start(settings()).await;
    node.put(1, 1).await;
    node.pass(SECOND).await;
    assert_eq!(node.delivery.total(), 0, "nothing is granted");
    node.grant([0, 1]).await;
    node.grant([3]).await;
    node.pass(SECOND).await;
    let told: Vec<usize> = (0..4).map(|n| node.told(&format!("http://client-{n}/1/1"))).collect();
    assert_eq!(told, [1, 1, 0, 1]);
    let epoch = async |slot: usize| node.epoch(node.clients[slot].id, 1).await;
    assert_eq!(epoch(0).await, epoch(1).await);
    assert!(epoch(3).await > epoch(0).await, "the later term has the greater epoch");
    assert_eq!(node.flare.node().lanes, 3);
}

#[tokio::test]
async fn a_slot_that_drains_holds_up_neither_the_others_nor_a_grant() {
    let node = Node::start(settings()).await;
    node.grant([0, 1]).await;
    let hanging = "http://client-0/1/1";
    node.delivery.hang(hanging);
    node.put(1, 1).await;
    node.pass(SECOND).await;
    let before = node.epoch(node.clients[1].id, 1).await;
    let mut released = node.release([0]).await;
    node.pass(SECOND).await;
    assert!(!given_up(&mut released), "a request is in flight");

    // The rest goes on: changes, news of subscriptions, and slots that come.
    node.put(1, 2).await;
    node.subscribe_in(1, "newcomer").await;
    node.grant([2]).await;
    node.put(2, 1).await;
    node.pass(SECOND).await;
    for told in ["client-1/1/2", "client-1/2/1", "newcomer/2/1", "client-2/1/2", "client-2/2/1"] {
        assert_eq!(node.told(&format!("http://{told}")), 1, "{told}");
    }
    assert_eq!(node.epoch(node.clients[1].id, 2).await, before, "its term goes on");
    assert!(!given_up(&mut released));

    node.delivery.release(hanging);
    node.pass(SECOND).await;
    assert!(given_up(&mut released));
    assert_eq!(node.delivery.in_flight(), 0);
    assert_eq!(node.told("http://client-0/1/2"), 0, "and takes no more work");
    assert_eq!(node.flare.node().lanes, 3);

    node.grant([0]).await;
    node.pass(SECOND).await;
    assert_eq!([node.told("http://client-0/1/2"), node.told("http://client-0/2/1")], [1, 1]);
    assert!(node.epoch(node.clients[0].id, 1).await > before);
}

#[tokio::test]
async fn a_drain_ends_in_time_and_another_one_of_other_slots_at_once() {
    let node = Node::start(settings()).await;
    node.grant(0..4).await;
    node.delivery.hang("http://client-0/1/1");
    node.put(1, 1).await;
    node.pass(SECOND).await;
    let mut slow = node.release([0, 1]).await;
    let mut idle = node.release([2]).await;
    assert!(given_up(&mut idle), "nothing is in flight there");
    node.pass(Duration::from_secs(29)).await;
    assert!(!given_up(&mut slow) && node.delivery.in_flight() == 1);
    node.pass(Duration::from_secs(2)).await;
    assert!(given_up(&mut slow));
    assert_eq!((node.delivery.in_flight(), node.flare.node().lanes), (0, 1));
}

#[tokio::test]
async fn a_slot_that_is_granted_while_it_is_held_ends_before_it_begins() {
    let node = Node::start(settings()).await;
    node.grant(0..4).await;
    node.put(1, 1).await;
    node.pass(SECOND).await;
    let before = node.epoch(node.clients[0].id, 1).await;
    let hanging = ["http://client-0/1/2", "http://client-1/1/2"];
    hanging.into_iter().for_each(|url| node.delivery.hang(url));
    node.put(1, 2).await;
    node.pass(SECOND).await;
    assert_eq!(node.delivery.in_flight(), 2);

    node.grant([0]).await;
    node.pass(SECOND).await;
    assert_eq!(hanging.map(|url| node.told(url)), [2, 1], "dropped and made again, in one slot");
    assert_eq!(node.delivery.in_flight(), 2, "one at a time for each");
    // Half-way through a drain too: nobody else could have had it in between.
    let mut released = node.release([0]).await;
    node.grant([0]).await;
    node.pass(SECOND).await;
    assert!(given_up(&mut released), "the old work is gone");
    assert_eq!(hanging.map(|url| node.told(url)), [3, 1]);

    hanging.into_iter().for_each(|url| node.delivery.release(url));
    node.pass(SECOND).await;
    assert!(node.epoch(node.clients[0].id, 1).await > before);
    assert_eq!(node.epoch(node.clients[1].id, 1).await, before, "held all the time");
    assert_eq!(node.flare.node().lanes, 4);
}

#[tokio::test]
async fn what_is_lost_ends_at_once_and_the_rest_goes_on() {
    let node = Node::start(settings()).await;
    node.grant(0..4).await;
    let hanging = ["http://client-0/1/1", "http://client-3/1/1"];
    hanging.into_iter().for_each(|url| node.delivery.hang(url));
    node.put(1, 1).await;
    node.pass(SECOND).await;
    node.lose([0, 1]).await;
    assert_eq!(node.delivery.in_flight(), 1, "dropped, their outcome unknown");
    node.put(2, 1).await;
    node.pass(Duration::from_secs(400)).await;
    let told = |n: u32| node.told(&format!("http://client-{n}/2/1"));
    assert_eq!([0, 1, 2, 3].map(told), [0, 0, 1, 1]);
    node.lose(0..4).await;
    assert_eq!((node.delivery.in_flight(), node.flare.node().lanes), (0, 0));

    hanging.into_iter().for_each(|url| node.delivery.release(url));
    node.grant(0..4).await;
    node.pass(SECOND).await;
    assert_eq!([0, 1, 2, 3].map(told), [1, 1, 1, 1]);
    assert_eq!(hanging.map(|url| node.told(url)), [2, 2], "sent again, for nobody knows");
}
