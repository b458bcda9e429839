//! A coordination store with one fault fails exactly the clause it breaks; an honest one fails
//! none.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use flare_backend_memory::MemoryBackend;
use flare_core::model::Timestamp;
use flare_core::port::{
    Entry, Expect, KeyChange, KeyEvent, Lease, LeaseFacts, LeaseGrant, LeaseId, Scan, Snapshot,
    StoreRevision, Write, Written,
};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::lease::CLAUSES;
use flare_testkit::{FaultPlan, FaultyLease, Fixture, ManualClock};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::yield_now;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    LivesHalf,
    LivesDouble,
    KeepsNothingAlive,
    SkipsSameValues,
    DeletesOffTheRecord,
    ChecksThenWrites,
    DeletesRegardless,
    ConflictsInSilence,
    EndsInSilence,
    RevivesLeases,
    BindsToNothing,
    RevokesOnce,
    ListsBackwards,
    ListsInTwoSteps,
    WatchesInclusively,
    WatchesTwice,
    SkipsAhead,
    HidesCompaction,
    NeverUnbinds,
    DeletesOnce,
    CountsDeletesOfNothing,
    ThinksInDirectories,
    IgnoresCase,
    WaitsForTheDead,
}

/// The memory leases with one fault.
#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Lease>,
    fault: Fault,
    seen: Arc<Mutex<Seen>>,
}

/// What faults need to remember.
#[derive(Debug, Default)]
struct Seen {
    ttls: HashMap<LeaseId, Duration>,
    bound: HashSet<String>,
    bound_to: HashMap<LeaseId, Vec<String>>,
    revoked: HashSet<LeaseId>,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn prefix(&self, prefix: &str) -> String {
        match self.fault {
            Fault::ThinksInDirectories => format!("{}/", prefix.trim_end_matches('/')),
            _ => prefix.to_owned(),
        }
    }
}

#[async_trait]
impl Lease for Broken {
    async fn grant(&self, ttl: Duration) -> Result<LeaseGrant> {
        let really = match self.fault {
            Fault::LivesHalf => ttl / 2,
            Fault::LivesDouble => ttl * 2,
            _ => ttl,
        };
        let grant = self.inner.grant(really).await?;
        self.seen.lock().unwrap().ttls.insert(grant.id, ttl);
        Ok(LeaseGrant::new(grant.id, ttl))
    }

    async fn keep_alive(&self, lease: LeaseId) -> Result<LeaseGrant> {
        let ttl = self.seen.lock().unwrap().ttls[&lease];
        if self.is(Fault::KeepsNothingAlive) {
            // An ended one is refused all the same.
            self.inner.write(Write::new("probe", "").lease(lease)).await?;
            return Ok(LeaseGrant::new(lease, ttl));
        }
        match self.inner.keep_alive(lease).await {
            Err(_) if self.is(Fault::RevivesLeases) => Ok(LeaseGrant::new(lease, ttl)),
            kept => kept.map(|_| LeaseGrant::new(lease, ttl)),
        }
    }

    async fn revoke(&self, lease: LeaseId) -> Result<()> {
        let (again, keys) = {
            let mut seen = self.seen.lock().unwrap();
            (!seen.revoked.insert(lease), seen.bound_to.remove(&lease).unwrap_or_default())
        };
        if self.is(Fault::RevokesOnce) && again {
            return Err(Error::new(ErrorKind::Lost, "revoke"));
        }
        self.inner.revoke(lease).await?;
        if self.is(Fault::NeverUnbinds) {
            for key in keys {
                self.inner.delete(&key, Expect::Anything).await?;
            }
        }
        Ok(())
    }

    async fn write(&self, mut write: Write) -> Result<Written> {
        let there = self.inner.get(&write.key).await?;
        if let Some(lease) = write.lease {
            let mut seen = self.seen.lock().unwrap();
            seen.bound.insert(write.key.clone());
            seen.bound_to.entry(lease).or_default().push(write.key.clone());
        }
        match (self.fault, &there) {
            (Fault::SkipsSameValues, Some(entry)) if entry.value == write.value => {
                return Ok(Written::At(entry.revision));
            }
            (Fault::ChecksThenWrites, _) => {
                let met = match write.expect {
                    Expect::Anything => true,
                    Expect::Absent => there.is_none(),
                    Expect::At(at) => there.as_ref().is_some_and(|entry| entry.revision == at),
                };
                if !met {
                    return Ok(Written::Conflict(there));
                }
                write.expect = Expect::Anything;
                yield_now().await;
            }
            _ => {}
        }
        match self.inner.write(write.clone()).await {
            Ok(Written::Conflict(_)) if self.is(Fault::ConflictsInSilence) => {
                Ok(Written::Conflict(None))
            }
            Err(error) if error.kind() == ErrorKind::Lost && self.is(Fault::BindsToNothing) => {
                write.lease = None;
                self.inner.write(write).await
            }
            written => written,
        }
    }

    async fn delete(&self, key: &str, mut expect: Expect) -> Result<Written> {
        let there = self.inner.get(key).await?.is_some();
        match self.fault {
            Fault::DeletesOnce if !there => return Err(Error::new(ErrorKind::NotFound, "delete")),
            Fault::CountsDeletesOfNothing if !there => {
                self.inner.write(Write::new("deletes", "")).await?;
            }
            Fault::DeletesRegardless => expect = Expect::Anything,
            _ => {}
        }
        let deleted = self.inner.delete(key, expect).await?;
        match deleted {
            Written::At(at) if there && self.is(Fault::DeletesOffTheRecord) => {
                Ok(Written::At(StoreRevision::new(at.get() - 1)))
            }
            deleted => Ok(deleted),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>> {
        self.inner.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Snapshot> {
        if self.is(Fault::IgnoresCase) {
            let mut all = self.inner.list("").await?;
            all.entries.retain(|entry| {
                entry.key.to_lowercase().starts_with(prefix.to_lowercase().as_str())
            });
            return Ok(all);
        }
        let prefix = self.prefix(prefix);
        let mut snapshot = self.inner.list(&prefix).await?;
        match self.fault {
            Fault::ListsBackwards => snapshot.entries.reverse(),
            Fault::ListsInTwoSteps => {
                yield_now().await;
                snapshot.revision = self.inner.list(&prefix).await?.revision;
            }
            _ => {}
        }
        Ok(snapshot)
    }

    fn abandon(&self, lease: LeaseId) {
        if !self.is(Fault::WaitsForTheDead) {
            self.inner.abandon(lease);
        }
    }

    fn facts(&self) -> LeaseFacts {
        self.inner.facts()
    }

    fn watch(&self, prefix: &str, from: StoreRevision) -> Scan<'static, KeyEvent> {
        let (inner, prefix) = (Arc::clone(&self.inner), self.prefix(prefix));
        let now = |inner: Arc<dyn Lease>| async move { inner.list("").await.unwrap().revision };
        match self.fault {
            Fault::WatchesInclusively => {
                inner.watch(&prefix, StoreRevision::new(from.get().saturating_sub(1)))
            }
            Fault::WatchesTwice => {
                let events = inner.watch(&prefix, from);
                let twice = |event: Result<KeyEvent>| {
                    let again = event.as_ref().ok().cloned().map(Ok);
                    stream::iter(again.into_iter().chain([event]))
                };
                events.flat_map(twice).boxed()
            }
            Fault::EndsInSilence => {
                let seen = Arc::clone(&self.seen);
                let told = move |event: &KeyEvent| {
                    let bound = seen.lock().unwrap().bound.contains(&event.key);
                    std::future::ready(!(bound && event.kind == KeyChange::Deleted))
                };
                inner.watch(&prefix, from).try_filter(told).boxed()
            }
            Fault::SkipsAhead => stream::once(now(Arc::clone(&inner)))
                .flat_map(move |now| {
                    inner.watch(&prefix, from.max(StoreRevision::new(now.get().saturating_sub(99))))
                })
                .boxed(),
            Fault::HidesCompaction => {
                let rest = Arc::clone(&inner);
                let rest_prefix = prefix.clone();
                let rest = stream::once(now(rest.clone()))
                    .flat_map(move |now| rest.watch(&rest_prefix, now));
                let events = inner.watch(&prefix, from);
                events.take_while(|event| std::future::ready(event.is_ok())).chain(rest).boxed()
            }
            _ => inner.watch(&prefix, from),
        }
    }
}

type Wrap = Box<dyn Fn(Arc<dyn Lease>) -> Arc<dyn Lease> + Send + Sync>;

struct Fixed {
    clock: ManualClock,
    wrap: Wrap,
}

#[async_trait]
impl Fixture for Fixed {
    type Port = dyn Lease;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Lease>, ()) {
        let memory = MemoryBackend::with_clock(Arc::new(self.clock.clone())).lease();
        ((self.wrap)(memory), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }
}

fn failing(
    wrap: impl Fn(Arc<dyn Lease>) -> Arc<dyn Lease> + Send + Sync + Copy + 'static,
) -> Vec<&'static str> {
    let fixture = || Fixed { clock: ManualClock::new(Timestamp::EPOCH), wrap: Box::new(wrap) };
    crate::support::failing(CLAUSES, fixture).into_iter().collect()
}

fn noticed(fault: Fault) -> Vec<&'static str> {
    failing(move |inner| Arc::new(Broken { inner, fault, seen: Arc::default() }))
}

crate::support::faults! {
    an_honest_store_fails_nothing: None => [];
    l1_living_half_as_long: LivesHalf => ["l1"];
    l1_living_twice_as_long: LivesDouble => ["l1"];
    l1_keeping_nothing_alive: KeepsNothingAlive => ["l1"];
    l2_skipping_writes_of_the_same: SkipsSameValues => ["l2"];
    l2_deleting_off_the_record: DeletesOffTheRecord => ["l2"];
    l3_checking_before_writing: ChecksThenWrites => ["l3"];
    l3_deleting_regardless: DeletesRegardless => ["l3"];
    l3_conflicting_in_silence: ConflictsInSilence => ["l3"];
    l4_ending_in_silence: EndsInSilence => ["l4"];
    l5_reviving_leases: RevivesLeases => ["l5"];
    l5_binding_to_nothing: BindsToNothing => ["l5"];
    l5_revoking_only_once: RevokesOnce => ["l5"];
    l6_listing_backwards: ListsBackwards => ["l6"];
    l6_listing_in_two_steps: ListsInTwoSteps => ["l6"];
    l7_watching_inclusively: WatchesInclusively => ["l7"];
    l7_watching_twice: WatchesTwice => ["l7"];
    l8_skipping_ahead: SkipsAhead => ["l8"];
    l8_hiding_compaction: HidesCompaction => ["l8"];
    l9_never_unbinding: NeverUnbinds => ["l9"];
    l10_deleting_only_once: DeletesOnce => ["l10"];
    l10_counting_deletes_of_nothing: CountsDeletesOfNothing => ["l10"];
    l11_thinking_in_directories: ThinksInDirectories => ["l11"];
    l11_ignoring_case: IgnoresCase => ["l11"];
    l12_waiting_for_the_dead: WaitsForTheDead => ["l12"];
}

#[test]
fn a_faulty_store_without_faults_fails_nothing() {
    let faulty = failing(|inner| Arc::new(FaultyLease::new(inner, FaultPlan::seeded(1))));
    assert_eq!(faulty, [""; 0]);
}
