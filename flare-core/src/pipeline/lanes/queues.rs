//! Takes the queues that must be there; gives back those that have vanished, which nobody may have
//! noticed: a sender notices when it has something to say, a listener when its wait ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use tracing::warn;

use super::Lanes;
use crate::error::{ErrorKind, Result};
use crate::model::Placement;
use crate::pipeline::context::Context;
use crate::pipeline::stage::chain;
use crate::port::QueueName;

impl Lanes {
    /// Sees beside everything else that the queues are there that this runtime needs.
    pub(super) fn check_queues(&mut self) {
        if self.checking.as_ref().is_some_and(|checking| !checking.is_finished()) {
            return;
        }
        let slots = self.slots.iter().filter(|(_, it)| it.works() && it.listens);
        let slots = slots.map(|(slot, _)| QueueName::Slot(*slot));
        let lanes = match self.context.settings.placement {
            Placement::Shared => Vec::new(),
            Placement::Isolated => self.directory.lanes(),
        };
        let needed = [QueueName::Partition, QueueName::Spread].into_iter().chain(slots);
        let needed = needed.chain(lanes.into_iter().map(QueueName::Lane)).collect();
        let check = restore_missing(Arc::clone(&self.context), needed);
        self.checking = Some(self.tasks.spawn(check));
    }
}

/// Makes those queues again that are missing. A queue system that cannot say is asked another time.
async fn restore_missing(context: Arc<Context>, needed: BTreeSet<QueueName>) {
    let asked = context.clock.monotonic();
    let missing = match missing(&context, needed).await {
        Ok(missing) => missing,
        Err(error) => {
            warn!(error = %chain(&error), "could not see whether all queues exist, will retry");
            return;
        }
    };
    for queue in missing {
        if let Err(error) = restore(&context, &queue, asked).await {
            warn!(%queue, error = %chain(&error), "could not make the queue again, will retry");
        }
    }
}

async fn missing(
    context: &Context,
    mut needed: BTreeSet<QueueName>,
) -> Result<BTreeSet<QueueName>> {
    let mut there = context.queue.list();
    while let Some(queue) = there.try_next().await? {
        needed.remove(&queue);
    }
    Ok(needed)
}

/// Lists may be late to show what is new, so each queue is asked for itself before.
async fn restore(context: &Context, queue: &QueueName, asked: Duration) -> Result<()> {
    match context.queue.depth(queue).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            context.restore(queue, asked).await.map(drop)
        }
        Err(error) => Err(error),
    }
}
