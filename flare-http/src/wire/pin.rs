//! What is given a place of its own: a slot a node, a subscription a slot.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::json::RawJson;
use crate::problem::Problem;

/// Which node works a slot for as long as it is there.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SlotPin, example = json!({"node": "big-machine"}))]
pub(crate) struct SlotPinInput {
    /// The name of a node of the cluster.
    pub(crate) node: String,
}

/// Which part of a subscription gets a slot of its own; all of it, if it does not say.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SubscriptionPin, example = json!({}))]
pub(crate) struct SubscriptionPinInput {
    /// One lane. Not possible yet: all lanes of a subscription move together.
    #[schema(value_type = Option<u32>, nullable = false)]
    lane: Option<RawJson>,
}

impl SubscriptionPinInput {
    /// Insists on all lanes.
    pub(crate) fn all_lanes(self) -> Result<(), Problem> {
        match self.lane {
            None => Ok(()),
            Some(_) => Err(Problem::invalid(
                "lane",
                "a lane cannot be placed by itself yet: leave it out, and all lanes of the \
                 subscription get one slot of their own",
            )),
        }
    }
}

/// The slot that a subscription shares with no other.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PinnedSlot {
    /// Its number.
    pub(crate) slot: u32,
}

/// The path of a slot.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct SlotPath {
    /// The number of the slot.
    #[param(value_type = u32)]
    pub(crate) slot: String,
}
