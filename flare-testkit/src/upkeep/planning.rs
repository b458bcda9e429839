//! U1: looking changes nothing, and what is unchanged looks the same.

use std::collections::BTreeSet;

use flare_core::port::{Purpose, Upkeep};

use crate::Subject;

/// Plans of an unchanged store are equal, whichever were made before.
pub async fn u1_a_plan_changes_nothing(subject: Subject<dyn Upkeep>) {
    let first = plans(&subject).await;
    assert_eq!(plans(&subject).await, first);
}

/// An id names one step, and one step has one id.
pub async fn u1_no_step_is_planned_twice(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        let steps = subject.planned(purpose).await;
        let ids: BTreeSet<_> = steps.iter().map(|step| &step.id).collect();
        assert_eq!(ids.len(), steps.len(), "{purpose} plans something twice: {steps:?}");
    }
}

async fn plans(subject: &Subject<dyn Upkeep>) -> Vec<Vec<String>> {
    let mut plans = Vec::new();
    for purpose in Purpose::ALL {
        plans.push(subject.ids(purpose).await);
    }
    plans
}
