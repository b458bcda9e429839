//! Takes a subscription that moves to another slot; gives its lanes an end in the one before, then says
//! so: only then may whoever has the new one start them.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::warn;

use super::Lanes;
use crate::error::Result;
use crate::model::{Subscription, SubscriptionId};
use crate::pipeline::context::Context;
use crate::pipeline::stage::{chain, pause_after};
use crate::port::Replaced;

impl Lanes {
    /// Ends the lanes of a subscription that has yet to leave a slot, and says that it has left if
    /// that slot is ours. Whoever owns it is the only one who knows: one that never worked those
    /// lanes says so at once, so the next owner makes up for one that died.
    pub(super) fn leave(&mut self, subscription: &Arc<Subscription>, from: u32) {
        let id = subscription.id;
        if self.directory.works(id) {
            self.directory.stop(id);
            self.awaited.insert(id);
            return;
        }
        // A slot of other settings is nobody's: then it is for whoever has the new one to say.
        let known = from < self.context.all_slots();
        let slot = if known { from } else { self.context.slot_of(subscription) };
        let Some(tenancy) = self.slots.get(&slot).filter(|it| it.works()) else { return };
        // Trusted after it was read: nobody else worked the slot before, and whoever does later reads
        // that the subscription leaves it. So what was read may be replaced at any time.
        if !tenancy.grant.term.is_trusted(slot, &*self.context.clock) {
            self.later(id);
        } else if self.leaving.insert(id, subscription.generation) != Some(subscription.generation)
        {
            let context = Arc::clone(&self.context);
            self.tasks.spawn(has_left(context, Arc::clone(subscription), self.tell.clone()));
        }
    }
}

/// Stores that nobody works a subscription in the slot before any more, and tells whoever may go on.
async fn has_left(
    context: Arc<Context>,
    subscription: Arc<Subscription>,
    tell: mpsc::Sender<SubscriptionId>,
) {
    let mut failures = 0;
    while let Err(error) = store(&context, &subscription).await {
        failures += 1;
        warn!(subscription = %subscription.id, error = %chain(&error), "could not let it move, will retry");
        context.sleep(context.jittered(pause_after(failures))).await;
    }
    // The new slot may be ours as well; lanes that have ended need not know.
    let _ = tell.send(subscription.id).await;
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
                // Whoever has the new slot finds it by a sweep.
                warn!(subscription = %moved.id, error = %chain(&error), "could not announce a move");
            }
        }
        // Whoever changed it told everybody.
        Replaced::Conflict(_) | Replaced::Missing => {}
    }
    Ok(())
}
