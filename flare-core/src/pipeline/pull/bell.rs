//! Pullers that wait for a change, and what wakes those of this process. A change that another node
//! spreads is found by looking now and then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::model::SubscriptionId;
use crate::tools::lock;

/// Who waits, by subscription.
#[derive(Debug, Default)]
pub(crate) struct PullBells {
    /// How many wait, so that where none does a change costs one look at this.
    waiting: AtomicUsize,
    bells: Mutex<HashMap<SubscriptionId, (Arc<Notify>, usize)>>,
}

impl PullBells {
    /// Wakes those who wait for changes of these.
    pub(crate) fn ring(&self, subscriptions: impl IntoIterator<Item = SubscriptionId>) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let bells = lock(&self.bells);
        for subscription in subscriptions {
            if let Some((bell, _)) = bells.get(&subscription) {
                bell.notify_waiters();
            }
        }
    }

    /// Waits for changes of one, from now on until it is dropped.
    pub(crate) fn listen(&self, subscription: SubscriptionId) -> PullListener<'_> {
        let mut bells = lock(&self.bells);
        let (bell, listeners) = bells.entry(subscription).or_default();
        *listeners += 1;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        PullListener { bells: self, subscription, bell: Arc::clone(bell) }
    }
}

/// A pull that waits.
#[derive(Debug)]
pub(crate) struct PullListener<'a> {
    bells: &'a PullBells,
    subscription: SubscriptionId,
    pub(crate) bell: Arc<Notify>,
}

impl Drop for PullListener<'_> {
    fn drop(&mut self) {
        let mut bells = lock(&self.bells.bells);
        self.bells.waiting.fetch_sub(1, Ordering::SeqCst);
        if let Some((_, listeners)) = bells.get_mut(&self.subscription) {
            *listeners -= 1;
            if *listeners == 0 {
                bells.remove(&self.subscription);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn whoever_waits_hears_its_own_changes_and_is_forgotten() {
        let bells = PullBells::default();
        let [mine, other] = [1, 2].map(|number| SubscriptionId::from_bytes([number; 16]));
        bells.ring([mine]);
        {
            let listener = bells.listen(mine);
            let mut rings = Box::pin(listener.bell.notified());
            rings.as_mut().enable();
            bells.ring([other]);
            assert!(rings.as_mut().now_or_never().is_none());
            bells.ring([mine]);
            assert!(rings.as_mut().now_or_never().is_some());
        }
        assert!(lock(&bells.bells).is_empty() && bells.waiting.load(Ordering::SeqCst) == 0);
    }
}
