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
    /// How often clients want to hear of a document, by their numbers.
    intervals: BTreeMap<u32, Option<Duration>>,
    /// Who was promised everything that is there.
    backfilled: BTreeMap<SubscriptionId, Promised>,
    /// What pullers have, and may settle some time.
    pub(crate) in_hand: Vec<InHand>,
}

/// How a client wishes to be told. Each wish is drawn by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    /// It asks for what waits.
    pub(crate) passive: bool,
    /// Which documents it wants.
    pub(crate) wanted: Wanted,
    /// It wants to hear of a document no oftener.
    pub(crate) interval: Option<Duration>,
    /// It takes many in one request.
    many: Option<BatchOptions>,
    /// It wants what is there, to begin with.
    backfill: bool,
}

impl Wish {
    const PLAIN: Self =
        Self { passive: false, wanted: Wanted::All, interval: None, many: None, backfill: false };

    /// A subscription as this wish has it.
    fn of(self, spec: SubscriptionBuilder, all_at: String) -> SubscriptionBuilder {
        let mut spec = spec.backfill(self.backfill);
        if self.passive {
            spec = spec.mode(Mode::Passive);
        }
        if let Some(filter) = self.wanted.filter() {
            spec = spec.filter(filter);
        }
        if let Some(interval) = self.interval {
            spec = spec.min_interval(interval);
        }
        match self.many {
            Some(batch) => spec.batch(batch).url(all_at),
            None => spec,
        }
    }
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
    /// Those of a history.
    pub(crate) fn of(seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed ^ 5);
        let (intervals, backfilled) = (BTreeMap::new(), BTreeMap::new());
        Self { random, intervals, backfilled, in_hand: Vec::new() }
    }

    /// What client `number` wishes, the `replacement`th time.
    fn draw(&mut self, number: u32, replacement: u32) -> Wish {
        let random = &mut self.random;
        let wanted = match random.u8(..12) {
            0..=2 => Wanted::Even,
            3..=5 => Wanted::Odd,
            6 => Wanted::None,
            _ => Wanted::All,
        };
        let many = (random.u8(..3) == 0).then(|| {
            let batch = BatchOptions::of(random.u32(2..5));
            match random.bool() {
                true => batch.wait(Duration::from_millis(random.u64(1..5_000))),
                false => batch,
            }
        });
        // Most stay with theirs: how short it may have been is certain then.
        if replacement == 0 || random.u8(..4) == 0 {
            let interval = (random.u8(..3) == 0).then(|| Duration::from_secs(random.u64(1..20)));
            self.intervals.insert(number, interval);
        }
        let interval = self.intervals.get(&number).copied().flatten();
        let passive = random.u8(..3) == 0;
        let backfill = replacement == 0 && random.u8(..4) == 0;
        Wish { passive, wanted, interval, many, backfill }
    }
}

impl History {
    /// A subscription as its client wishes it, and what it wishes.
    pub(crate) fn wished(
        &mut self,
        spec: SubscriptionBuilder,
        number: u32,
        replacement: u32,
    ) -> (SubscriptionBuilder, Wish) {
        let Some(wishes) = &mut self.wishes else { return (spec, Wish::PLAIN) };
        let wish = wishes.draw(number, replacement);
        (wish.of(spec, all_at(number, replacement)), wish)
    }

    /// A subscription is there as its client wished it: what was asked for with it has begun.
    pub(crate) fn is_created(&mut self, id: SubscriptionId, wish: &Wish) {
        if let Some(promised) = self.promised(id).filter(|_| wish.backfill) {
            promised.backfill = true;
        }
    }

    /// A client asks for something.
    pub(crate) async fn wish(&mut self) {
        let ids: Vec<SubscriptionId> = self.subscriptions.keys().copied().collect();
        let Some(wishes) = &mut self.wishes else { return };
        let Some(id) = wishes.random.choice(ids) else { return };
        match wishes.random.u8(..16) {
            0 | 1 => self.backfill(id).await,
            2 => self.resync(id).await,
            12 => self.resync_some(id).await,
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

    /// A client lost some of its data: what it is told again is not looked for, what it holds in the end is.
    async fn resync_some(&mut self, id: SubscriptionId) {
        self.clients.may_be_retold(id);
        // So that it is waited for.
        self.promised(id);
        let documents = self.plan.documents;
        let Some(wishes) = &mut self.wishes else { return };
        let prefix = format!("http://api.example/docs/{}", wishes.random.u32(..documents));
        let flare = self.flare.clone();
        let begun = self.in_time(flare.resync(id, Some(&prefix))).await;
        self.note(format_args!("resync some of {id}: {begun:?}"));
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
