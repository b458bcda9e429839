//! Takes the question what memory lacks; gives nothing: it begins empty, makes what it needs, and
//! is gone with its process, so that nothing could be prepared in it or left behind.

use std::path::Path;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep, no_backup};

use crate::BACKEND;

/// Upkeep of a part that needs none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoUpkeep(pub(crate) Part);

#[async_trait]
impl Upkeep for NoUpkeep {
    fn part(&self) -> Part {
        self.0
    }

    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn plan(&self, _purpose: Purpose) -> Result<Vec<Step>> {
        Ok(Vec::new())
    }

    async fn apply(
        &self,
        _purpose: Purpose,
        step: &Step,
        _progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        Err(step.refused(BACKEND))
    }

    async fn backup(&self, _to: &Path, _progress: &dyn StepProgress) -> Result<()> {
        Err(no_backup(
            BACKEND,
            "memory is gone with its process: keep what matters in a store that outlives it, as \
             flare-backend-sqlite",
        ))
    }
}
