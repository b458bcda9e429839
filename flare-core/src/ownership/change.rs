//! A change of which slots a node works.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{Slots, Term};

/// A change of which slots this node works.
#[derive(Debug)]
pub enum SlotChange {
    /// These slots are this node's, under an epoch greater than any they had before.
    Granted {
        /// Which slots.
        slots: Slots,
        /// Since when, and for how long that is certain.
        term: Term,
    },
    /// These are to be given up: nothing new begins, what is in flight may finish.
    Releasing {
        /// Which slots.
        slots: Slots,
        /// By when, on the monotonic clock; what is in flight then is dropped.
        until: Duration,
        /// To be dropped, or sent to, once nothing is worked any more.
        done: oneshot::Sender<()>,
    },
    /// These are another node's, perhaps: what is in flight is dropped at once.
    Lost {
        /// Which slots.
        slots: Slots,
    },
}
