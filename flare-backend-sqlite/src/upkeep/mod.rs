//! Takes what a file should be like; gives the steps that are missing, and takes them one by one, each only if
//! the file is still as the step was planned from.
//!
//! Opening a file sets it up, so a setup has something to do only where nobody has opened it yet. Fixup makes
//! indexes and views again ([`shape`]) and looks for damage; cleanup removes [`orphans`] and returns space. A
//! [`backup`] copies the file while others use it.

mod backup;
mod damage;
mod orphans;
mod shape;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep, no_backup};
use flare_core::{ErrorKind, Result};
use rusqlite::Connection;

use crate::blocking::{self, Reporter};
use crate::connection::{self, Role};
use crate::file::Place;
use crate::holders::OpeningLock;
use crate::schema::{self, Migration, SchemaState};
use crate::time::Machine;
use crate::{BACKEND, SqliteConfig, error};
use orphans::Orphans;
use shape::Shape;

/// Keeps one part of a file in order.
///
/// ```
/// use flare_backend_sqlite::{SqliteConfig, SqliteUpkeep};
/// use flare_core::port::{Part, Purpose, Upkeep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("flare-upkeep-example-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let config = SqliteConfig::new(folder.join("flare.db"));
/// let upkeep = SqliteUpkeep::new(&config, Part::Repository);
/// for step in upkeep.plan(Purpose::Setup).await? {
///     println!("{} {}: {}", step.kind, step.subject, step.reason);
///     upkeep.apply(Purpose::Setup, &step, &()).await?;
/// }
/// assert!(upkeep.plan(Purpose::Setup).await?.is_empty());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SqliteUpkeep {
    part: Part,
    file: Arc<File>,
}

/// The file as the upkeep opens it, for each call anew.
#[derive(Debug)]
struct File {
    config: SqliteConfig,
    machine: Machine,
    migrations: &'static [Migration],
}

/// A file that is there, open.
struct Opened<'a> {
    connection: Connection,
    place: Place,
    standing: SchemaState,
    file: &'a File,
}

/// What a step does, read from its id.
#[derive(Debug, PartialEq)]
enum Work {
    /// The number of the migration.
    Migrate(i32),
    Shape(Shape),
    /// The index that is built again.
    Reindex(&'static str),
    Sweep(Orphans),
    ReturnSpace,
}

impl SqliteUpkeep {
    /// Keeps a part in order of the file that `config` names, which need not be there yet.
    pub fn new(config: &SqliteConfig, part: Part) -> Self {
        let options = config.options();
        let (machine, migrations) = (options.machine, options.migrations);
        let file = File { config: config.clone(), machine, migrations };
        Self { part, file: Arc::new(file) }
    }

    /// What a step does, if it can be one of ours.
    fn work(&self, purpose: Purpose, step: &Step) -> Option<Work> {
        if self.part != Part::Repository {
            return None;
        }
        match purpose {
            Purpose::Setup => self.file.migration_of(step).map(Work::Migrate),
            Purpose::Fixup => Shape::of_step(step)
                .map(Work::Shape)
                .or_else(|| damage::index_of(step).map(Work::Reindex)),
            Purpose::Cleanup if *step == space(step.amount) => Some(Work::ReturnSpace),
            Purpose::Cleanup => Orphans::of_step(step).map(Work::Sweep),
        }
    }
}

#[async_trait]
impl Upkeep for SqliteUpkeep {
    fn part(&self) -> Part {
        self.part
    }

    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        // One file holds all parts: its shape is the repository's business.
        if self.part != Part::Repository {
            return Ok(Vec::new());
        }
        let file = Arc::clone(&self.file);
        blocking::run("plan", &(), move |_| file.plan(purpose)).await
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        let work = self.work(purpose, step).ok_or_else(|| step.refused(BACKEND))?;
        let (file, step) = (Arc::clone(&self.file), step.clone());
        let apply = move |said: &Reporter| file.apply(&work, &step, said);
        let took_place = blocking::run("apply", progress, apply).await?;
        Ok(if took_place { StepOutcome::Done } else { StepOutcome::NotNeeded })
    }

    async fn backup(&self, to: &Path, progress: &dyn StepProgress) -> Result<()> {
        if self.part != Part::Repository {
            return Err(no_backup(BACKEND, "one file holds all parts: copy the repository"));
        }
        let (file, to) = (Arc::clone(&self.file), to.to_path_buf());
        blocking::run("backup", progress, move |said| file.copy_to(&to, said)).await
    }
}

/// The step that returns pages that nothing uses.
fn space(pages: Option<u64>) -> Step {
    let step = Step::delete("free pages", "nothing uses them: the file gets smaller");
    match pages {
        Some(pages) => step.amount(pages),
        None => step,
    }
}

fn migration_step(migration: &Migration) -> Step {
    Step::create(format!("schema version {}", migration.number), migration.about)
}

/// Pages worth returning: a megabyte is kept for what comes next.
const WORTH_RETURNING: i64 = 256;
/// Pages returned in one transaction.
const PAGES_AT_A_TIME: i64 = 256;

impl File {
    fn migration_of(&self, step: &Step) -> Option<i32> {
        let found = self.migrations.iter().find(|it| migration_step(it).id == step.id);
        found.map(|migration| migration.number)
    }

    /// Opens the file, if it is there and may be worked on for what is asked.
    fn open(&self, operation: &'static str) -> Result<Option<Opened<'_>>> {
        if !self.config.path().exists() {
            return Ok(None);
        }
        connection::check_library()?;
        let place = Place::at(self.config.path(), self.config.options().file_system)?;
        let connection = connection::open(&place, Role::Keeper);
        let connection = connection.map_err(|error| error::from_sqlite(operation, error))?;
        let standing = SchemaState::of(&connection, self.migrations);
        let standing = standing.map_err(|error| error::from_sqlite(operation, error))?;
        match standing.refusal(operation, &place, self.migrations) {
            Some(refusal) => Err(refusal),
            None => Ok(Some(Opened { connection, place, standing, file: self })),
        }
    }

    fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        const OPERATION: &str = "plan";
        let opened = self.open(OPERATION)?;
        let standing = opened.as_ref().map_or(SchemaState::Empty, |opened| opened.standing);
        if purpose == Purpose::Setup {
            let version = standing.version(self.migrations);
            let missing = self.migrations.iter().filter(|it| it.number > version);
            return Ok(missing.map(migration_step).collect());
        }
        match opened {
            Some(opened) if standing == SchemaState::Current => {
                let steps = match purpose {
                    Purpose::Fixup => opened.fixup(),
                    _ => opened.cleanup(),
                };
                steps.map_err(|fault| fault.into_error(OPERATION))
            }
            // What an older version looks like only its migrations know.
            Some(opened) if matches!(standing, SchemaState::Older(_)) => {
                let detail = format!(
                    "{} is of an older version: open it, or run `flare setup`, first",
                    opened.place.path().display()
                );
                Err(error::of(ErrorKind::Conflict, OPERATION, detail))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn apply(&self, work: &Work, step: &Step, said: &Reporter) -> Result<bool> {
        const OPERATION: &str = "apply";
        if let Work::Migrate(number) = work {
            return self.migrate(*number);
        }
        let Some(mut opened) = self.open(OPERATION)? else { return Ok(false) };
        if opened.standing != SchemaState::Current {
            return Ok(false);
        }
        let done = match work {
            Work::Migrate(_) => return Ok(false),
            Work::Shape(shape) => opened.reshape(shape, step),
            Work::Reindex(index) => opened.reindex(index),
            Work::Sweep(orphans) => opened.sweep(orphans, said),
            Work::ReturnSpace => opened.return_space(said),
        };
        done.map_err(|fault| fault.into_error(OPERATION))
    }

    /// Runs a migration of a file that is at the version before it; tells whether it was.
    fn migrate(&self, number: i32) -> Result<bool> {
        let before = self.migrations.iter().filter(|it| it.number <= number).count();
        let wanted = &self.migrations[..before];
        let place = Place::at(self.config.path(), self.config.options().file_system)?;
        let _opening = OpeningLock::take(&place)?;
        let failed = |error| error::from_sqlite("apply", error);
        let mut connection = connection::open(&place, Role::Keeper).map_err(failed)?;
        let standing = SchemaState::of(&connection, self.migrations).map_err(failed)?;
        if let Some(refusal) = standing.refusal("apply", &place, self.migrations) {
            return Err(refusal);
        }
        if standing.version(self.migrations) != number - 1 {
            return Ok(false);
        }
        schema::prepare(&mut connection, &place, wanted)?;
        Ok(true)
    }
}

impl Opened<'_> {
    fn fixup(&self) -> crate::fault::Worked<Vec<Step>> {
        let mut steps = self.misshapen()?;
        steps.extend(self.damaged()?);
        Ok(steps)
    }

    fn cleanup(&self) -> crate::fault::Worked<Vec<Step>> {
        let mut steps = self.orphans()?;
        let free = self.free_pages()?;
        if free > WORTH_RETURNING {
            steps.push(space(Some((free - WORTH_RETURNING).unsigned_abs())));
        }
        Ok(steps)
    }

    fn free_pages(&self) -> rusqlite::Result<i64> {
        self.connection.pragma_query_value(None, "freelist_count", |row| row.get(0))
    }

    fn return_space(&self, said: &Reporter) -> crate::fault::Worked<bool> {
        let all = self.free_pages()? - WORTH_RETURNING;
        let mut left = all;
        while left > 0 {
            let pages = left.min(PAGES_AT_A_TIME);
            let sql = format!("PRAGMA incremental_vacuum({pages})");
            let mut vacuum = self.connection.prepare(&sql)?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
            drop(steps);
            let now = self.free_pages()? - WORTH_RETURNING;
            if now >= left {
                break;
            }
            left = now;
            said.advanced((all - left.max(0)).unsigned_abs(), all.unsigned_abs());
        }
        Ok(all > 0)
    }
}
