//! Stores that a subscription has left a slot: only then may the owner of the new one start its lanes.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::warn;

use crate::error::Result;
use crate::model::{Subscription, SubscriptionId};
use crate::pipeline::context::Context;
use crate::pipeline::stage::{chain, pause_after};
use crate::port::Replaced;

/// Stores that a subscription is not worked in the slot before any more, and tells the owner of the new one.
pub(super) async fn has_left(
    context: Arc<Context>,
    subscription: Arc<Subscription>,
    changed: mpsc::Sender<SubscriptionId>,
) {
    let mut failures = 0;
    while let Err(error) = store(&context, &subscription).await {
        failures += 1;
        warn!(subscription = %subscription.id, error = %chain(&error), "could not let it move, will retry");
        context.sleep(context.jittered(pause_after(failures))).await;
    }
    // The new slot may be ours as well; lanes that have ended need not know.
    let _ = changed.send(subscription.id).await;
}

async fn store(context: &Context, subscription: &Subscription) -> Result<()> {
    let mut moved = subscription.clone();
    moved.moving_from = None;
    // Later than any that its rows were written under.
    let grant = context.repository.next_epoch().await?;
    (moved.least_epoch, moved.left_at) = (grant.epoch, Some(grant.at));
    match context.repository.replace_subscription(subscription.generation, moved).await? {
        Replaced::Done(moved) => {
            if let Err(error) = context.refresh(&moved).await {
                // The owner of the new slot finds it by a sweep.
                warn!(subscription = %moved.id, error = %chain(&error), "could not announce a move");
            }
        }
        // The change that came between was announced.
        Replaced::Conflict(_) | Replaced::Missing => {}
    }
    Ok(())
}
