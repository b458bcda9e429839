//! Takes what a part of a schema should be like; gives the steps that are missing, and takes them one by one,
//! each only if the schema is still as the step was planned from.
//!
//! Setup runs migrations; fixup makes indexes and records again ([`shape`]); cleanup removes [`orphans`].

mod orphans;
mod shape;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep, no_backup};

use crate::connection::Database;
use crate::schema::{self, Migration, of_part};
use crate::{BACKEND, PostgresConfig};
use orphans::Orphans;
use shape::Shape;

/// Keeps one part of a schema in order.
#[derive(Debug, Clone)]
pub struct PostgresUpkeep {
    part: Part,
    database: Arc<Database>,
}

/// What a step does, read from its id.
enum Work {
    Migrate(&'static Migration),
    Shape(Shape),
    Sweep(Orphans),
}

impl PostgresUpkeep {
    /// Keeps a part in order of the schema that `config` names, which need not be there yet.
    pub async fn connect(config: PostgresConfig, part: Part) -> Result<Self> {
        Ok(Self::on(Database::open(&config).await?, part))
    }

    pub(crate) fn on(database: Arc<Database>, part: Part) -> Self {
        Self { part, database }
    }

    fn migration_step(&self, migration: &Migration) -> Step {
        let schema = self.database.schema.as_str();
        let subject = format!("{} version {} in schema {schema}", self.part, migration.number);
        Step::create(subject, migration.about)
    }

    /// What a step does, if it can be one of ours.
    fn work(&self, purpose: Purpose, step: &Step) -> Option<Work> {
        match purpose {
            Purpose::Setup => {
                let mut known = of_part(self.part).iter();
                known.find(|it| self.migration_step(it).id == step.id).map(Work::Migrate)
            }
            Purpose::Fixup => Shape::of_step(self.part, step).map(Work::Shape),
            Purpose::Cleanup if self.part == Part::Repository => {
                Orphans::of_step(step).map(Work::Sweep)
            }
            Purpose::Cleanup => None,
        }
    }

    async fn is_set_up(&self) -> Result<bool> {
        let ran = self.database.attempts("plan", || schema::ran(&self.database, self.part)).await?;
        Ok(of_part(self.part).iter().all(|it| ran.contains(&it.number)))
    }
}

#[async_trait]
impl Upkeep for PostgresUpkeep {
    fn part(&self) -> Part {
        self.part
    }

    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        if purpose == Purpose::Setup {
            let ran =
                self.database.attempts("plan", || schema::ran(&self.database, self.part)).await?;
            let missing = of_part(self.part).iter().filter(|it| !ran.contains(&it.number));
            return Ok(missing.map(|migration| self.migration_step(migration)).collect());
        }
        if !self.is_set_up().await? {
            return Ok(Vec::new());
        }
        match purpose {
            Purpose::Cleanup if self.part == Part::Repository => self.orphans().await,
            Purpose::Fixup => self.misshapen().await,
            _ => Ok(Vec::new()),
        }
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        let work = self.work(purpose, step).ok_or_else(|| step.refused(BACKEND))?;
        let took_place = match work {
            Work::Migrate(migration) => schema::run(&self.database, self.part, migration).await?,
            _ if !self.is_set_up().await? => false,
            Work::Shape(shape) => self.reshape(&shape).await?,
            Work::Sweep(orphans) => self.sweep(&orphans, progress).await?,
        };
        Ok(if took_place { StepOutcome::Done } else { StepOutcome::NotNeeded })
    }

    async fn backup(&self, _to: &Path, _progress: &dyn StepProgress) -> Result<()> {
        Err(no_backup(BACKEND, "copy the schema with pg_dump, or the server with pg_basebackup"))
    }
}
