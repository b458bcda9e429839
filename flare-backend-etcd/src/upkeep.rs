//! Takes the question what etcd lacks; gives nothing: keys are made when they are first written,
//! and those that belong to nobody end with their lease. Connecting shows whether etcd answers and
//! lets us in.

use std::path::Path;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep, no_backup};

use crate::{BACKEND, EtcdConfig, EtcdLease};

/// Upkeep of leases on etcd, which need none.
#[derive(Debug)]
#[non_exhaustive]
pub struct EtcdUpkeep;

impl EtcdUpkeep {
    /// Finds out whether etcd answers, and lets us read our keys.
    pub async fn connect(config: EtcdConfig) -> Result<Self> {
        EtcdLease::connect(config).await.map(|_| Self)
    }
}

#[async_trait]
impl Upkeep for EtcdUpkeep {
    fn part(&self) -> Part {
        Part::Lease
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
        Err(no_backup(BACKEND, "leases end with their holders: there is nothing to keep"))
    }
}
