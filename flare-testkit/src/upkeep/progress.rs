//! U7: whoever waits for a long step hears how far it is.

use std::sync::{Mutex, PoisonError};

use flare_core::port::{Purpose, StepOutcome, StepProgress, Upkeep};

use crate::Subject;

/// All that a step said.
#[derive(Debug, Default)]
pub(super) struct Heard(Mutex<Vec<(u64, Option<u64>)>>);

impl Heard {
    pub(super) fn all(self) -> Vec<(u64, Option<u64>)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepProgress for Heard {
    fn advanced(&self, done: u64, total: Option<u64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((done, total));
    }
}

/// A step with an amount says something, and nothing that goes backwards or beyond the end.
pub async fn u7_what_takes_long_says_how_far_it_is(subject: Subject<dyn Upkeep>) {
    for purpose in Purpose::ALL {
        for step in subject.planned(purpose).await {
            let heard = Heard::default();
            let outcome = subject.apply(purpose, &step, &heard).await.expect("it can be applied");
            let heard = heard.all();
            let silent = heard.is_empty() && step.amount.is_some();
            assert!(!silent || outcome != StepOutcome::Done, "{:?} said nothing", step.id);
            assert!(heard.is_sorted_by_key(|(done, _)| *done), "{:?}: {heard:?}", step.id);
            let beyond = heard.iter().any(|(done, total)| total.is_some_and(|total| *done > total));
            assert!(!beyond, "{:?} went beyond its end: {heard:?}", step.id);
        }
    }
}
