//! Takes a repository and a fault plan; gives one whose calls fail before or after their effect,
//! as the plan has it. Never changes an answer it lets through.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Spread;
use flare_core::port::{Clock, Repository, Scan};
use flare_core::{Error, Result};
use futures::{StreamExt, stream};

use crate::FaultPlan;
use crate::delay::Delay;
use crate::intercept::{self, Call, Hooks, Intercepted, RepositoryHooks};

/// The most items a scan gives before it breaks.
const BREAKS_WITHIN: u64 = 8;

/// A repository that fails as its [`FaultPlan`] says.
///
/// - Before its effect a call fails with [`Unavailable`](flare_core::ErrorKind::Unavailable), after
///   it with [`Timeout`](flare_core::ErrorKind::Timeout).
/// - A batch fails as a whole, or item by item; the other items take effect in their order.
/// - A spread that times out has reached some of its rows.
/// - A scan breaks somewhere along its way.
pub type FaultyRepository = Intercepted<dyn Repository, RepositoryFaults>;

impl FaultyRepository {
    /// A repository that fails as `plan` says, in front of `inner`.
    pub fn new(inner: Arc<dyn Repository>, plan: FaultPlan) -> Self {
        intercept::repository(inner, RepositoryFaults { plan, delay: None })
    }

    /// The same; a call is late by up to `longest`, by this clock, with this probability: before
    /// its effect, and again before its answer.
    #[must_use]
    pub fn delaying(self, probability: f64, longest: Duration, clock: Arc<dyn Clock>) -> Self {
        self.changed(|faults| faults.delay = Some(Delay { clock, probability, longest }))
    }
}

/// The faults of a [`FaultyRepository`].
#[derive(Debug, Clone)]
pub struct RepositoryFaults {
    plan: FaultPlan,
    delay: Option<Delay>,
}

impl RepositoryFaults {
    async fn late(&self) {
        if let Some(delay) = &self.delay {
            delay.strike(&self.plan).await;
        }
    }
}

impl Hooks for RepositoryFaults {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.late().await;
        self.plan.before(call.name)
    }

    async fn after(&self, call: &Call<'_>) -> Result<()> {
        self.late().await;
        self.plan.after(call.name)
    }

    async fn batch<T: Send, R: Send, F>(
        &self,
        call: Call<'_>,
        items: Vec<T>,
        run: impl FnOnce(Vec<T>) -> F + Send,
    ) -> Vec<Result<R>>
    where
        F: Future<Output = Vec<Result<R>>> + Send,
    {
        let all = |error: Error| (0..call.items).map(|_| Err(error.clone())).collect();
        if let Err(error) = self.before(&call).await {
            return all(error);
        }
        let failed: Vec<Result<()>> = items.iter().map(|_| self.plan.before(call.name)).collect();
        let spared = items.into_iter().zip(&failed).filter(|(_, failed)| failed.is_ok());
        let mut answers = run(spared.map(|(item, _)| item).collect()).await.into_iter();
        if let Err(error) = self.after(&call).await {
            return all(error);
        }
        let answer = |failed: Result<()>| {
            failed?;
            let answer = answers.next();
            self.plan.after(call.name)?;
            answer.unwrap_or_else(|| panic!("{} left an item without an answer", call.name))
        };
        failed.into_iter().map(answer).collect()
    }

    fn scan<'a, T: Send + 'a>(&'a self, call: Call<'a>, scan: Scan<'a, T>) -> Scan<'a, T> {
        let Err(error) = self.plan.before(call.name) else { return scan };
        let items = self.plan.below(BREAKS_WITHIN) as usize;
        scan.take(items).chain(stream::once(async move { Err(error) })).boxed()
    }
}

#[async_trait]
impl RepositoryHooks for RepositoryFaults {
    async fn spread_rows(&self, inner: &dyn Repository, mut spreads: Vec<Spread>) -> Result<()> {
        let late = self.plan.after("spread_rows");
        if late.is_err() {
            // Only some of the rows were reached in time.
            spreads.truncate(self.plan.below(spreads.len() as u64 + 1) as usize);
        }
        inner.spread_rows(spreads).await.and(late)
    }
}
