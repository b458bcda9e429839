//! The way to tell a runtime's lanes of changes that come by other ways than the queues.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::Directory;
use crate::model::SubscriptionId;

/// Tells the lanes of a runtime what to read again.
#[derive(Clone)]
pub(crate) struct LanesHandle {
    pub(super) changed: mpsc::Sender<SubscriptionId>,
    pub(super) directory: Arc<Directory>,
}

impl LanesHandle {
    /// A subscription has changed.
    pub(crate) async fn changed(&self, subscription: SubscriptionId) {
        // Lanes that have ended need not know.
        let _ = self.changed.send(subscription).await;
    }

    /// Any of them may have.
    pub(crate) fn missed_changes(&self) {
        self.directory.miss_changes();
    }
}
