//! Takes the store's counter; gives the epoch a runner writes under, and the store's time.

use crate::error::Result;
use crate::model::{Epoch, Timestamp};
use crate::pipeline::context::Context;
use crate::pipeline::store_time::{Ahead, draw};

/// Under which epoch a runner works, and how its clock differs from the store's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) epoch: Epoch,
    ahead: Ahead,
}

impl Standing {
    /// Draws an epoch greater than all that were drawn before.
    pub(crate) async fn draw(context: &Context) -> Result<Self> {
        let (drawn, ahead) = draw(context).await?;
        Ok(Self { epoch: drawn.epoch, ahead })
    }

    /// Store time, as well as it can be told from here.
    pub(crate) fn store_time(self, now: Timestamp) -> Timestamp {
        self.ahead.store_time(now)
    }
}
