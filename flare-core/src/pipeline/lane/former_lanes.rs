//! What the lanes of a subscription before these remembered of the client, and what a lane begins with of it.
//! Lanes that begin together read that once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tracing::warn;

use super::Lane;
use crate::error::{Error, Result};
use crate::model::{LaneId, LaneState, Unreadable};
use crate::pipeline::health::ClientHealth;
use crate::pipeline::stage::{chain, pause_after};

/// What is stored of a subscription's lanes, read by the first of those that begin together.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormerLanes(Arc<OnceCell<Vec<LaneState>>>);

impl FormerLanes {
    /// The states as they were when the first lane asked; an error is of that one alone. So is one
    /// that a newer version wrote, for a lane that sends must know what it keeps there. One that is
    /// damaged is forgotten: counting starts anew.
    async fn read(&self, lane: &Lane) -> Result<&[LaneState]> {
        let read = async || {
            let states = lane.context.repository.lanes(lane.id.subscription).await?;
            states.unreadable.iter().for_each(|it| lane.context.note_unreadable(it));
            match states.unreadable.into_iter().find(Unreadable::is_newer) {
                Some(newer) => Err(Error::of_record("lanes", newer)),
                None => Ok(states.items),
            }
        };
        self.0.get_or_try_init(read).await.map(Vec::as_slice)
    }
}

/// What is remembered of the lane; `None` if it is to end before that is known.
pub(super) async fn health_at_start(lane: &Lane, former: FormerLanes) -> Option<ClientHealth> {
    let context = &lane.context;
    let mut failures = 0;
    while !lane.stop.is_requested() {
        match former.read(lane).await {
            Ok(states) => {
                let held = states.iter().filter_map(|state| state.hold_until);
                held.for_each(|until| lane.hold.until(until));
                let own =
                    state_at_start(lane.id, lane.subscription.spec.delivery().lanes(), states);
                return Some(ClientHealth::stored(own, lane.subscription.resumed_at));
            }
            // It was said that it cannot be read.
            Err(error) if error.unreadable().is_some() => {
                wait(lane, context.settings.rederive_every).await;
            }
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not read the lane's state, will retry");
                wait(lane, pause_after(failures)).await;
            }
        }
    }
    None
}

async fn wait(lane: &Lane, pause: Duration) {
    tokio::select! {
        biased;
        () = lane.context.sleep(lane.context.jittered(pause)) => {}
        // A wish to stop, perhaps.
        () = lane.wake.notified() => {}
    }
}

/// The state a lane begins with: its own; if it had other documents before, or is new, then with how
/// the client was for the lanes that had them. So a client that is probed stays so, and what does
/// not expire while it is does not begin to.
fn state_at_start(lane: LaneId, lanes: u16, states: &[LaneState]) -> LaneState {
    let own = states.iter().find(|state| state.lane == lane);
    let mut state = own.cloned().unwrap_or_else(|| LaneState::new(lane));
    let same = |state: &LaneState| state.lanes == lanes || state.lanes == 0;
    if own.is_some_and(same) {
        state.lanes = lanes;
        return state;
    }
    state.lanes = lanes;
    // Those of the newest number before this one; of others there may be older traces.
    let others = || states.iter().filter(|state| state.lanes != lanes);
    let Some(newest) = others().max_by_key(|state| (state.epoch, state.updated_at)) else {
        return state;
    };
    let former = || others().filter(|state| state.lanes == newest.lanes);
    let worst = former().max_by_key(|state| (state.failures_in_a_row, state.last_error_at));
    let Some(worst) = worst else { return state };
    state.failures_in_a_row = worst.failures_in_a_row;
    state.consecutive_failures = worst.consecutive_failures;
    (state.last_error_at, state.last_error) = (worst.last_error_at, worst.last_error.clone());
    state.released_at = former().filter_map(|state| state.released_at).max();
    // Others may have got through.
    let last_success = states.iter().filter_map(|state| state.last_success_at).max();
    state.failing_since = worst.failing_since.filter(|since| last_success <= Some(*since));
    state.updated_at = worst.updated_at;
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Epoch, SubscriptionId, Timestamp};

    fn lane(shard: u16) -> LaneId {
        LaneId::new(SubscriptionId::from_bytes([1; 16]), shard)
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix_seconds(seconds)
    }

    /// A lane of `lanes` that fails `failures` times in a row since a time.
    fn state(shard: u16, lanes: u16, epoch: u64, failures: u32, since: i64) -> LaneState {
        let mut state = LaneState::new(lane(shard));
        (state.lanes, state.epoch, state.delivered) = (lanes, Epoch::new(epoch), 10);
        state.failures_in_a_row = failures;
        if failures > 0 {
            state.failing_since = Some(at(since));
            state.last_error_at = Some(at(since + i64::from(failures)));
            state.last_error = Some("reset".to_owned());
        }
        state
    }

    #[test]
    fn a_lane_goes_on_from_its_own_state_whatever_the_others_are_like() {
        let states = [state(0, 2, 1, 7, 5), state(1, 2, 1, 0, 0)];
        for (shard, before) in states.iter().enumerate() {
            assert_eq!(state_at_start(lane(shard as u16), 2, &states), *before);
        }
        let mut unknown = states[0].clone();
        unknown.lanes = 0;
        let read = state_at_start(lane(0), 2, &[unknown]);
        assert_eq!(read, states[0], "from before they were counted");
        assert_eq!(
            state_at_start(lane(2), 3, &[]),
            LaneState { lanes: 3, ..LaneState::new(lane(2)) }
        );
    }

    #[test]
    fn lanes_of_another_number_know_how_the_client_is_and_count_on() {
        let mut states = vec![state(0, 2, 5, 0, 0), state(1, 2, 5, 7, 40)];
        // A trace of a still older number.
        states.push(state(2, 3, 4, 30, 1));
        for shard in 0..4 {
            let state = state_at_start(lane(shard), 4, &states);
            assert_eq!((state.failures_in_a_row, state.lanes), (7, 4), "{shard}");
            assert_eq!((state.failing_since, state.last_error_at), (Some(at(40)), Some(at(47))));
            assert_eq!(state.delivered, if shard < 3 { 10 } else { 0 });
        }
        states[0].last_success_at = Some(at(45));
        assert_eq!(state_at_start(lane(3), 4, &states).failing_since, None, "one gets through");
        states[0].released_at = Some(at(46));
        assert_eq!(state_at_start(lane(3), 4, &states).released_at, Some(at(46)));
    }

    #[test]
    fn a_lane_that_did_nothing_yet_is_not_judged_by_the_others_of_its_number() {
        let states = [state(0, 4, 9, 7, 40)];
        assert_eq!(state_at_start(lane(1), 4, &states).failures_in_a_row, 0);
    }
}
