//! Rows that were just written, with their documents, on their way from the spread to the lane that tells of them, so that it need not read them. A lane that cannot use them reads as ever.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::model::{Document, Row, Timestamp};
use crate::tools::lock;

/// What waits for a lane at most: one with more to do reads it together.
const MOST: usize = 16;

/// Rows of one lane, as they were when they had been written.
#[derive(Debug)]
pub(crate) struct Handover {
    /// Which moment of this process they are not older than ([`NearLanes::moment`]).
    ///
    /// [`NearLanes::moment`]: crate::pipeline::lanes::NearLanes::moment
    pub(crate) moment: u64,
    /// The same by the store's clock.
    pub(crate) at: Timestamp,
    pub(crate) rows: Vec<(Row, Document)>,
}

/// What was handed to a lane and waits for it.
#[derive(Debug, Default)]
pub(crate) struct HandedRows {
    waiting: Mutex<Vec<Handover>>,
    given: Notify,
}

impl HandedRows {
    /// Gives rows to the lane, unless too much waits for it already; tells whether it did.
    pub(crate) fn give(&self, handover: Handover) -> bool {
        let mut waiting = lock(&self.waiting);
        let rows: usize = waiting.iter().map(|it| it.rows.len()).sum();
        if rows + handover.rows.len() > MOST {
            return false;
        }
        waiting.push(handover);
        drop(waiting);
        self.given.notify_one();
        true
    }

    /// Waits until something was given.
    pub(super) async fn given(&self) {
        self.given.notified().await;
    }

    /// Takes all that waits.
    pub(super) fn take(&self) -> Vec<Handover> {
        std::mem::take(&mut lock(&self.waiting))
    }
}
