//! Takes news that come by other ways than the queues; gives them to the lanes.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::directory::Directory;
use crate::model::SubscriptionId;

/// Tells the lanes of a runtime.
#[derive(Clone)]
pub(crate) struct Teller {
    pub(super) news: mpsc::Sender<SubscriptionId>,
    pub(super) directory: Arc<Directory>,
}

impl Teller {
    /// A subscription has changed.
    pub(crate) async fn tell(&self, subscription: SubscriptionId) {
        // Lanes that have ended need not know.
        let _ = self.news.send(subscription).await;
    }

    /// Any of them may have.
    pub(crate) fn missed(&self) {
        self.directory.miss_news();
    }
}
