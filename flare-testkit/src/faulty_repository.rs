//! Takes a repository and a fault plan; gives one whose calls fail before or after their effect,
//! as the plan has it. Never changes an answer it lets through.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use flare_core::Result;
use flare_core::port::{Clock, Repository, RepositoryFacts, Scan};
use futures::{StreamExt, stream};

use crate::FaultPlan;
use crate::delay::Delay;
use crate::delegate::delegate_stores;

/// The most items a scan gives before it breaks.
const BREAKS_WITHIN: u64 = 8;

/// A repository that fails as its [`FaultPlan`] says.
///
/// - Before its effect a call fails with [`Unavailable`](flare_core::ErrorKind::Unavailable), after
///   it with [`Timeout`](flare_core::ErrorKind::Timeout).
/// - A batch fails as a whole, or item by item; the other items take effect in their order.
/// - A spread that times out has reached some of its rows.
/// - A scan breaks somewhere along its way.
#[derive(Clone)]
pub struct FaultyRepository {
    inner: Arc<dyn Repository>,
    plan: FaultPlan,
    delay: Option<Delay>,
}

impl FaultyRepository {
    /// A repository that fails as `plan` says, in front of `inner`.
    pub fn new(inner: Arc<dyn Repository>, plan: FaultPlan) -> Self {
        Self { inner, plan, delay: None }
    }

    /// The same; a call is late by up to `longest`, by this clock, with this probability: before
    /// its effect, and again before its answer.
    #[must_use]
    pub fn delaying(mut self, probability: f64, longest: Duration, clock: Arc<dyn Clock>) -> Self {
        self.delay = Some(Delay { clock, probability, longest });
        self
    }

    async fn late(&self) {
        if let Some(delay) = &self.delay {
            delay.strike(&self.plan).await;
        }
    }

    async fn one<R>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<R>>,
    ) -> Result<R> {
        self.late().await;
        self.plan.before(operation)?;
        let answer = call.await;
        self.late().await;
        self.plan.after(operation)?;
        answer
    }

    async fn many<T, R, F>(
        &self,
        operation: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> Result<R>
    where
        F: Future<Output = Result<R>>,
    {
        self.one(operation, call(items)).await
    }

    async fn batch<T, R, F>(
        &self,
        operation: &'static str,
        items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> Vec<Result<R>>
    where
        F: Future<Output = Vec<Result<R>>>,
    {
        let count = items.len();
        self.late().await;
        if let Err(error) = self.plan.before(operation) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let failed: Vec<Result<()>> = items.iter().map(|_| self.plan.before(operation)).collect();
        let spared = items.into_iter().zip(&failed).filter(|(_, failed)| failed.is_ok());
        let mut answers = call(spared.map(|(item, _)| item).collect()).await.into_iter();
        self.late().await;
        if let Err(error) = self.plan.after(operation) {
            return (0..count).map(|_| Err(error.clone())).collect();
        }
        let answer = |failed: Result<()>| {
            failed?;
            let answer = answers.next();
            self.plan.after(operation)?;
            answer.unwrap_or_else(|| panic!("{operation} left an item without an answer"))
        };
        failed.into_iter().map(answer).collect()
    }

    async fn spread<T, F>(
        &self,
        operation: &'static str,
        mut items: Vec<T>,
        call: impl FnOnce(Vec<T>) -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        self.plan.before(operation)?;
        let late = self.plan.after(operation);
        if late.is_err() {
            // Only some of the rows were reached in time.
            items.truncate(self.plan.below(items.len() as u64 + 1) as usize);
        }
        call(items).await.and(late)
    }

    fn scan<'a, T: Send + 'a>(&self, operation: &'static str, scan: Scan<'a, T>) -> Scan<'a, T> {
        let Err(error) = self.plan.before(operation) else { return scan };
        let items = self.plan.below(BREAKS_WITHIN) as usize;
        scan.take(items).chain(stream::once(async move { Err(error) })).boxed()
    }
}

impl fmt::Debug for FaultyRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyRepository").field("plan", &self.plan).finish_non_exhaustive()
    }
}

delegate_stores!(FaultyRepository);

impl Repository for FaultyRepository {
    fn facts(&self) -> RepositoryFacts {
        self.inner.facts()
    }
}
