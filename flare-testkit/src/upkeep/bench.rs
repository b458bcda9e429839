//! Takes an upkeep under trial; gives what its clauses need again and again.

use std::collections::BTreeSet;

use flare_core::port::{Purpose, Step, StepOutcome, Upkeep};

use crate::Subject;

impl Subject<dyn Upkeep> {
    /// What is left to do for a purpose.
    pub(super) async fn planned(&self, purpose: Purpose) -> Vec<Step> {
        self.plan(purpose).await.expect("it can be planned")
    }

    /// The ids of what is left to do for a purpose, in the order of the plan.
    pub(super) async fn ids(&self, purpose: Purpose) -> Vec<String> {
        self.planned(purpose).await.into_iter().map(|step| step.id).collect()
    }

    /// What is left to do for each purpose: as much of the store as the port shows.
    pub(super) async fn shown(&self) -> [BTreeSet<String>; 3] {
        let mut shown: [BTreeSet<String>; 3] = Default::default();
        for (ids, purpose) in shown.iter_mut().zip(Purpose::ALL) {
            ids.extend(self.ids(purpose).await);
        }
        shown
    }

    pub(super) async fn applied(&self, purpose: Purpose, step: &Step) -> StepOutcome {
        let outcome = self.apply(purpose, step, &()).await;
        outcome.unwrap_or_else(|error| panic!("{purpose} of {:?} failed: {error:?}", step.id))
    }

    /// Applies all there is to do for a purpose; gives what that was.
    pub(super) async fn finished(&self, purpose: Purpose) -> Vec<Step> {
        let steps = self.planned(purpose).await;
        for step in &steps {
            self.applied(purpose, step).await;
        }
        steps
    }

    /// A step must not take place: refused or not needed, it changes nothing.
    pub(super) async fn left_alone(&self, purpose: Purpose, step: &Step) {
        let before = self.shown().await;
        let outcome = self.apply(purpose, step, &()).await;
        let taken = matches!(outcome, Ok(StepOutcome::Done));
        assert!(!taken, "{purpose} took {:?}, which it did not plan", step.id);
        assert_eq!(self.shown().await, before, "{purpose} of {:?}", step.id);
    }
}
