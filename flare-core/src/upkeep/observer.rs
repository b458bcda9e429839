//! Takes what happens while a plan is applied; gives it to a caller that wants to follow.

use super::plan::PartPlan;
use super::report::StepResult;
use crate::port::Step;

/// Follows a plan being applied, step by step. Its calls are made between the steps: one that takes
/// long holds them up.
pub trait Observer: Send + Sync {
    /// A step of `part` begins.
    fn started(&self, part: &PartPlan, step: &Step);

    /// So much of the step is done, out of `total` if that is known.
    fn advanced(&self, step: &Step, done: u64, total: Option<u64>);

    /// A step that began has ended: done, not needed, or failed.
    fn ended(&self, step: &Step, result: &StepResult);
}

/// For a caller that does not want to follow.
impl Observer for () {
    fn started(&self, _part: &PartPlan, _step: &Step) {}

    fn advanced(&self, _step: &Step, _done: u64, _total: Option<u64>) {}

    fn ended(&self, _step: &Step, _result: &StepResult) {}
}
