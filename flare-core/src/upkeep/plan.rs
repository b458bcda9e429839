//! Takes the steps of every part; gives them as one piece of data to show, count and apply.

use serde::Serialize;

use crate::port::{Part, Purpose, Step, StepKind};

/// What is left to do for one purpose, part by part. Data only: holding it holds nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Plan {
    /// What the steps are for.
    pub purpose: Purpose,
    /// The parts that were looked at, those without a step too, in the order of [`Part::ALL`].
    pub parts: Vec<PartPlan>,
}

/// What is left to do for one part of one backend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PartPlan {
    /// Which part.
    pub part: Part,
    /// On which backend.
    pub backend: &'static str,
    /// Its steps, in the order they are taken.
    pub steps: Vec<Step>,
}

impl Plan {
    pub(super) const fn new(purpose: Purpose, parts: Vec<PartPlan>) -> Self {
        Self { purpose, parts }
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| part.steps.is_empty())
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps().count()
    }

    /// How many of the steps are of this kind.
    pub fn count(&self, kind: StepKind) -> usize {
        self.steps().filter(|(_, step)| step.kind == kind).count()
    }

    /// All steps with the part they belong to, in the order they are taken.
    pub fn steps(&self) -> impl Iterator<Item = (&PartPlan, &Step)> {
        self.parts.iter().flat_map(|part| part.steps.iter().map(move |step| (part, step)))
    }
}

impl PartPlan {
    pub(super) const fn new(part: Part, backend: &'static str) -> Self {
        Self { part, backend, steps: Vec::new() }
    }

    /// Whether both are about the same part of the same backend.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.part == other.part && self.backend == other.backend
    }
}
