//! Takes a history with clients that pull; lets them take what waits, keep, settle, hand back and forget
//! it, and notes what that means for what they hold.

use std::time::Duration;

use flare_core::Pull;
use flare_core::model::{SubscriptionId, Timestamp};
use flare_core::port::Clock;
use flare_core::{PullOutcome, PullSettlement};

use crate::history::History;
use crate::known::Told;

/// A notification that a puller has, until it is settled or the claim on it lapses.
#[derive(Debug)]
pub(crate) struct InHand {
    pub(crate) told: Told,
    receipt: String,
    /// By then the claim has lapsed, however late it was made.
    lapsed: Timestamp,
    /// What the client does with it.
    outcome: PullOutcome,
}

impl History {
    /// A client takes some of what waits, and settles it at once, later or never.
    pub(crate) async fn pull(&mut self, id: SubscriptionId) {
        let Some(wishes) = &mut self.wishes else { return };
        let (max, lease) = (wishes.random.usize(1..4), wishes.random.u64(1..40));
        let lease = Duration::from_secs(lease);
        let mut wanted = Pull::new(max).lease(lease);
        if wishes.random.u8(..4) == 0 {
            wanted = wanted.wait(Duration::from_millis(wishes.random.u64(..20_000)));
        }
        self.take(id, wanted, lease, false).await;
        if self.wishes.as_mut().is_some_and(|wishes| wishes.random.bool()) {
            self.settle_some(id).await;
        }
    }

    /// A client that is well takes what waits.
    pub(crate) async fn pull_everything(&mut self, id: SubscriptionId) {
        let lease = Duration::from_secs(30);
        self.take(id, Pull::new(10), lease, true).await;
        self.settle_some(id).await;
    }

    async fn take(&mut self, id: SubscriptionId, wanted: Pull, lease: Duration, well: bool) {
        let lapses = self.clock.now() + lease;
        let flare = self.flare.clone();
        let pulled = match self.in_time(flare.pull(id, wanted)).await {
            Ok(pulled) => pulled,
            Err(error) => return self.note(format_args!("pull {id}: {error}")),
        };
        let lapsed = self.clock.now() + lease;
        for pulled in pulled {
            let envelope = serde_json::from_slice(&pulled.notification).unwrap();
            let told = Told::said(id, &envelope);
            self.note(format_args!("pulled {told:?}"));
            let Some(wishes) = &mut self.wishes else { return };
            let outcome = match wishes.random.u8(..4) {
                0 if !well => PullOutcome::Discard,
                1 if !well => PullOutcome::Return,
                _ => PullOutcome::Success,
            };
            self.clients.handed(&told, outcome, lapses);
            wishes.in_hand.push(InHand { told, receipt: pulled.receipt, lapsed, outcome });
        }
    }

    /// A client settles what it has in hand, or forgets it.
    pub(crate) async fn settle_some(&mut self, id: SubscriptionId) {
        let Some(wishes) = &mut self.wishes else { return };
        let (mine, others) = std::mem::take(&mut wishes.in_hand)
            .into_iter()
            .partition::<Vec<InHand>, _>(|it| it.told.subscription == id);
        wishes.in_hand = others;
        for it in mine {
            // From the moment it is asked for it may happen.
            self.clients.settling(&it.told);
            let asked = self.clock.now();
            let flare = self.flare.clone();
            let settled = self.in_time(flare.settle(id, [(it.receipt, it.outcome)])).await;
            let settled = settled.map(|settled| settled[0]);
            let (told, outcome, seed) = (&it.told, it.outcome, self.seed);
            self.note(format_args!("settle {told:?} {outcome:?}: {settled:?}"));
            let late = it.lapsed <= asked;
            let expired = !matches!(settled, Ok(PullSettlement::Done));
            assert!(expired || !late, "history {seed}: settled after its claim had lapsed");
            self.clients.settled_by(&it.told, it.outcome, settled.ok(), asked);
        }
    }
}
