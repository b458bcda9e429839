//! Brings queues back that have vanished without notice: a sender notices when it has something to say, a
//! listener when its wait ends.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use tracing::warn;

use crate::error::{ErrorKind, Result};
use crate::model::{LaneId, Placement};
use crate::pipeline::context::Context;
use crate::pipeline::stage::chain;
use crate::port::QueueName;

/// Makes those queues again that are missing, of all that a runtime with these slots and lanes needs. A queue
/// system that cannot say is asked another time.
pub(super) async fn restore_missing(context: Arc<Context>, slots: Vec<u32>, lanes: Vec<LaneId>) {
    let mut needed = BTreeSet::from([QueueName::Partition, QueueName::Spread]);
    needed.extend(slots.into_iter().map(QueueName::Slot));
    if context.settings.placement == Placement::Isolated {
        needed.extend(lanes.into_iter().map(QueueName::Lane));
    }
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
