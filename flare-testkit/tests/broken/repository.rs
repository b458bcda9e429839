//! The suite is worth something: every clause is broken by a repository with one deliberate
//! fault, and that clause alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::broken_repository::{BrokenRepository, Fault};
use crate::memory_repository::InMemory;
use flare_core::port::Repository;
use flare_testkit::repository::CLAUSES;
use flare_testkit::{Clause, Subject};

/// The threads whose panics are what this test is about.
const TRIALS: &str = "trials";

#[test]
fn every_fault_breaks_its_clause_alone() {
    quiet_trials();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name(TRIALS)
        .enable_all()
        .build()
        .unwrap();
    let faults = Fault::ALL.iter().filter(|it| !of_unreadable(it.1)).chain(&[(Fault::None, "")]);
    let trials: Vec<_> =
        faults.map(|(fault, clause)| (fault, clause, runtime.spawn(broken_by(*fault)))).collect();
    let mut wrong = Vec::new();
    for (fault, clause, trial) in trials {
        let broken = runtime.block_on(trial).unwrap();
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
    let broken: BTreeSet<&str> = broken.filter(|clause| !of_unreadable(clause)).collect();
    let clauses: BTreeSet<&str> =
        CLAUSES.iter().filter(|clause| is_numbered(clause)).map(|it| number(it.name)).collect();
    assert_eq!(broken, clauses);
}

/// What cannot be read has a suite of its own.
fn of_unreadable(clause: &str) -> bool {
    clause.starts_with("ru")
}

/// The histories (`rd_…`, `rr_…`) try many clauses at once, so no fault is theirs alone.
fn is_numbered(clause: &Clause<dyn Repository>) -> bool {
    number(clause.name).ends_with(|digit: char| digit.is_ascii_digit())
}

fn number(name: &str) -> &str {
    name.split('_').next().unwrap_or(name)
}

/// The clauses that fail on a repository with this fault.
async fn broken_by(fault: Fault) -> Vec<&'static str> {
    let mut broken = Vec::new();
    for clause in CLAUSES.iter().filter(|clause| is_numbered(clause) || fault == Fault::None) {
        let fixture = InMemory::behind(move |it| Arc::new(BrokenRepository::new(it, fault)));
        let (subject, ()) = Subject::open(fixture).await;
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
