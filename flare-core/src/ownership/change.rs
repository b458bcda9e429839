//! A change of which slots a node works: as the plan asks for it, as lanes are told of it, and as their
//! machine takes it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::{Slots, Term};

/// Held by all that still work slots which are to be given up: dropped by the last of them, it says that
/// nothing is worked any more.
pub type Released = Arc<oneshot::Sender<()>>;

/// A change of which slots this node works. On the way from the plan to the lanes it is the same change, and
/// says more each time: what a grant comes with, how lanes tell that they are done, and which clock `until` is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotChange<T = Term, D = Released, U = Duration> {
    /// These slots are this node's, under an epoch greater than any they had before.
    Granted {
        /// Which slots.
        slots: Slots,
        /// Since when, and for how long that is certain.
        term: T,
    },
    /// These are to be given up: nothing new begins, what is in flight may finish.
    Releasing {
        /// Which slots.
        slots: Slots,
        /// By when, on the monotonic clock unless said otherwise; what is in flight then is dropped.
        until: U,
        /// To be dropped once nothing is worked any more.
        done: D,
    },
    /// These are another node's, perhaps: what is in flight is dropped at once.
    Lost {
        /// Which slots.
        slots: Slots,
    },
}
