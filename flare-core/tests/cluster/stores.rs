//! One node's way to a coordination store, which can be cut, and which is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flare_core::Result;
use flare_core::port::{KeyEvent, Lease, Scan, StoreRevision};
use flare_testkit::intercept::{Call, Hooks, LeaseHooks};
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
    pub(crate) calls: Arc<Calls>,
    pub(crate) cut: Arc<AtomicBool>,
}

impl Line {
    async fn pass(&self) {
        if self.cut.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

impl Hooks for Line {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        self.pass().await;
        let count = match call.name {
            "get" | "list" => &self.calls.reads,
            "keep_alive" => &self.calls.keep_alives,
            _ => &self.calls.writes,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn after(&self, _: &Call<'_>) -> Result<()> {
        self.pass().await;
        Ok(())
    }
}

impl LeaseHooks for Line {
    const ELSEWHERE: bool = true;

    fn watch(
        &self,
        inner: &dyn Lease,
        prefix: &str,
        from: StoreRevision,
    ) -> Scan<'static, KeyEvent> {
        let cut = Arc::clone(&self.cut);
        let events = stream::unfold(inner.watch(prefix, from), move |mut events| {
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
