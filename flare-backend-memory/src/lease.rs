//! Takes keys bound to leases; gives agreement within the process. Leases end by the injected
//! clock's monotonic time, looked at on every call and by whoever watches: setting the wall clock ends none.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Entry, Expect, KeyChange, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot,
    StoreRevision, Write, Written,
};
use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;
use tokio::sync::Notify;

use crate::time::StoreTime;
use crate::{BACKEND, MemoryConfig, lock};

/// Leases and keys in memory.
#[derive(Debug, Clone)]
pub struct MemoryLease {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    time: StoreTime,
    history: usize,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    last_lease: i64,
    keys: BTreeMap<String, Entry>,
    leases: HashMap<LeaseId, Held>,
    /// What watches can resume over, oldest first.
    events: VecDeque<KeyEvent>,
    /// The newest revision whose events are forgotten.
    compacted: u64,
}

#[derive(Debug)]
struct Held {
    ttl: Duration,
    ends_at: Duration,
    keys: BTreeSet<String>,
}

impl MemoryLease {
    pub(crate) fn new(config: &MemoryConfig, time: StoreTime) -> Self {
        let shared = Shared {
            time,
            history: config.lease_history,
            state: Mutex::default(),
            changed: Notify::new(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Shared {
    /// Works on the state as it is now, lapsed leases ended, and tells those who watch.
    fn with<R>(&self, work: impl FnOnce(&mut State, Duration) -> R) -> R {
        let now = self.time.monotonic();
        let mut state = lock(&self.state);
        let before = state.revision;
        state.end_lapsed(now);
        let answer = work(&mut state, now);
        while state.events.len() > self.history {
            state.compacted = state.events.pop_front().map_or(0, |event| event.revision.get());
        }
        let changed = state.revision != before;
        drop(state);
        if changed {
            self.changed.notify_waiters();
        }
        answer
    }

    /// The events under a prefix after a revision; waits until there are some.
    async fn next_events(&self, prefix: &str, mut from: u64) -> Result<(Vec<KeyEvent>, u64)> {
        loop {
            // Listening starts before looking: what happens in between is not missed.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (found, next_end) = self.with(|state, _| {
                let found = state.events_after(prefix, from);
                (found, state.leases.values().map(|held| held.ends_at).min())
            });
            let (events, seen) = found?;
            if !events.is_empty() {
                return Ok((events, seen));
            }
            // What happened elsewhere is seen too: forgetting it leaves no gap here.
            from = seen;
            match next_end {
                None => changed.await,
                Some(at) => tokio::select! {
                    biased;
                    () = &mut changed => {}
                    () = self.time.sleep_to(at) => {}
                },
            }
        }
    }
}

#[async_trait]
impl Lease for MemoryLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        Ok(self.shared.with(|state, now| {
            state.last_lease += 1;
            let id = LeaseId::new(state.last_lease);
            let ends_at = now.saturating_add(ttl);
            state.leases.insert(id, Held { ttl, ends_at, keys: BTreeSet::new() });
            LeaseGrant::new(id, ttl)
        }))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        self.shared.with(|state, now| {
            let held = state.leases.get_mut(&lease).ok_or_else(|| ended("keep_alive", lease))?;
            held.ends_at = now.saturating_add(held.ttl);
            Ok(LeaseGrant::new(lease, held.ttl))
        })
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        self.shared.with(|state, _| state.end(lease));
        Ok(())
    }

    async fn write(&self, write: Write) -> Result<Written> {
        self.shared.with(|state, _| {
            if let Some(lease) = write.lease.filter(|lease| !state.leases.contains_key(lease)) {
                return Err(ended("write", lease));
            }
            if !state.is_as(&write.key, write.expect) {
                return Ok(Written::Conflict(state.keys.get(&write.key).cloned()));
            }
            let revision = state.next_revision();
            let created = state.keys.get(&write.key).map_or(revision, |entry| entry.created);
            state.unbind(&write.key);
            if let Some(held) = write.lease.and_then(|lease| state.leases.get_mut(&lease)) {
                held.keys.insert(write.key.clone());
            }
            let entry = Entry::new(write.key.clone(), write.value, created, revision, write.lease);
            state.keys.insert(write.key.clone(), entry.clone());
            state.events.push_back(KeyEvent::new(revision, write.key, KeyChange::Written(entry)));
            Ok(Written::At(revision))
        })
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        Ok(self.shared.with(|state, _| {
            if !state.is_as(key, expect) {
                return Written::Conflict(state.keys.get(key).cloned());
            }
            if state.keys.contains_key(key) {
                let revision = state.next_revision();
                state.remove(key, revision);
            }
            Written::At(StoreRevision::new(state.revision))
        }))
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        Ok(self.shared.with(|state, _| state.keys.get(key).cloned()))
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        Ok(self.shared.with(|state, _| {
            let from = state.keys.range(prefix.to_owned()..);
            let under = from.take_while(|(key, _)| key.starts_with(prefix));
            let entries = under.map(|(_, entry)| entry.clone()).collect();
            Snapshot::new(entries, StoreRevision::new(state.revision))
        }))
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.to_owned());
        let batches = stream::unfold(Some(from.get()), move |from| {
            let (shared, prefix) = (Arc::clone(&shared), prefix.clone());
            async move {
                match shared.next_events(&prefix, from?).await {
                    Ok((events, seen)) => {
                        Some((events.into_iter().map(Ok).collect::<Vec<_>>(), Some(seen)))
                    }
                    Err(error) => Some((vec![Err(error)], None)),
                }
            }
        });
        batches.flat_map(stream::iter).boxed()
    }

    fn abandon(&self, lease: LeaseId) {
        self.shared.with(|state, _| state.end(lease));
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::in_process()
    }
}

fn ended(operation: &'static str, lease: LeaseId) -> Error {
    let detail = format!("lease {} has ended", lease.get());
    Error::new(ErrorKind::Lost, operation).with_backend(BACKEND).with_detail(detail)
}

impl State {
    fn next_revision(&mut self) -> StoreRevision {
        self.revision += 1;
        StoreRevision::new(self.revision)
    }

    fn is_as(&self, key: &str, expect: Expect) -> bool {
        match expect {
            Expect::Anything => true,
            Expect::Absent => !self.keys.contains_key(key),
            Expect::At(revision) => {
                self.keys.get(key).is_some_and(|entry| entry.revision == revision)
            }
        }
    }

    fn unbind(&mut self, key: &str) {
        let lease = self.keys.get(key).and_then(|entry| entry.lease);
        if let Some(held) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            held.keys.remove(key);
        }
    }

    fn remove(&mut self, key: &str, revision: StoreRevision) {
        self.unbind(key);
        self.keys.remove(key);
        self.events.push_back(KeyEvent::new(revision, key, KeyChange::Deleted));
    }

    fn end(&mut self, lease: LeaseId) {
        if let Some(held) = self.leases.remove(&lease) {
            for key in held.keys {
                let revision = self.next_revision();
                self.remove(&key, revision);
            }
        }
    }

    fn end_lapsed(&mut self, now: Duration) {
        let lapsed = self.leases.iter().filter(|(_, held)| held.ends_at <= now);
        let mut lapsed: Vec<_> = lapsed.map(|(id, held)| (held.ends_at, *id)).collect();
        // In the order in which they ended, so that runs can be replayed.
        lapsed.sort_unstable();
        for (_, lease) in lapsed {
            self.end(lease);
        }
    }

    fn events_after(&self, prefix: &str, from: u64) -> Result<(Vec<KeyEvent>, u64)> {
        if from < self.compacted {
            let detail =
                format!("revision {from} is forgotten, history begins at {}", self.compacted);
            return Err(Error::new(ErrorKind::Compacted, "watch")
                .with_backend(BACKEND)
                .with_detail(detail));
        }
        let start = self.events.partition_point(|event| event.revision.get() <= from);
        let later = self.events.range(start..);
        let under = later.filter(|event| event.key.starts_with(prefix));
        Ok((under.cloned().collect(), self.revision))
    }
}
