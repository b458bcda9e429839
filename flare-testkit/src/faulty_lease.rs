//! Takes a coordination store and a plan; gives one that fails, is slow, ends leases early and
//! breaks watches off as the plan says. Never hands out a lie.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{Clock, KeyEvent, Lease, LeaseGrant, LeaseId, Scan, StoreRevision};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};

use crate::FaultPlan;
use crate::delay::Delay;
use crate::intercept::{self, Call, Hooks, Intercepted, LeaseHooks};

/// A coordination store as bad as they are in the worst of times.
pub type FaultyLease = Intercepted<dyn Lease, LeaseFaults>;

impl FaultyLease {
    /// `inner`, with the plan's errors and no other faults yet.
    pub fn new(inner: Arc<dyn Lease>, plan: FaultPlan) -> Self {
        let faults = LeaseFaults { plan, expire: 0.0, drop_watch: 0.0, delay: None };
        intercept::lease(inner, faults)
    }

    /// The same; a lease to be kept alive turns out to have ended with this probability.
    #[must_use]
    pub fn expiring(self, probability: f64) -> Self {
        self.changed(|faults| faults.expire = probability)
    }

    /// The same; instead of its next event a watch ends, *unavailable*, with this probability.
    #[must_use]
    pub fn dropping_watches(self, probability: f64) -> Self {
        self.changed(|faults| faults.drop_watch = probability)
    }

    /// The same; a call is late by up to `longest`, by this clock, with this probability.
    #[must_use]
    pub fn delaying(self, probability: f64, longest: Duration, clock: Arc<dyn Clock>) -> Self {
        self.changed(|faults| faults.delay = Some(Delay { clock, probability, longest }))
    }

    /// Ends a lease now, as if its time had passed.
    pub async fn expire(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    /// The plan, to heal it or to count what it did.
    pub fn plan(&self) -> &FaultPlan {
        &self.hooks.plan
    }
}

/// The faults of a [`FaultyLease`].
#[derive(Debug, Clone)]
pub struct LeaseFaults {
    plan: FaultPlan,
    expire: f64,
    drop_watch: f64,
    delay: Option<Delay>,
}

impl Hooks for LeaseFaults {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        if let Some(delay) = &self.delay {
            delay.strike(&self.plan).await;
        }
        self.plan.before(call.name)
    }

    async fn after(&self, call: &Call<'_>) -> Result<()> {
        self.plan.after(call.name)
    }
}

#[async_trait]
impl LeaseHooks for LeaseFaults {
    const ELSEWHERE: bool = true;

    async fn keep_alive(&self, inner: &dyn Lease, lease: LeaseId) -> Result<LeaseGrant> {
        if self.plan.roll(self.expire) {
            inner.revoke(lease).await?;
        }
        inner.keep_alive(lease).await
    }

    fn watch(
        &self,
        inner: &dyn Lease,
        prefix: &str,
        from: StoreRevision,
    ) -> Scan<'static, KeyEvent> {
        let (plan, probability) = (self.plan.clone(), self.drop_watch);
        let events = Some(inner.watch(prefix, from));
        let events = stream::unfold(events, move |events| {
            let plan = plan.clone();
            async move {
                let mut events = events?;
                let event = events.next().await?;
                if plan.roll(probability) {
                    let error = Error::new(ErrorKind::Unavailable, "watch").with_backend("faulty");
                    let error = error.with_detail("the watch was broken off by the fault plan");
                    return Some((Err(error), None));
                }
                Some((event, Some(events)))
            }
        });
        events.boxed()
    }
}
