//! Takes whatever keeps the stores of a backend in order; gives one plan over all of them, and
//! applies what is still planned then. Awaits one step at a time, in the order of the plan.

use std::collections::HashSet;
use std::sync::Arc;

use super::observer::Observer;
use super::plan::{PartPlan, Plan};
use super::report::{Report, StepResult};
use crate::error::Result;
use crate::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep};

/// Keeps the stores of a backend in order; [`Backend::caretaker`](crate::Backend::caretaker) makes
/// one.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use flare_core::Backend;
/// use flare_core::port::{Part, Purpose};
///
/// let caretaker = Backend::none().caretaker(); // yours
/// let plan = caretaker.plan(Purpose::Setup, &Part::ALL).await?;
/// for (part, step) in plan.steps() {
///     println!("{} ({}): {} {}, {}", part.part, part.backend, step.kind, step.subject, step.reason);
/// }
/// let report = caretaker.apply(&plan, &()).await?; // if an operator likes what was shown
/// assert!(report.failure().is_none());
/// # Ok::<(), flare_core::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Caretaker {
    /// In the order of the parts: queues are judged by what the repository knows.
    upkeep: Vec<Arc<dyn Upkeep>>,
}

impl Caretaker {
    pub(crate) fn new(mut upkeep: Vec<Arc<dyn Upkeep>>) -> Self {
        upkeep.sort_by_key(|upkeep| upkeep.part());
        Self { upkeep }
    }

    /// What is left to do for `purpose` in these parts. Changes nothing.
    pub async fn plan(&self, purpose: Purpose, parts: &[Part]) -> Result<Plan> {
        let planned = self.look(purpose, parts).await?;
        Ok(Plan::new(purpose, planned.into_iter().map(Planned::shown).collect()))
    }

    /// Plans again, and takes those steps of `plan` that are still planned, in its order, up to the
    /// first that fails. A step that `plan` does not have is not taken: no operator has seen it.
    ///
    /// An error means that it could not be planned again, and that nothing was changed; a step that
    /// failed is in the report. Applying the plan once more is safe in either case.
    pub async fn apply(&self, plan: &Plan, observer: &dyn Observer) -> Result<Report> {
        let parts: Vec<Part> = plan.parts.iter().map(|part| part.part).collect();
        let now = self.look(plan.purpose, &parts).await?;
        let mut report = Report::new(plan.purpose);
        let mut failed = false;
        for (part, step) in plan.steps() {
            let result = match now.iter().find_map(|planned| planned.find(part, step)) {
                _ if failed => StepResult::NotTried,
                None => StepResult::NoLongerPlanned,
                Some((upkeep, step)) => {
                    observer.started(part, step);
                    let result = take(upkeep, plan.purpose, step, observer).await;
                    observer.ended(step, &result);
                    result
                }
            };
            failed |= matches!(result, StepResult::Failed { .. });
            report.add(part, step, result);
        }
        let seen: HashSet<_> = plan.steps().map(|(part, step)| key(part, step)).collect();
        for (part, step) in now.iter().flat_map(Planned::steps) {
            if !seen.contains(&key(part, step)) {
                report.add(part, step, StepResult::New);
            }
        }
        Ok(report)
    }

    /// The steps of every part, each with the store that takes it.
    async fn look(&self, purpose: Purpose, parts: &[Part]) -> Result<Vec<Planned<'_>>> {
        let mut planned: Vec<Planned<'_>> = Vec::new();
        for upkeep in self.upkeep.iter().filter(|upkeep| parts.contains(&upkeep.part())) {
            let part = PartPlan::new(upkeep.part(), upkeep.backend());
            let steps = upkeep.plan(purpose).await?;
            let steps = steps.into_iter().map(|step| (&**upkeep, step));
            // Two that keep the same part of the same backend are one to an operator.
            match planned.iter_mut().find(|there| there.part.is_beside(&part)) {
                Some(there) => there.steps.extend(steps),
                None => planned.push(Planned { part, steps: steps.collect() }),
            }
        }
        Ok(planned)
    }
}

/// The steps of one part, each with the store that takes it.
struct Planned<'a> {
    part: PartPlan,
    steps: Vec<(&'a dyn Upkeep, Step)>,
}

impl Planned<'_> {
    fn shown(self) -> PartPlan {
        let mut part = self.part;
        part.steps = self.steps.into_iter().map(|(_, step)| step).collect();
        part
    }

    fn steps(&self) -> impl Iterator<Item = (&PartPlan, &Step)> {
        self.steps.iter().map(|(_, step)| (&self.part, step))
    }

    /// The same change of the same thing, if it is planned still.
    fn find(&self, part: &PartPlan, step: &Step) -> Option<(&dyn Upkeep, &Step)> {
        let same = self.steps.iter().find(|(_, planned)| planned.id == step.id);
        same.filter(|_| self.part.is_beside(part)).map(|(upkeep, step)| (*upkeep, step))
    }
}

fn key<'a>(part: &PartPlan, step: &'a Step) -> (Part, &'static str, &'a str) {
    (part.part, part.backend, &step.id)
}

async fn take(
    upkeep: &dyn Upkeep,
    purpose: Purpose,
    step: &Step,
    observer: &dyn Observer,
) -> StepResult {
    match upkeep.apply(purpose, step, &Heard { step, observer }).await {
        Ok(StepOutcome::Done) => StepResult::Done,
        Ok(StepOutcome::NotNeeded) => StepResult::NotNeeded,
        Err(error) => StepResult::Failed { error },
    }
}

/// Tells the observer which step it is that got on.
struct Heard<'a> {
    step: &'a Step,
    observer: &'a dyn Observer,
}

impl StepProgress for Heard<'_> {
    fn advanced(&self, done: u64, total: Option<u64>) {
        self.observer.advanced(self.step, done, total);
    }
}
