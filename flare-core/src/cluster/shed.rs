//! Takes the load a node is told it has; gives the node less of its weight while that is too much. What
//! is too much is decided in `shedding`.

use tokio::sync::watch;
use tracing::info;

use super::context::NodeContext;
use super::meter;
use super::registry::Facts;
use super::shedding::{LOOK_EVERY, Shedding};

/// Looks at the load now and then, until dropped.
pub(crate) async fn shed(context: &NodeContext, facts: &watch::Sender<Facts>) {
    let mut shedding = Shedding::new(context.monotonic());
    loop {
        let before = *facts.borrow();
        let busy = before.load.busy_percent;
        let kept = match context.settings.shed_load {
            true => shedding.look(busy, context.monotonic()),
            false => before.kept,
        };
        if facts.send_if_modified(|facts| std::mem::replace(&mut facts.kept, kept) != kept) {
            let node = &context.settings.name;
            match kept < before.kept {
                true => info!(%node, kept, busy, "is overloaded, and keeps less of its weight"),
                false => info!(%node, kept, busy, "is calm, and takes back some of its weight"),
            }
        }
        meter::shed(facts.borrow().kept_weight(), busy);
        context.sleep(LOOK_EVERY).await;
    }
}
