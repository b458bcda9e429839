//! Takes steps in place of a store; gives them as plans until they are applied, and a record of
//! what was.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep};
use flare_core::{Error, ErrorKind, Result};

/// An upkeep of nothing that does as it is told.
///
/// A step stays planned until it is applied, for whichever purpose. One with an amount reports every
/// quarter of it. A backup has a line for each step that took place.
///
/// ```
/// use flare_core::port::{Part, Purpose, Step};
/// use flare_testkit::ScriptedUpkeep;
///
/// let upkeep = ScriptedUpkeep::new(Part::Repository, "mongodb");
/// upkeep.add(Purpose::Setup, Step::create("collection rows", "rows are kept there"));
/// assert!(upkeep.applied().is_empty());
/// ```
#[derive(Debug)]
pub struct ScriptedUpkeep {
    part: Part,
    backend: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    steps: Vec<(Purpose, Step)>,
    settled: BTreeSet<String>,
    answers: BTreeMap<String, Result<StepOutcome>>,
    unplannable: Option<Error>,
    applied: Vec<String>,
}

impl ScriptedUpkeep {
    /// Keeps this part of the backend of this name, with nothing to do.
    pub fn new(part: Part, backend: &'static str) -> Self {
        Self { part, backend, state: Mutex::default() }
    }

    /// Plans a step from now on, after all others.
    pub fn add(&self, purpose: Purpose, step: Step) {
        self.state().steps.push((purpose, step));
    }

    /// Plans a step no more, as if somebody else had seen to it.
    pub fn settle(&self, id: &str) {
        self.state().settled.insert(id.to_owned());
    }

    /// Answers every apply of a step that is planned like this, without an effect.
    pub fn answer(&self, id: &str, answer: Result<StepOutcome>) {
        self.state().answers.insert(id.to_owned(), answer);
    }

    /// Fails to plan from now on.
    pub fn unplannable(&self, error: Error) {
        self.state().unplannable = Some(error);
    }

    /// The ids of all steps that took place, in their order.
    pub fn applied(&self) -> Vec<String> {
        self.state().applied.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Upkeep for ScriptedUpkeep {
    fn part(&self) -> Part {
        self.part
    }

    fn backend(&self) -> &'static str {
        self.backend
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        let state = self.state();
        if let Some(error) = &state.unplannable {
            return Err(error.clone());
        }
        let left = state.steps.iter().filter(|(planned_for, step)| {
            *planned_for == purpose && !state.settled.contains(&step.id)
        });
        Ok(left.map(|(_, step)| step.clone()).collect())
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        let mut state = self.state();
        let mut known = state.steps.iter();
        if !known.any(|(planned_for, known)| *planned_for == purpose && known.id == step.id) {
            return Err(step.refused(self.backend));
        }
        if state.settled.contains(&step.id) {
            return Ok(StepOutcome::NotNeeded);
        }
        if let Some(answer) = state.answers.get(&step.id) {
            return answer.clone();
        }
        if let Some(amount) = step.amount {
            for quarter in 1..=4 {
                progress.advanced(amount.saturating_mul(quarter) / 4, Some(amount));
            }
        }
        state.settled.insert(step.id.clone());
        state.applied.push(step.id.clone());
        Ok(StepOutcome::Done)
    }

    async fn backup(&self, to: &Path, progress: &dyn StepProgress) -> Result<()> {
        let applied = self.applied();
        let failed = |error: std::io::Error| {
            let there = error.kind() == std::io::ErrorKind::AlreadyExists;
            let kind = if there { ErrorKind::Conflict } else { ErrorKind::Unavailable };
            Error::new(kind, "backup").with_backend(self.backend).with_source(error)
        };
        let mut copy = File::create_new(to).map_err(failed)?;
        for step in &applied {
            writeln!(copy, "{step}").map_err(failed)?;
        }
        let all = applied.len() as u64;
        progress.advanced(all, Some(all));
        Ok(())
    }
}
