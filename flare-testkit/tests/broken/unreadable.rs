//! The suite about what cannot be read is worth something: every clause is broken by a repository with
//! one deliberate fault, and that clause alone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::broken_repository::{BrokenRepository, Fault};
use async_trait::async_trait;
use flare_backend_memory::{MemoryBackend, MemoryRepository};
use flare_core::model::{RECORD_FORMAT, RecordName, Timestamp, WhyUnreadable};
use flare_core::port::Repository;
use flare_testkit::unreadable::{CLAUSES, Spoilable, Spoiling};
use flare_testkit::{Fixture, ManualClock, Subject};

/// The threads whose panics are what this test is about.
const TRIALS: &str = "trials";

/// A repository in memory with a fault, whose records can be spoilt.
struct Broken {
    fault: Fault,
    clock: ManualClock,
}

struct SpoilableBroken {
    memory: Arc<MemoryRepository>,
    fault: Fault,
}

#[async_trait]
impl Spoilable for SpoilableBroken {
    fn repository(&self) -> Arc<dyn Repository> {
        Arc::new(BrokenRepository::new(self.memory.clone(), self.fault))
    }

    async fn spoil(&self, record: RecordName, how: Spoiling) {
        self.memory.spoil(record, why(how));
    }

    async fn has_unknown_field(&self, record: RecordName) -> bool {
        self.memory.has_unknown_field(&record)
    }
}

fn why(how: Spoiling) -> Option<WhyUnreadable> {
    match how {
        Spoiling::Newer => Some(WhyUnreadable::Newer { needs: RECORD_FORMAT + 1 }),
        Spoiling::Damaged => Some(WhyUnreadable::Damaged { detail: "spoilt".to_owned() }),
        Spoiling::UnknownField => None,
    }
}

#[async_trait]
impl Fixture for Broken {
    type Port = dyn Spoilable;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Spoilable>, ()) {
        let memory = MemoryBackend::with_clock(Arc::new(self.clock.clone())).repository();
        (Arc::new(SpoilableBroken { memory, fault: self.fault }), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

#[test]
fn every_fault_breaks_its_clause_alone() {
    quiet_trials();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(TRIALS)
        .enable_all()
        .build()
        .unwrap();
    let faults = Fault::ALL.iter().filter(|(_, clause)| clause.starts_with("ru"));
    let mut wrong = Vec::new();
    for (fault, clause) in faults.chain(&[(Fault::None, "")]) {
        let broken = runtime.block_on(runtime.spawn(broken_by(*fault))).unwrap();
        let expected: BTreeSet<&str> =
            std::iter::once(*clause).filter(|it| !it.is_empty()).collect();
        if broken.iter().map(|name| number(name)).collect::<BTreeSet<_>>() != expected {
            wrong.push(format!("{fault:?} should break {expected:?}, but breaks {broken:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_clause_has_a_fault() {
    let broken = Fault::ALL.iter().map(|(_, clause)| *clause);
    let broken: BTreeSet<&str> = broken.filter(|clause| clause.starts_with("ru")).collect();
    let clauses: BTreeSet<&str> = CLAUSES.iter().map(|it| number(it.name)).collect();
    assert_eq!(broken, clauses);
}

fn number(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// The clauses that fail on a repository with this fault.
async fn broken_by(fault: Fault) -> Vec<&'static str> {
    let mut broken = Vec::new();
    for clause in CLAUSES {
        let clock = ManualClock::new(Timestamp::from_unix_millis(1_700_000_000_000));
        let (subject, ()) = Subject::open(Broken { fault, clock }).await;
        if tokio::spawn((clause.run)(subject)).await.is_err() {
            broken.push(clause.name);
        }
    }
    broken
}

/// Silences the panics of trials, which are expected, and of nothing else.
fn quiet_trials() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name() != Some(TRIALS) {
            usual(info);
        }
    }));
}
