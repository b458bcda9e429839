//! Takes keys bound to leases; gives agreement among the processes of this machine. Leases end by the
//! machine's own clock, or at once when the system says that their holder is dead.

mod table;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Entry, Expect, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot, StoreRevision,
    Write, Written,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};

use crate::engine::{Effort, Engine, Reader, Tx};
use crate::error;
use crate::fault::Worked;
use crate::time::nanos;
pub(crate) use table::{end_all, end_holder, revision};

/// Leases and keys in a file.
#[derive(Debug, Clone)]
pub struct SqliteLease {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: Arc<Engine>,
    /// Leases whose holders in this process are gone without a word, until they are ended.
    abandoned: Mutex<HashSet<LeaseId>>,
}

impl SqliteLease {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { shared: Arc::new(Shared { engine, abandoned: Mutex::default() }) }
    }
}

/// What a look at the keys found.
enum Seen<T> {
    Found(T),
    /// A lease has lapsed that nobody has ended yet.
    ToEnd,
}

/// The events that a watch has not given yet.
struct NewEvents {
    events: Vec<KeyEvent>,
    /// How far history was seen.
    seen: i64,
    /// How long until the next lease lapses, if there is any.
    next_end: Option<Duration>,
}

impl Shared {
    /// Works on the keys as they are now, with all leases ended that have lapsed.
    async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        effort: Effort,
        mut work: impl FnMut(&mut Tx<'_>) -> Worked<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(self);
        let done = move |tx: &mut Tx<'_>| {
            shared.end_lapsed(tx)?;
            let before = table::revision(tx.connection)?;
            let done = work(tx)?;
            tx.after.keys |= table::revision(tx.connection)? != before;
            Ok(done)
        };
        self.engine.write(effort.urgent(), done).await
    }

    fn end_lapsed(&self, tx: &mut Tx<'_>) -> rusqlite::Result<()> {
        let abandoned: Vec<LeaseId> = self.lock().iter().copied().collect();
        for lease in &abandoned {
            tx.after.keys |= table::end(tx.connection, lease.get())?;
        }
        tx.after.keys |= table::end_lapsed(tx.connection, nanos(tx.uptime))?;
        Ok(())
    }

    /// Reads the keys as they are now. Ends what has lapsed first, if anything has.
    async fn look<T: Send + 'static>(
        self: &Arc<Self>,
        operation: &'static str,
        read: impl Fn(&Reader<'_>) -> Worked<T> + Clone + Send + 'static,
    ) -> Result<T> {
        loop {
            let (shared, read) = (Arc::clone(self), read.clone());
            let look = move |reader: &Reader<'_>| {
                if shared.is_to_end(reader)? {
                    return Ok(Seen::ToEnd);
                }
                read(reader).map(Seen::Found)
            };
            match self.engine.read(operation, look).await? {
                Seen::Found(found) => return Ok(found),
                Seen::ToEnd => {
                    let before = self.lock().clone();
                    self.work(Effort::durable(operation), |_| Ok(())).await?;
                    // They stay ended, so nobody has to remember them.
                    self.lock().retain(|lease| !before.contains(lease));
                }
            }
        }
    }

    fn is_to_end(&self, reader: &Reader<'_>) -> rusqlite::Result<bool> {
        if !self.lock().is_empty() {
            return Ok(true);
        }
        let next = table::next_end(reader.connection)?;
        Ok(next.is_some_and(|next| next <= nanos(self.engine.machine().uptime())))
    }

    /// The events under a prefix after a revision; waits until there are some.
    async fn next_events(
        self: &Arc<Self>,
        prefix: &str,
        mut from: i64,
    ) -> Result<(Vec<KeyEvent>, i64)> {
        loop {
            // Listening starts before looking: what happens in between is not missed.
            let changed = self.engine.signals().keys.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let NewEvents { events, seen, next_end } = self.news(prefix, from).await?;
            if !events.is_empty() {
                return Ok((events, seen));
            }
            // What happened elsewhere is seen too: forgetting it leaves no gap here.
            from = seen;
            match next_end {
                None => changed.await,
                Some(left) => tokio::select! {
                    biased;
                    () = &mut changed => {}
                    () = self.engine.machine().clock().sleep(left) => {}
                },
            }
        }
    }

    async fn news(self: &Arc<Self>, prefix: &str, from: i64) -> Result<NewEvents> {
        let (shared, prefix) = (Arc::clone(self), prefix.to_owned());
        let read = move |reader: &Reader<'_>| {
            let (events, seen) = table::events_after(reader.connection, &prefix, from)?;
            let uptime = nanos(shared.engine.machine().uptime());
            let next_end = table::next_end(reader.connection)?;
            let next_end =
                next_end.map(|end| Duration::from_nanos(end.saturating_sub(uptime).unsigned_abs()));
            Ok(NewEvents { events, seen, next_end })
        };
        self.look("watch", read).await
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LeaseId>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Lease for SqliteLease {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        let holder = self.shared.engine.holder();
        let grant = move |tx: &mut Tx<'_>| {
            table::check_holder(tx.connection, holder)?;
            let id = table::grant(tx.connection, holder, ttl, tx.uptime)?;
            Ok(LeaseGrant::new(LeaseId::new(id), ttl))
        };
        self.shared.work(Effort::durable("grant"), grant).await
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        const OPERATION: &str = "keep_alive";
        let keep = move |tx: &mut Tx<'_>| {
            let ttl = table::keep_alive(tx.connection, lease.get(), tx.uptime)?;
            let ttl = ttl.ok_or_else(|| ended(OPERATION, lease))?;
            Ok(LeaseGrant::new(lease, ttl))
        };
        // It ends by the uptime of this boot, so it is worth nothing after a loss of power.
        self.shared.work(Effort::fleeting(OPERATION), keep).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        let revoke = move |tx: &mut Tx<'_>| {
            table::end(tx.connection, lease.get())?;
            Ok(())
        };
        self.shared.work(Effort::durable("revoke"), revoke).await
    }

    async fn write(&self, write: Write) -> Result<Written> {
        const OPERATION: &str = "write";
        let write = move |tx: &mut Tx<'_>| {
            if let Some(lease) = write.lease
                && !table::is_alive(tx.connection, lease.get())?
            {
                return Err(ended(OPERATION, lease).into());
            }
            let there = table::get(tx.connection, &write.key)?;
            if !is_as(there.as_ref(), write.expect) {
                return Ok(Written::Conflict(there));
            }
            let revision = table::write(tx.connection, &write, there.as_ref())?;
            Ok(Written::At(revision))
        };
        self.shared.work(Effort::durable(OPERATION), write).await
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<Written> {
        let key = key.to_owned();
        let delete = move |tx: &mut Tx<'_>| {
            let there = table::get(tx.connection, &key)?;
            if !is_as(there.as_ref(), expect) {
                return Ok(Written::Conflict(there));
            }
            if there.is_some() {
                table::delete(tx.connection, &key)?;
            }
            let revision = table::revision(tx.connection)?;
            Ok(Written::At(table::read_revision(revision)))
        };
        self.shared.work(Effort::durable("delete"), delete).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        let key = key.to_owned();
        let read = move |reader: &Reader<'_>| Ok(table::get(reader.connection, &key)?);
        self.shared.look("get", read).await
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        let prefix = prefix.to_owned();
        let read = move |reader: &Reader<'_>| Ok(table::list(reader.connection, &prefix)?);
        self.shared.look("list", read).await
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        let (shared, prefix) = (Arc::clone(&self.shared), prefix.to_owned());
        let start = i64::try_from(from.get()).unwrap_or(i64::MAX);
        let batches = stream::unfold(Some(start), move |from| {
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
        self.shared.lock().insert(lease);
        let shared = Arc::clone(&self.shared);
        // Should it not be taken, the next who looks ends it.
        _ = self.shared.engine.write_unheard(Effort::durable("abandon").urgent(), move |tx| {
            shared.end_lapsed(tx)?;
            Ok(())
        });
    }

    fn facts(&self) -> LeaseFacts {
        LeaseFacts::knowing_deaths()
    }
}

fn is_as(there: Option<&Entry>, expect: Expect) -> bool {
    match expect {
        Expect::Anything => true,
        Expect::Absent => there.is_none(),
        Expect::At(revision) => there.is_some_and(|entry| entry.revision == revision),
    }
}

fn ended(operation: &'static str, lease: LeaseId) -> Error {
    error::of(ErrorKind::Lost, operation, format!("lease {} has ended", lease.get()))
}
