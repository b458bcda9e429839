//! Takes what happens in the cluster as this node sees it; counts it through the `metrics` facade.
//! Without the feature of that name it costs nothing.

#[cfg(feature = "metrics")]
pub(crate) use counting::{
    epoch_drawn, handed_over, joined, lost, moved, shed, show, slots_changed,
};
#[cfg(not(feature = "metrics"))]
pub(crate) use silent::{epoch_drawn, handed_over, joined, lost, moved, shed, show, slots_changed};

/// What became of slots on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotMetric {
    Granted,
    Released,
    Lost,
}

impl SlotMetric {
    #[cfg_attr(not(feature = "metrics"), allow(dead_code, reason = "not counted"))]
    const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Released => "released",
            Self::Lost => "lost",
        }
    }
}

#[cfg(feature = "metrics")]
mod counting {
    use std::time::Duration;

    use metrics::{counter, gauge, histogram};

    use super::SlotMetric;
    use crate::cluster::context::NodeContext;
    use crate::cluster::mirror::View;
    use crate::cluster::moves::Moves;
    use crate::cluster::view::ClusterView;
    use crate::model::NodeId;
    use crate::observe;

    /// How often it is shown what has not changed.
    const TELL_EVERY: Duration = Duration::from_mins(5);

    /// This node is registered.
    pub(crate) fn joined() {
        counter!(observe::CLUSTER_JOINED).increment(1);
    }

    /// Its registration is not certain any more.
    pub(crate) fn lost() {
        counter!(observe::CLUSTER_LOST).increment(1);
    }

    /// As the leader it drew an epoch.
    pub(crate) fn epoch_drawn() {
        counter!(observe::CLUSTER_EPOCHS).increment(1);
    }

    /// As the leader it stored a plan.
    pub(crate) fn moved(moves: &Moves) {
        counter!(observe::CLUSTER_PLANS).increment(1);
        let counts = [
            ("free", moves.free),
            ("orphaned", moves.orphaned),
            ("handed-over", moves.handed_over),
            ("forced", moves.forced),
        ];
        for (reason, count) in counts {
            counter!(observe::CLUSTER_MOVES, "reason" => reason).increment(count as u64);
        }
    }

    /// As the leader it saw that slots have new owners, so long after it asked for them.
    pub(crate) fn handed_over(took: Duration) {
        histogram!(observe::CLUSTER_HAND_OVER).record(took.as_secs_f64());
    }

    /// Slots came to this node or left it.
    pub(crate) fn slots_changed(change: SlotMetric, count: usize) {
        counter!(observe::CLUSTER_SLOT_CHANGES, "change" => change.as_str())
            .increment(count as u64);
    }

    /// It has this weight, of which it keeps so much for now.
    pub(crate) fn shed(weight: u32, busy_percent: u64) {
        gauge!(observe::CLUSTER_WEIGHT).set(f64::from(weight));
        gauge!(observe::CLUSTER_BUSY).set(busy_percent as f64);
    }

    /// Shows the cluster as this node sees it, for as long as it takes part.
    pub(crate) async fn show(
        mut view: View,
        mut node: tokio::sync::watch::Receiver<Option<NodeId>>,
        context: &NodeContext,
    ) {
        for counted in [
            observe::CLUSTER_JOINED,
            observe::CLUSTER_LOST,
            observe::CLUSTER_EPOCHS,
            observe::CLUSTER_PLANS,
        ] {
            counter!(counted).increment(0);
        }
        loop {
            gauges(&ClusterView::of(&view.borrow_and_update()), *node.borrow_and_update());
            let changed = tokio::select! {
                changed = view.changed() => changed,
                changed = node.changed() => changed,
                // Recorders may forget what is not told again.
                () = context.sleep(TELL_EVERY) => Ok(()),
            };
            if changed.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn gauges(view: &ClusterView, me: Option<NodeId>) {
        let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
        gauge!(observe::CLUSTER_MEMBER).set(flag(me.is_some()));
        gauge!(observe::CLUSTER_LEADER).set(flag(me.is_some() && view.leader == me));
        gauge!(observe::CLUSTER_NODES).set(view.nodes.len() as f64);
        let slots = view.plan.as_ref().map_or(0, |plan| plan.slots.len());
        let worked = slots.saturating_sub(view.moving).saturating_sub(view.unassigned);
        let counts = [("owned", worked), ("moving", view.moving), ("unassigned", view.unassigned)];
        for (state, count) in counts {
            gauge!(observe::CLUSTER_SLOTS, "state" => state).set(count as f64);
        }
        let mine = view.nodes.iter().find(|node| Some(node.id) == me).map_or(0, |node| node.slots);
        gauge!(observe::CLUSTER_OWN_SLOTS).set(mine as f64);
    }
}

#[cfg(not(feature = "metrics"))]
mod silent {
    use std::time::Duration;

    use super::SlotMetric;
    use crate::cluster::context::NodeContext;
    use crate::cluster::mirror::View;
    use crate::cluster::moves::Moves;
    use crate::model::NodeId;

    pub(crate) fn joined() {}

    pub(crate) fn lost() {}

    pub(crate) fn epoch_drawn() {}

    pub(crate) fn moved(_: &Moves) {}

    pub(crate) fn handed_over(_: Duration) {}

    pub(crate) fn slots_changed(_: SlotMetric, _: usize) {}

    pub(crate) fn shed(_: u32, _: u64) {}

    pub(crate) async fn show(
        _: View,
        _: tokio::sync::watch::Receiver<Option<NodeId>>,
        _: &NodeContext,
    ) {
        std::future::pending().await
    }
}
