//! Takes a coordination store; gives one node's way to it, which can be cut, and which is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot, StoreRevision,
    Write, Written,
};
use futures::{StreamExt, stream};

/// What all nodes asked of the store together.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    pub(crate) writes: AtomicU64,
    pub(crate) keep_alives: AtomicU64,
    pub(crate) reads: AtomicU64,
}

/// While it is cut nothing is answered, neither what is asked nor what was asked before; watches
/// fall silent for good, as they do behind a router that forgot the connection.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) inner: Arc<dyn Lease>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) cut: Arc<AtomicBool>,
}

impl Line {
    async fn call<T>(&self, count: &AtomicU64, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.pass().await;
        count.fetch_add(1, Ordering::Relaxed);
        let answer = call.await;
        self.pass().await;
        answer
    }

    async fn pass(&self) {
        if self.cut.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

#[async_trait]
impl Lease for Line {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        self.call(&self.calls.writes, self.inner.grant(ttl)).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        self.call(&self.calls.keep_alives, self.inner.keep_alive(lease)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.call(&self.calls.writes, self.inner.revoke(lease)).await
    }

    async fn write(&self, write: Write) -> Result<Written> {
        self.call(&self.calls.writes, self.inner.write(write)).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        self.call(&self.calls.writes, self.inner.delete(key, expect)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        self.call(&self.calls.reads, self.inner.get(key)).await
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        self.call(&self.calls.reads, self.inner.list(prefix)).await
    }

    fn abandon(&self, _: LeaseId) {
        // Like a store elsewhere, it cannot know.
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::default()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        let cut = Arc::clone(&self.cut);
        let events = stream::unfold(self.inner.watch(prefix, from), move |mut events| {
            let cut = Arc::clone(&cut);
            async move {
                let event = events.next().await?;
                if cut.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                Some((event, events))
            }
        });
        events.boxed()
    }
}
