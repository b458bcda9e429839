//! Takes a history; lets its clients ask for more than to be told: for what is there, for everything
//! again, for what waits to be handed out or sent, for calm. Notes what has to hold from then on.

use std::collections::BTreeMap;
use std::time::Duration;

use flare_core::model::subscription::{BatchOptions, Mode, SubscriptionBuilder};
use flare_core::model::{JobKind, SubscriptionId, SubscriptionStatus};
use flare_core::port::{JobStore, SubscriptionStore};
use futures::StreamExt;

use crate::history::History;
use crate::known::Wanted;
use crate::pulling::InHand;

/// What the clients of a history ask for.
pub(crate) struct Wishes {
    /// Of its own, so that the other histories stay what they are.
    pub(crate) random: fastrand::Rng,
    /// A client wants to hear of a document no oftener.
    pub(crate) interval: Option<Duration>,
    /// Who was promised everything that is there.
    backfilled: BTreeMap<SubscriptionId, Promised>,
    /// What pullers have, and may settle some time.
    pub(crate) in_hand: Vec<InHand>,
}

/// How a client wishes to be told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// It asks for what waits.
    pub(crate) passive: bool,
    /// Which documents it wants.
    pub(crate) wanted: Wanted,
    /// It takes many in one request, and waits for them.
    many: Option<bool>,
}

impl Wish {
    const PLAIN: Self = Self { passive: false, wanted: Wanted::All, many: None };
}

/// Where client `number` takes many documents in one request.
fn all_at(number: u32, replacement: u32) -> String {
    format!("http://client-{number}.example/r{replacement}/all")
}

/// What a client was promised.
#[derive(Debug, Default, Clone, Copy)]
struct Promised {
    /// It will be given what is there.
    backfill: bool,
    /// It will be told everything again.
    resync: bool,
    /// Before how many requests of all that was asked for, perhaps in vain.
    asked: Option<u64>,
}

impl Wishes {
    /// Those of a history; half of them have none.
    pub(crate) fn of(seed: u64) -> Option<Self> {
        let mut random = fastrand::Rng::with_seed(seed ^ 5);
        if random.bool() {
            return None;
        }
        let interval = random.u8(..3) == 0;
        let interval = interval.then(|| Duration::from_secs(random.u64(1..20)));
        Some(Self { random, interval, backfilled: BTreeMap::new(), in_hand: Vec::new() })
    }
}

impl History {
    /// A subscription as its client wishes it, and what it wishes.
    pub(crate) fn wished(
        &mut self,
        mut spec: SubscriptionBuilder,
        number: u32,
        replacement: u32,
    ) -> (SubscriptionBuilder, Wish) {
        let Some(wishes) = &mut self.wishes else { return (spec, Wish::PLAIN) };
        if let Some(interval) = wishes.interval {
            spec = spec.min_interval(interval);
        }
        let mut wish = Wish::PLAIN;
        match wishes.random.u8(..9) {
            0..=2 => {
                wish.passive = true;
                spec = spec.mode(Mode::Passive);
            }
            3 => {
                wish.many = Some(false);
                spec = spec.batch(BatchOptions::of(3)).url(all_at(number, replacement));
            }
            4 => {
                wish.many = Some(true);
                let batch = BatchOptions::of(4).wait(Duration::from_secs(2));
                spec = spec.batch(batch).url(all_at(number, replacement));
            }
            // One that is created has none: whether it was is not always told.
            5 if replacement > 0 => wish.wanted = Wanted::Even,
            6 if replacement > 0 => wish.wanted = Wanted::Odd,
            _ => {}
        }
        if let Some(filter) = wish.wanted.filter() {
            spec = spec.filter(filter);
        }
        (spec, wish)
    }

    /// A client asks for something.
    pub(crate) async fn wish(&mut self) {
        let ids: Vec<SubscriptionId> = self.subscriptions.keys().copied().collect();
        let Some(wishes) = &mut self.wishes else { return };
        let Some(id) = wishes.random.choice(ids) else { return };
        match wishes.random.u8(..16) {
            0 | 1 => self.backfill(id).await,
            2 => self.resync(id).await,
            3 => self.cancel(id).await,
            4..=7 => self.pull(id).await,
            8 | 9 => self.settle_some(id).await,
            10 => self.demand(id).await,
            11 => self.replace(id).await,
            _ => {}
        }
    }

    async fn backfill(&mut self, id: SubscriptionId) {
        self.clients.may_be_retold(id);
        let flare = self.flare.clone();
        let begun = self.in_time(flare.backfill(id)).await;
        self.note(format_args!("backfill {id}: {begun:?}"));
        if let Some(promised) = self.promised(id) {
            promised.backfill |= begun.is_ok();
        }
    }

    async fn resync(&mut self, id: SubscriptionId) {
        self.clients.may_be_retold(id);
        let asked = self.clients.requests();
        if let Some(promised) = self.promised(id) {
            // One that is under way goes on: what it has told is not told again.
            promised.asked.get_or_insert(asked);
        }
        let flare = self.flare.clone();
        let begun = self.in_time(flare.resync(id, None)).await;
        self.note(format_args!("resync {id}: {begun:?}"));
        if let Some(promised) = self.promised(id) {
            promised.resync |= begun.is_ok();
        }
    }

    async fn cancel(&mut self, id: SubscriptionId) {
        let flare = self.flare.clone();
        let cancelled = self.in_time(flare.cancel_backfill(id)).await;
        self.note(format_args!("cancel backfill {id}: {cancelled:?}"));
        let cancelled = self.in_time(flare.cancel_resync(id)).await;
        self.note(format_args!("cancel resync {id}: {cancelled:?}"));
        if let Some(promised) = self.promised(id) {
            let asked = promised.asked.filter(|_| cancelled.is_err());
            *promised = Promised { backfill: false, resync: false, asked };
        }
    }

    async fn demand(&mut self, id: SubscriptionId) {
        // From the moment it is asked for it may happen.
        self.clients.demands(id);
        let flare = self.flare.clone();
        let demanded = self.in_time(flare.demand(id, 2)).await;
        self.note(format_args!("demand {id}: {demanded:?}"));
    }

    fn promised(&mut self, id: SubscriptionId) -> Option<&mut Promised> {
        self.wishes.as_mut().map(|wishes| wishes.backfilled.entry(id).or_default())
    }

    /// Whether a client was promised all that is there.
    pub(crate) fn is_backfilled(&self, id: SubscriptionId) -> bool {
        let promised = self.wishes.as_ref().and_then(|wishes| wishes.backfilled.get(&id));
        promised.is_some_and(|promised| promised.backfill || promised.resync)
    }

    /// After how many requests a client was promised to be told everything again.
    pub(crate) fn resynced_after(&self, id: SubscriptionId) -> Option<u64> {
        let promised = self.wishes.as_ref()?.backfilled.get(&id)?;
        promised.asked.filter(|_| promised.resync)
    }

    /// Whether what clients were promised is done, as far as it is a job.
    pub(crate) async fn has_backfilled(&self) -> bool {
        let Some(wishes) = &self.wishes else { return true };
        let store = self.memory.repository();
        for id in wishes.backfilled.keys() {
            for kind in [JobKind::Backfill, JobKind::Resync] {
                let job = store.job(kind, &id.to_string()).await.unwrap();
                let done = |cursor: String| cursor.contains("\"done\":true");
                if job.is_some_and(|job| !job.cursor.is_some_and(done)) {
                    return false;
                }
            }
        }
        true
    }

    /// Clients that have to ask for what waits do so.
    pub(crate) async fn pull_all(&mut self) {
        if self.wishes.is_none() {
            return;
        }
        // Those too whose creation failed, and that are there.
        let all: Vec<_> = self.memory.repository().scan_subscriptions(None).collect().await;
        for stored in all.into_iter().map(Result::unwrap) {
            let waits = stored.status == SubscriptionStatus::Active;
            if waits && stored.spec.mode() == Mode::Passive {
                self.pull_everything(stored.id).await;
            }
        }
    }
}
