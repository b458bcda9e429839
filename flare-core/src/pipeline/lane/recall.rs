//! Takes a lane that begins; gives what its predecessors remembered of it and its client.

use tracing::warn;

use super::Lane;
use super::ledger::Ledger;
use crate::model::LaneState;
use crate::pipeline::health::Health;
use crate::pipeline::stage::{chain, pause_after};

/// What is remembered of the lane; `None` if it is to end before that is known.
pub(super) async fn recall(lane: &Lane) -> Option<Ledger> {
    let context = &lane.context;
    let mut failures = 0;
    while !lane.stop.is_requested() {
        match context.repository.lanes(lane.id.subscription).await {
            Ok(states) => {
                let held = states.iter().filter_map(|state| state.hold_until);
                held.for_each(|until| lane.hold.until(until));
                let own = states.into_iter().find(|state| state.lane == lane.id);
                let own = own.unwrap_or_else(|| LaneState::new(lane.id));
                return Some(Ledger::new(Health::recall(own, lane.subscription.resumed_at)));
            }
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not read the lane's state, will retry");
                tokio::select! {
                    biased;
                    () = context.sleep(context.jittered(pause_after(failures))) => {}
                    // A wish to stop, perhaps.
                    () = lane.wake.notified() => {}
                }
            }
        }
    }
    None
}
