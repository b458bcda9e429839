//! Takes a passive subscription and what is to be done with a notification; pulls whenever there is something,
//! does it, and settles: taken, refused for good, or handed back for another try. A template: yours may as well
//! pull over REST, by the same three steps.

use std::time::Duration;

use flare_core::model::SubscriptionId;
use flare_core::{Flare, Pull, Result};
use flare_core::{PullOutcome, PullSettlement};
use serde_json::Value;

/// How many notifications are taken at a time. As many as are done within the lease.
const AT_ONCE: usize = 10;
/// How long a pull waits for a change: one request in that time, and not one a second.
const WAIT: Duration = Duration::from_secs(10);
/// How long what was pulled is this client's: a client that dies holds nothing longer than that.
const LEASE: Duration = Duration::from_secs(30);

/// A client that takes what waits for it, when it likes.
#[derive(Debug, Clone)]
pub struct PullClient {
    flare: Flare,
    subscription: SubscriptionId,
}

/// What one pull came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PullTurn {
    /// Notifications that this client has now.
    pub taken: usize,
    /// Those it does not want.
    pub refused: usize,
    /// Those it hands back: they are to be had again.
    pub returned: usize,
    /// Those whose lease was over when they were settled. Somebody else has them, or will.
    pub expired: usize,
    /// Those that the store failed at. They come again, unless they were settled all the same.
    pub failed: usize,
}

impl PullClient {
    /// A client of a subscription whose mode is passive.
    pub fn new(flare: Flare, subscription: SubscriptionId) -> Self {
        Self { flare, subscription }
    }

    /// Pulls once, waiting for a change if nothing waits, and has each notification handled.
    ///
    /// A notification may come twice: after a crash between handling and settling, or a lease that was
    /// over. It has the same `webhookId` then; a client that must not do a thing twice keeps those.
    pub async fn turn(&self, mut handle: impl FnMut(&Value) -> PullOutcome) -> Result<PullTurn> {
        let wanted = Pull::new(AT_ONCE).wait(WAIT).lease(LEASE);
        let pulled = self.flare.pull(self.subscription, wanted).await?;
        let outcomes: Vec<(String, PullOutcome)> = pulled
            .into_iter()
            .map(|pulled| {
                // What is no JSON is not for us; Flare sends none.
                let told = serde_json::from_slice(&pulled.notification);
                let outcome = told.map_or(PullOutcome::Discard, |told| handle(&told));
                (pulled.receipt, outcome)
            })
            .collect();
        let settled = self.flare.settle(self.subscription, outcomes.clone()).await?;
        let mut turn = PullTurn::default();
        for ((_, outcome), settlement) in outcomes.into_iter().zip(settled) {
            match (settlement, outcome) {
                (PullSettlement::Expired, _) => turn.expired += 1,
                (PullSettlement::Failed, _) => turn.failed += 1,
                (_, PullOutcome::Success) => turn.taken += 1,
                (_, PullOutcome::Discard) => turn.refused += 1,
                _ => turn.returned += 1,
            }
        }
        Ok(turn)
    }
}
