//! Takes a lease's store; gives one that answers reads late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{
    Clock, Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot,
    StoreRevision, Write, Written,
};
use flare_testkit::ManualClock;

/// Answers reads late, by what was true when they were asked: a busy store, whose watches are faster.
#[derive(Debug)]
pub(crate) struct LateReads {
    pub(crate) inner: Arc<dyn Lease>,
    pub(crate) clock: ManualClock,
    pub(crate) by: Duration,
}

#[async_trait]
impl Lease for LateReads {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        self.inner.grant(ttl).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        self.inner.keep_alive(lease).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.inner.revoke(lease).await
    }

    async fn write(&self, write: Write) -> Result<Written> {
        self.inner.write(write).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        self.inner.delete(key, expect).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        let answer = self.inner.get(key).await;
        self.clock.sleep_until(self.clock.now() + self.by).await;
        answer
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        self.inner.list(prefix).await
    }

    fn abandon(&self, _: LeaseId) {
        // Like a store elsewhere, it cannot know.
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        self.inner.watch(prefix, from)
    }
}
