//! Takes what became of each step; gives it as one piece of data, for people and machines.

use serde::{Serialize, Serializer};

use super::plan::PartPlan;
use crate::error::Error;
use crate::port::{Part, Purpose, Step};

/// What became of a plan.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// What the plan was for.
    pub purpose: Purpose,
    /// Every step of the plan in its order, then those that are new since.
    pub steps: Vec<StepReport>,
}

/// What became of one step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StepReport {
    /// Which part it is about.
    pub part: Part,
    /// On which backend.
    pub backend: &'static str,
    /// The step.
    pub step: Step,
    /// What became of it.
    #[serde(flatten)]
    pub result: StepResult,
}

/// What can become of a step.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
#[non_exhaustive]
pub enum StepResult {
    /// It took place.
    Done,
    /// It was planned still, and then found done, or its subject not as planned any more.
    NotNeeded,
    /// It was not planned any more when the plan was applied, so it was not tried.
    NoLongerPlanned,
    /// It failed; the steps after it were not tried.
    Failed {
        /// Why.
        #[serde(serialize_with = "with_sources")]
        error: Error,
    },
    /// A step before it failed.
    NotTried,
    /// The plan does not have it: the operator who looked at the plan has not seen it, so it was not tried.
    New,
}

impl Report {
    pub(super) const fn new(purpose: Purpose) -> Self {
        Self { purpose, steps: Vec::new() }
    }

    pub(super) fn add(&mut self, part: &PartPlan, step: &Step, result: StepResult) {
        let PartPlan { part, backend, .. } = *part;
        self.steps.push(StepReport { part, backend, step: step.clone(), result });
    }

    /// How many steps took place.
    pub fn done(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.result, StepResult::Done)).count()
    }

    /// The step that failed, and why.
    pub fn failure(&self) -> Option<(&StepReport, &Error)> {
        self.steps.iter().find_map(|step| match &step.result {
            StepResult::Failed { error } => Some((step, error)),
            _ => None,
        })
    }
}

/// What a person who reads the report needs is in the sources as often as not.
fn with_sources<S: Serializer>(error: &Error, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{error:?}"))
}
