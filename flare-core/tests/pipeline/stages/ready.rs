//! A stage that has much to do on a slow store is at work; one whose store does not answer is not.

use std::time::Duration;

use flare_core::Settings;
use flare_core::port::Clock;

use super::world::{Nodes, seconds, url};

/// What makes a node unready.
const LIMIT: Duration = Duration::from_secs(30);

fn stuck(world: &Nodes) -> Vec<&'static str> {
    world.all[0].node().stuck(LIMIT).map(|it| it.name).collect()
}

async fn put_all(world: &Nodes, documents: u64, revision: u64) {
    let body = format!(r#"{{"rev":{revision}}}"#);
    let documents = (0..documents).map(|id| (url("users", id), body.clone()));
    for answer in world.calm.put_documents(documents).await {
        answer.unwrap();
    }
}

async fn made(documents: u64, subscriptions: u32, slow: Duration) -> Nodes {
    let mut settings = Settings::default();
    settings.slots = Some(2);
    let world = Nodes::new(1, slow, settings);
    world.resource("users", subscriptions).await;
    world.pass(seconds(20)).await;
    put_all(&world, documents, 1).await;
    world
}

#[tokio::test]
async fn a_backlog_is_no_illness() {
    // In one batch: a hundred tasks of fifty documents, a million rows, a thousand calls.
    let world = made(5_000, 200, Duration::from_millis(100)).await;
    let (began, mut longest) = (world.clock.now(), Duration::ZERO);
    while world.spreading().await > 0 {
        world.pass(seconds(1)).await;
        assert!(stuck(&world).is_empty(), "{:?} after {longest:?}", stuck(&world));
        longest = world.clock.now() - began;
        assert!(longest < seconds(600), "it is not spread");
    }
    assert!(longest > 2 * LIMIT, "spread within {longest:?}: nothing was tried");
    assert_eq!(world.rows(), 1_000_000);
}

#[tokio::test]
async fn a_stage_whose_store_does_not_answer_is_stuck() {
    let world = made(500, 200, Duration::from_millis(100)).await;
    world.pass(seconds(2)).await;
    assert!(world.spreading().await > 0);
    world.store.stand_still(world.clock.now() + seconds(60));
    world.pass(LIMIT - seconds(1)).await;
    assert!(stuck(&world).is_empty(), "{:?}", stuck(&world));
    world.pass(seconds(3)).await;
    assert!(stuck(&world).contains(&"partition"), "{:?}", stuck(&world));
    // It goes on where it was, and is well again.
    world.pass(seconds(29)).await;
    assert!(!stuck(&world).contains(&"partition"), "{:?}", stuck(&world));
    world.spread(seconds(600)).await;
}
