//! Every runtime is a node of the cluster of its stores: there is no second way to own a lane.

use std::sync::Arc;
use std::time::Duration;

use flare_backend_memory::MemoryBackend;
use flare_core::cluster::{ClusterSettings, Health};
use flare_core::port::{Clock, Lease, Write};
use flare_core::{Backend, ErrorKind, Flare};
use flare_testkit::{FarRepository, FaultPlan, FaultyLease};

use crate::support::{few_slots, in_memory};

#[tokio::test]
async fn a_first_node_works_without_waiting_for_anybody() {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    let resource = world.users().await;
    world.subscribe(&resource, "a").await;
    world.put(1, 1).await;
    let began = world.clock.now();
    world.start();
    world.until("it is told", async || world.delivery.total() == 1).await;
    assert!(world.clock.now() - began <= Duration::from_millis(100));
    assert_eq!(world.flare.cluster().await.unwrap().health, Health::Green);
}

#[tokio::test]
async fn what_died_in_this_process_is_replaced_at_once_and_what_died_elsewhere_after_its_lease() {
    for (elsewhere, least, most) in [(false, 0, 1), (true, 10, 20)] {
        let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
        if elsewhere {
            let lease = FaultyLease::new(world.stores.lease(), FaultPlan::seeded(1));
            world.backend.lease = Some(Arc::new(lease));
        }
        let resource = world.users().await;
        world.subscribe(&resource, "a").await;
        world.start();
        world.put(1, 1).await;
        world.settled().await;
        world.crash().await;
        let died = world.clock.now();
        world.start();
        world.put(1, 2).await;
        world.settled().await;
        let took = world.clock.now() - died;
        let (least, most) = (Duration::from_secs(least), Duration::from_secs(most));
        assert!(took >= least && took <= most, "elsewhere {elsewhere}: {took:?}");
        assert_eq!(world.delivery.total(), 2);
    }
}

#[tokio::test]
async fn a_runtime_of_before_is_waited_for_and_starts_no_more_beside_a_cluster() {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    let resource = world.users().await;
    world.subscribe(&resource, "a").await;
    let lease = world.stores.lease();
    let held = lease.grant(Duration::from_secs(60)).await.unwrap();
    lease.write(Write::new("flare/owner", "").lease(held.id)).await.unwrap();
    world.start();
    world.put(1, 1).await;
    world.pass(Duration::from_secs(50)).await;
    assert_eq!(world.delivery.total(), 0, "the other one works all lanes");
    assert!(world.flare.cluster().await.unwrap().nodes.is_empty());
    world.pass(Duration::from_secs(11)).await;
    assert_eq!(world.delivery.total(), 1);
    let owner = lease.get("flare/owner").await.unwrap().unwrap();
    assert_eq!(owner.lease, None, "it stays, whoever ends: nobody of before can take it");
    world.crash().await;
    assert!(lease.get("flare/owner").await.unwrap().is_some());
}

#[tokio::test]
async fn who_stands_by_works_only_while_nobody_else_is_there() {
    let mut world = in_memory(few_slots()).leased(ClusterSettings::default());
    (world.cluster.name, world.cluster.weight) = ("standby".to_owned(), 0);
    let standby = world.start();
    let slots = async |name: &str| {
        let view = standby.cluster().await.unwrap();
        let named = |node: &&flare_core::cluster::NodeView| {
            node.record.as_ref().is_some_and(|record| record.name == name)
        };
        view.nodes.iter().find(named).map(|node| node.slots)
    };
    world.until("it works alone", async || slots("standby").await == Some(2)).await;
    (world.cluster.name, world.cluster.weight) = ("worker".to_owned(), 100);
    world.start();
    world.until("the other has all", async || slots("worker").await == Some(2)).await;
    assert_eq!(slots("standby").await, Some(0));
    world.crash().await;
    world.until("it works again", async || slots("standby").await == Some(2)).await;
}

#[test]
fn leases_that_others_cannot_see_are_refused_beside_a_repository_that_they_can() {
    let memory = MemoryBackend::new();
    let mut backend = Backend::from(memory.clone());
    backend.repository = Some(Arc::new(FarRepository::new(memory.repository())));
    let error = Flare::builder(backend.clone()).build().unwrap_err();
    assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some("lease")));
    assert!(error.to_string().contains("exclusive"), "{error}");
    let (_, runtime) = Flare::builder(backend).exclusive().build().unwrap();
    runtime.unused();
}
