//! Takes a repository; gives the same one with its calls counted and, if wanted, each of them
//! slow, as over a network. Never changes an answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::Timestamp;
use flare_core::port::{Clock, Repository, RepositoryFacts, Scan, SpreadAnswer, SpreadDocuments};
use futures::{StreamExt, TryStreamExt, stream};

use crate::intercept::{self, Call, Hooks, Intercepted, RepositoryHooks};

/// A repository that counts its calls. Clones share the count.
///
/// Each call counts once, whatever number of items it is about, a scan included: what a network
/// round trip is to most stores.
pub type CountingRepository = Intercepted<dyn Repository, CountedCalls>;

impl CountingRepository {
    /// Counts the calls of `inner`.
    pub fn new(inner: Arc<dyn Repository>) -> Self {
        let still_until = Arc::new(Mutex::new(Timestamp::EPOCH));
        let (tally, slow, max_batch) = (Arc::default(), None, usize::MAX);
        intercept::repository(inner, CountedCalls { tally, slow, still_until, max_batch })
    }

    /// The same; every call takes this much longer, by this clock.
    #[must_use]
    pub fn slowed(self, time: Duration, clock: Arc<dyn Clock>) -> Self {
        self.changed(|counted| counted.slow = Some((time, clock)))
    }

    /// The same; it asks for batches of no more than this. Larger ones it counts like others.
    #[must_use]
    pub fn taking(self, max_batch: usize) -> Self {
        self.changed(|counted| counted.max_batch = max_batch)
    }

    /// Answers no call before `time`, by the clock it is slowed by.
    pub fn stand_still(&self, time: Timestamp) {
        *self.hooks.still_until.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// What was counted since the last time this was asked.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.hooks.lock())
    }

    /// What was counted, without forgetting it.
    pub fn tally(&self) -> Tally {
        self.hooks.lock().clone()
    }
}

/// Counts the calls of a [`CountingRepository`].
#[derive(Debug, Clone)]
pub struct CountedCalls {
    tally: Arc<Mutex<Tally>>,
    slow: Option<(Duration, Arc<dyn Clock>)>,
    /// Calls are answered from then on.
    still_until: Arc<Mutex<Timestamp>>,
    max_batch: usize,
}

impl CountedCalls {
    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hooks for CountedCalls {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.lock().add(call.name, call.items);
        if let Some((time, clock)) = &self.slow {
            let still = *self.still_until.lock().unwrap_or_else(PoisonError::into_inner);
            clock.sleep_until((clock.now() + *time).max(still)).await;
        }
        Ok(())
    }

    fn scan<'a, T: Send + 'a>(&'a self, call: Call<'a>, scan: Scan<'a, T>) -> Scan<'a, T> {
        let mut items = 0;
        let counted = scan.inspect(move |_| {
            items += 1;
            self.lock().add_item(call.name, items);
        });
        stream::once(async move { self.before(&call).await.map(|()| counted) })
            .try_flatten()
            .boxed()
    }
}

#[async_trait]
impl RepositoryHooks for CountedCalls {
    async fn spread_documents(
        &self,
        inner: &dyn Repository,
        request: SpreadDocuments,
    ) -> Result<SpreadAnswer> {
        let answer = inner.spread_documents(request).await?;
        let rows = match &answer {
            SpreadAnswer::Done(done) => done.members.len() * done.spread.len(),
            SpreadAnswer::Apart => 0,
        };
        self.lock().wrote("spread_documents", rows);
        Ok(answer)
    }

    fn facts(&self, inner: &dyn Repository) -> RepositoryFacts {
        let mut facts = inner.facts();
        facts.max_batch = facts.max_batch.min(self.max_batch);
        facts
    }
}

/// Which calls were made, and how often. Shown as a table, most frequent first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, Calls>);

/// How often one call was made, and about how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calls {
    /// How often.
    pub calls: u64,
    /// Items of all those calls: what a batch was about, what a scan gave, the rows a spread wrote.
    pub items: u64,
    /// The most items of any of them.
    pub most: usize,
}

impl Tally {
    /// All calls.
    pub fn total(&self) -> u64 {
        self.0.values().map(|calls| calls.calls).sum()
    }

    /// The calls of one name.
    pub fn of(&self, name: &str) -> Calls {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Every name that was called.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Calls)> {
        self.0.iter().map(|(name, calls)| (*name, *calls))
    }

    fn add(&mut self, name: &'static str, items: usize) {
        let calls = self.0.entry(name).or_default();
        calls.calls += 1;
        calls.items += items as u64;
        calls.most = calls.most.max(items);
    }

    /// The last call, which counts as one item, wrote so many.
    fn wrote(&mut self, name: &'static str, items: usize) {
        let calls = self.0.entry(name).or_default();
        calls.items = calls.items.saturating_sub(1) + items as u64;
        calls.most = calls.most.max(items);
    }

    /// One more item of a scan, which makes it `so_far`.
    fn add_item(&mut self, name: &'static str, so_far: usize) {
        let calls = self.0.entry(name).or_default();
        calls.items += 1;
        calls.most = calls.most.max(so_far);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<_> = self.iter().collect();
        rows.sort_by_key(|(_, calls)| std::cmp::Reverse(calls.calls));
        writeln!(f, "{:<20} {:>8} {:>8} {:>8}", "call", "calls", "items", "most")?;
        for (name, Calls { calls, items, most }) in rows {
            writeln!(f, "{name:<20} {calls:>8} {items:>8} {most:>8}")?;
        }
        write!(f, "{:<20} {:>8}", "all", self.total())
    }
}
