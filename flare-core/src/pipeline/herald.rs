//! Takes news of a subscription; gives them to all runtimes on the same stores, where there is a way
//! that is faster, or surer, than the slot's queue.

use std::fmt;

use async_trait::async_trait;

use crate::error::Result;
use crate::model::SubscriptionId;

/// Whoever can tell all runtimes at once.
#[async_trait]
pub(crate) trait Herald: fmt::Debug + Send + Sync {
    /// Has whoever works a subscription read it again.
    async fn tell(&self, subscription: SubscriptionId) -> Result<()>;
}
