//! Takes what was done; gives it to the store: in a loop of the runtime while one runs, else in a task that is begun
//! when something waits and ends when nothing does. Never fails or holds up what tells it: what finds no room, or cannot
//! be stored, is counted and logged.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tracing::{info, warn};

use super::refusals::Refusals;
use crate::error::Result;
use crate::model::{Actor, AuditAction, AuditEntry, AuditSubject, IdSource, Timestamp};
use crate::observe;
use crate::port::{Clock, Repository};
use crate::tools::{doubled, lock};

/// Entries that wait to be stored, at most.
const ROOM: usize = 1_000;
/// Entries that are stored, or removed, together.
const BATCH: usize = 100;
/// How often a batch is tried before it is given up.
const TRIES: u32 = 6;
/// The wait after a first failure.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How much of the log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AuditBounds {
    /// Entries; with none nothing is stored.
    pub(crate) entries: u64,
    /// How long.
    pub(crate) retention: Duration,
}

/// What was done by this process and waits to be stored. Clones are the same log.
#[derive(Clone)]
pub(crate) struct AuditLog {
    inner: Arc<AuditParts>,
}

struct AuditParts {
    repository: Arc<dyn Repository>,
    clock: Arc<dyn Clock>,
    /// The store's time, as far as it is known.
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    ids: IdSource,
    bounds: AuditBounds,
    waiting: Mutex<UnstoredAudit>,
    /// Held by the one that stores: entries are stored once each, in their order.
    storing: AsyncMutex<()>,
    /// Wakes the runtime's loop.
    told: Notify,
}

#[derive(Debug, Default)]
struct UnstoredAudit {
    entries: VecDeque<AuditEntry>,
    /// Whether a loop or a task will look for them.
    looked_after: LookedAfter,
    refusals: Refusals,
    /// How many were stored since older ones were last forgotten.
    untrimmed: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LookedAfter {
    /// The next entry begins a task.
    #[default]
    Not,
    ByTask,
    ByRuntime,
}

/// A loop or a task that looks after the entries, until it ends, however it does.
struct LooksAfter {
    log: AuditLog,
    how: LookedAfter,
}

impl Drop for LooksAfter {
    fn drop(&mut self) {
        let mut waiting = lock(&self.log.inner.waiting);
        if waiting.looked_after == self.how {
            waiting.looked_after = LookedAfter::Not;
        }
    }
}

impl AuditLog {
    pub(crate) fn new(
        repository: Arc<dyn Repository>,
        clock: Arc<dyn Clock>,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
        bounds: AuditBounds,
        seed: u64,
    ) -> Self {
        let (ids, now) = (IdSource::seeded(seed), Box::new(now));
        let (waiting, storing, told) = (Mutex::default(), AsyncMutex::new(()), Notify::new());
        let inner = AuditParts { repository, clock, now, ids, bounds, waiting, storing, told };
        Self { inner: Arc::new(inner) }
    }

    /// Tells what was done.
    pub(crate) fn record(
        &self,
        actor: &Actor,
        action: AuditAction,
        subject: AuditSubject,
        detail: impl Into<String>,
    ) {
        self.tell(actor, action, subject, &detail.into(), 1);
    }

    /// Tells that one more sign-in was refused; many of them together.
    pub(crate) fn refuse(&self, subject: AuditSubject) {
        let now = self.inner.clock.monotonic();
        let told = lock(&self.inner.waiting).refusals.one(&subject, now);
        if let Some(count) = told {
            self.tell(&Actor::Host, AuditAction::Refused, subject, "", count);
        }
    }

    fn tell(
        &self,
        actor: &Actor,
        action: AuditAction,
        subject: AuditSubject,
        detail: &str,
        count: u64,
    ) {
        info!(target: observe::AUDIT, by = %actor, %action, %subject, detail, count, "done");
        if self.inner.bounds.entries == 0 {
            return;
        }
        let at = (self.inner.now)();
        let id = self.inner.ids.next(at).into();
        let entry = AuditEntry::new(id, at, actor.clone(), action, subject);
        let entry = entry.with_detail(detail).with_count(count);
        if !self.keep(&entry) {
            lost(1);
            warn!(by = %entry.actor, action = %entry.action, subject = %entry.subject,
                "too much waits to be stored in the log of what was done: this is not");
        }
    }

    /// Keeps an entry until it is stored, if there is room, and sees to it that it will be.
    fn keep(&self, entry: &AuditEntry) -> bool {
        let mut waiting = lock(&self.inner.waiting);
        if waiting.entries.len() >= ROOM {
            return false;
        }
        waiting.entries.push_back(entry.clone());
        match waiting.looked_after {
            LookedAfter::ByRuntime => self.inner.told.notify_one(),
            LookedAfter::ByTask => {}
            // Outside of a runtime it waits for the next one.
            LookedAfter::Not => {
                if let Ok(runtime) = Handle::try_current() {
                    let how = LookedAfter::ByTask;
                    waiting.looked_after = how;
                    runtime.spawn(LooksAfter { log: self.clone(), how }.until_empty());
                }
            }
        }
        true
    }

    /// Stores whatever is told, until it is to end: what is told after that begins tasks again.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()>) {
        let how = LookedAfter::ByRuntime;
        lock(&self.inner.waiting).looked_after = how;
        let it = LooksAfter { log: self, how };
        let serve = async {
            loop {
                it.log.store().await;
                it.log.inner.told.notified().await;
            }
        };
        tokio::select! {
            biased;
            () = stop => {}
            () = serve => {}
        }
    }

    /// Waits until all that was told so far is stored or given up, but no longer than this.
    pub(crate) async fn flush(&self, limit: Duration) {
        let now = self.inner.clock.monotonic();
        let rest = lock(&self.inner.waiting).refusals.rest(now);
        for (subject, count) in rest {
            self.tell(&Actor::Host, AuditAction::Refused, subject, "", count);
        }
        tokio::select! {
            biased;
            () = self.store() => {}
            () = self.inner.clock.sleep(limit) => {}
        }
    }

    /// Forgets what is more, or older, than is kept; tells whether that is all.
    pub(crate) async fn trim(&self) -> Result<bool> {
        let AuditBounds { entries, retention } = self.inner.bounds;
        let before = (self.inner.now)() - retention;
        let removed = self.inner.repository.trim_audit(entries, before, BATCH).await?;
        Ok(removed < BATCH as u64)
    }
}

impl LooksAfter {
    /// Stores what waits, until nothing does.
    async fn until_empty(self) {
        loop {
            self.log.store().await;
            let mut waiting = lock(&self.log.inner.waiting);
            if waiting.entries.is_empty() {
                // With the look, so that an entry that comes now begins another task.
                if waiting.looked_after == self.how {
                    waiting.looked_after = LookedAfter::Not;
                }
                break;
            }
        }
    }
}

impl AuditLog {
    /// Stores what waits, until nothing does.
    async fn store(&self) {
        let _storing = self.inner.storing.lock().await;
        let mut failures = 0;
        loop {
            let batch: Vec<AuditEntry> =
                lock(&self.inner.waiting).entries.iter().take(BATCH).cloned().collect();
            let count = batch.len();
            if count == 0 {
                return;
            }
            match self.inner.repository.insert_audit(batch).await {
                Ok(()) => {
                    failures = 0;
                    self.stored(count).await;
                }
                Err(error) => {
                    failures += 1;
                    if error.is_temporary() && failures < TRIES {
                        let pause = doubled(PAUSE, failures, LONGEST_PAUSE);
                        self.inner.clock.sleep(pause).await;
                        continue;
                    }
                    failures = 0;
                    lost(count as u64);
                    warn!(?error, count, "could not store what was done: it is not in the log");
                    lock(&self.inner.waiting).entries.drain(..count);
                }
            }
        }
    }

    /// So many of those that waited are stored.
    async fn stored(&self, count: usize) {
        let trims = {
            let mut waiting = lock(&self.inner.waiting);
            waiting.entries.drain(..count);
            waiting.untrimmed += count;
            waiting.untrimmed >= BATCH
        };
        if trims {
            match self.trim().await {
                Ok(true) => lock(&self.inner.waiting).untrimmed = 0,
                // Some more with the next batch.
                Ok(false) => {}
                Err(error) => warn!(?error, "could not forget what was done long ago"),
            }
        }
    }
}

/// So many entries are in no log.
fn lost(count: u64) {
    #[cfg(feature = "metrics")]
    metrics::counter!(observe::AUDIT_LOST).increment(count);
    #[cfg(not(feature = "metrics"))]
    let _ = count;
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditLog").field("bounds", &self.inner.bounds).finish_non_exhaustive()
    }
}
