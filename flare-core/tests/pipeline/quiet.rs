//! A change that needs no telling is settled at once, and nobody is told.

use crate::support::{few_slots, in_memory};

// One thread: nothing of the runtime runs between the put and the delete.
#[tokio::test]
async fn a_document_deleted_before_anybody_heard_of_it_is_settled_in_silence() {
    let mut world = in_memory(few_slots());
    world.start();
    let users = world.users().await;
    world.subscribe(&users, "c").await;

    // The lane is at work before, so that it cannot be in doubt.
    world.put(1, 1).await;
    world.settled().await;
    world.put(2, 1).await;
    world.delete(2).await;
    world.settled().await;
    assert_eq!(world.delivery.total(), 1);
}
