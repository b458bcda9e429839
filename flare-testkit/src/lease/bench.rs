//! Takes a coordination store under trial; gives what its clauses need again and again.

use std::time::Duration;

use flare_core::port::{
    Entry, Expect, KeyChange, KeyEvent, Lease, LeaseGrant, LeaseId, Scan, StoreRevision, Write,
    Written,
};
use futures::StreamExt;

use crate::Subject;

/// Ticks after which something that must come is given up.
pub(super) const PATIENCE: u32 = 10;

/// The time to live most clauses ask for, in ticks: they end long before it does.
pub(super) const LONG: u32 = 120;

impl Subject<dyn Lease> {
    /// A lease that outlives the clause.
    pub(super) async fn long_lease(&self) -> LeaseId {
        self.lease_of(LONG).await.id
    }

    /// A lease of about `ticks`; what was really granted may be longer.
    pub(super) async fn lease_of(&self, ticks: u32) -> LeaseGrant {
        let asked = self.ticks(ticks);
        let grant = self.grant(asked).await.expect("a lease can be granted");
        assert!(grant.ttl >= asked, "{:?} granted, {asked:?} asked for", grant.ttl);
        grant
    }

    /// Writes a key, whatever it is like.
    pub(super) async fn put(&self, key: &str, value: &str) -> StoreRevision {
        self.put_as(Write::new(key, value.to_owned())).await
    }

    pub(super) async fn bind(&self, key: &str, value: &str, lease: LeaseId) -> StoreRevision {
        self.put_as(Write::new(key, value.to_owned()).lease(lease)).await
    }

    pub(super) async fn put_as(&self, write: Write) -> StoreRevision {
        made(self.write(write).await.expect("a key can be written"))
    }

    /// Deletes a key, whatever it is like.
    pub(super) async fn remove(&self, key: &str) -> StoreRevision {
        made(self.delete(key, Expect::Anything).await.expect("a key can be deleted"))
    }

    pub(super) async fn read(&self, key: &str) -> Option<Entry> {
        self.get(key).await.expect("a key can be read")
    }

    /// Where history stands.
    pub(super) async fn revision(&self) -> StoreRevision {
        self.list("").await.expect("keys can be listed").revision
    }

    /// Ends a lease.
    pub(super) async fn end(&self, lease: LeaseId) {
        self.revoke(lease).await.expect("a lease can be revoked");
    }

    /// Waits for a key to go, for up to `time` and some patience.
    pub(super) async fn gone(&self, key: &str, time: Duration) {
        let tick = self.ticks(1);
        let mut waited = Duration::ZERO;
        while self.read(key).await.is_some() {
            assert!(waited < time + self.ticks(PATIENCE), "{key} is still there after {waited:?}");
            self.pass(tick).await;
            waited += tick;
        }
    }

    /// The next event of a watch, which must come within `ticks`.
    pub(super) async fn event(&self, watch: &mut Scan<'static, KeyEvent>, ticks: u32) -> KeyEvent {
        let event = self.within(ticks, watch.next()).await.expect("the watcher is told in time");
        event.expect("a watch goes on").expect("a watch that can go on does")
    }

    /// The next `count` events, in short.
    pub(super) async fn events(
        &self,
        watch: &mut Scan<'static, KeyEvent>,
        count: usize,
    ) -> Vec<String> {
        let mut events = Vec::with_capacity(count);
        for _ in 0..count {
            events.push(short(&self.event(watch, PATIENCE).await));
        }
        events
    }

    /// A watch must have nothing to say.
    pub(super) async fn quiet(&self, watch: &mut Scan<'static, KeyEvent>) {
        if let Some(event) = self.within(2, watch.next()).await {
            panic!("a watch that should be quiet gave {event:?}");
        }
    }
}

/// The revision of a write that must have taken place.
pub(super) fn made(written: Written) -> StoreRevision {
    match written {
        Written::At(revision) => revision,
        Written::Conflict(there) => panic!("the write met {there:?}"),
    }
}

/// What an event says, in a few letters: `key=value`, or `-key`.
pub(super) fn short(event: &KeyEvent) -> String {
    match &event.kind {
        KeyChange::Written(entry) => {
            assert_eq!(entry.key, event.key, "an event is about one key");
            assert_eq!(entry.revision, event.revision, "an event is one revision");
            format!("{}={}", event.key, String::from_utf8_lossy(&entry.value))
        }
        KeyChange::Deleted => format!("-{}", event.key),
    }
}
