//! Takes a coordination store and a plan; gives one that fails, is slow, ends leases early and
//! breaks watches off as the plan says. Never hands out a lie.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Clock, Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot,
    StoreRevision, Write, Written,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};

use crate::FaultPlan;
use crate::delay::Delay;

/// A coordination store as bad as they are in the worst of times.
#[derive(Debug)]
pub struct FaultyLease {
    inner: Arc<dyn Lease>,
    plan: FaultPlan,
    expire: f64,
    drop_watch: f64,
    delay: Option<Delay>,
}

impl FaultyLease {
    /// `inner`, with the plan's errors and no other faults yet.
    pub fn new(inner: Arc<dyn Lease>, plan: FaultPlan) -> Self {
        Self { inner, plan, expire: 0.0, drop_watch: 0.0, delay: None }
    }

    /// The same; a lease to be kept alive turns out to have ended with this probability.
    #[must_use]
    pub fn expiring(mut self, probability: f64) -> Self {
        self.expire = probability;
        self
    }

    /// The same; instead of its next event a watch ends, *unavailable*, with this probability.
    #[must_use]
    pub fn dropping_watches(mut self, probability: f64) -> Self {
        self.drop_watch = probability;
        self
    }

    /// The same; a call is late by up to `longest`, by this clock, with this probability.
    #[must_use]
    pub fn delaying(mut self, probability: f64, longest: Duration, clock: Arc<dyn Clock>) -> Self {
        self.delay = Some(Delay { clock, probability, longest });
        self
    }

    /// Ends a lease now, as if its time had passed.
    pub async fn expire(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    /// The plan, to heal it or to count what it did.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    async fn before(&self, operation: &'static str) -> Result<()> {
        if let Some(delay) = &self.delay {
            delay.strike(&self.plan).await;
        }
        self.plan.before(operation)
    }

    /// Makes the call with the plan's faults on either side of it.
    async fn call<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.before(operation).await?;
        let answer = call.await?;
        self.plan.after(operation).map(|()| answer)
    }
}

#[async_trait]
impl Lease for FaultyLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        self.call("grant", self.inner.grant(ttl)).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        if self.plan.roll(self.expire) {
            self.inner.revoke(lease).await?;
        }
        self.call("keep_alive", self.inner.keep_alive(lease)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.call("revoke", self.inner.revoke(lease)).await
    }

    async fn write(&self, write: Write) -> Result<Written> {
        self.call("write", self.inner.write(write)).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        self.call("delete", self.inner.delete(key, expect)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        self.call("get", self.inner.get(key)).await
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        self.call("list", self.inner.list(prefix)).await
    }

    fn abandon(&self, _: LeaseId) {
        // Like a store elsewhere, it cannot know.
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        let (plan, probability) = (self.plan.clone(), self.drop_watch);
        let events = Some(self.inner.watch(prefix, from));
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
