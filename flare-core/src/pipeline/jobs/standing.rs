//! Takes the store's counter; gives the epoch a runner writes under, and the store's time.

use crate::error::Result;
use crate::model::{Epoch, Timestamp};
use crate::pipeline::context::Context;

/// Under which epoch a runner works, and how its clock differs from the store's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) epoch: Epoch,
    /// How far the store's clock is ahead of ours, in nanoseconds.
    ahead: i64,
}

impl Standing {
    /// Draws an epoch greater than all that were drawn before.
    pub(crate) async fn draw(context: &Context) -> Result<Self> {
        let before = context.now();
        let drawn = context.repository.next_epoch().await?;
        let ahead = drawn.at.unix_nanos().saturating_sub(before.unix_nanos());
        Ok(Self { epoch: drawn.epoch, ahead })
    }

    /// Store time, as well as it can be told from here.
    pub(crate) fn store_time(self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(now.unix_nanos().saturating_add(self.ahead))
    }
}
