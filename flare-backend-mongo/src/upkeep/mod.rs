//! Takes what an area of the database should be like; gives the steps that are missing, and takes
//! them one by one, each only if the database is still as the step was planned from.
//!
//! Setup makes collections and indexes ([`shape`]) and runs migrations; fixup makes them again and
//! corrects counts of [`seats`]; cleanup removes [`orphans`]. Whatever Flare did not make (other
//! collections, indexes of other names, records it cannot read) is left alone.

mod orphans;
mod owner;
mod seats;
mod shape;
mod sweep;
mod versions;
mod walk;

use std::path::Path;

use async_trait::async_trait;
use flare_core::port::{Part, Purpose, Step, StepOutcome, StepProgress, Upkeep, no_backup};
use flare_core::{Error, ErrorKind, Result};

use crate::connection::Connection;
use crate::schema::{Area, Migration, SchemaState};
use crate::{BACKEND, MongoConfig};
use orphans::Orphans;
use seats::Seats;
use shape::Shape;

/// Keeps one part of a MongoDB database in order.
///
/// ```
/// use flare_backend_mongo::{MongoConfig, MongoUpkeep};
/// use flare_core::port::{Part, Purpose, Upkeep};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # // Runs wherever a server is at hand, and is compiled everywhere.
/// # let Ok(uri) = std::env::var("FLARE_TEST_MONGODB_URI") else { return Ok(()) };
/// # let name = format!("flare-upkeep-example-{}", std::process::id());
/// # let scratch = mongodb::Client::with_uri_str(&uri).await?.database(&name);
/// let config = MongoConfig::new(uri);
/// # let config = config.database(name);
/// let upkeep = MongoUpkeep::connect(config, Part::Repository).await?;
/// for step in upkeep.plan(Purpose::Setup).await? {
///     println!("{} {}: {}", step.kind, step.subject, step.reason);
///     upkeep.apply(Purpose::Setup, &step, &()).await?;
/// }
/// assert!(upkeep.plan(Purpose::Setup).await?.is_empty());
/// # scratch.drop().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MongoUpkeep {
    connection: Connection,
    area: Area,
    migrations: &'static [Migration],
}

/// What a step does, read from its id.
#[derive(Debug)]
enum Work {
    Shape(Shape),
    /// The number of the migration.
    Migrate(i32),
    Seats(Seats),
    Sweep(Orphans),
}

impl MongoUpkeep {
    /// Connects to a database, set up or not.
    pub async fn connect(config: MongoConfig, part: Part) -> Result<Self> {
        let area = match part {
            Part::Repository => Area::Repository,
            Part::Queue => Area::Queue,
            Part::Lease => Area::Lease,
            other => {
                let error = Error::new(ErrorKind::Unsupported, "connect").with_backend(BACKEND);
                return Err(error.with_detail(format!("MongoDB keeps no {other}")));
            }
        };
        Ok(Self::on(Connection::open(&config).await?, area))
    }

    pub(crate) fn on(connection: Connection, area: Area) -> Self {
        Self { connection, area, migrations: area.migrations() }
    }

    /// The same, with these migrations instead of the area's own; for tests of migrations.
    #[doc(hidden)]
    #[must_use]
    pub fn with_migrations(mut self, migrations: &'static [Migration]) -> Self {
        self.migrations = migrations;
        self
    }

    /// How far the database is, unless nothing may be done for this purpose there.
    async fn standing(&self, operation: &'static str, purpose: Purpose) -> Result<SchemaState> {
        let (area, migrations) = (self.area, self.migrations);
        let standing = SchemaState::load(&self.connection, operation, area, migrations).await?;
        let refused = match standing {
            SchemaState::Absent | SchemaState::Current => false,
            // What an older or a half-finished version looks like only its migrations know.
            SchemaState::Older(_) | SchemaState::Begun { .. } => purpose != Purpose::Setup,
            SchemaState::Newer(_) => true,
        };
        match standing.refusal(&self.connection, operation, area, migrations) {
            Some(error) if refused => Err(error),
            _ => Ok(standing),
        }
    }

    /// What a step does, if it can be one of ours.
    fn work(&self, purpose: Purpose, step: &Step) -> Option<Work> {
        if purpose == Purpose::Cleanup {
            return Orphans::of_step(self.area, step).map(Work::Sweep);
        }
        let seats = || (purpose == Purpose::Fixup && self.area == Area::Repository).then_some(step);
        Shape::of_step(self.area, step)
            .map(Work::Shape)
            .or_else(|| self.migration_of(step).map(|found| Work::Migrate(found.number)))
            .or_else(|| seats().and_then(Seats::of_step).map(Work::Seats))
    }
}

#[async_trait]
impl Upkeep for MongoUpkeep {
    fn part(&self) -> Part {
        match self.area {
            Area::Repository => Part::Repository,
            Area::Queue => Part::Queue,
            Area::Lease => Part::Lease,
        }
    }

    fn backend(&self) -> &'static str {
        BACKEND
    }

    async fn plan(&self, purpose: Purpose) -> Result<Vec<Step>> {
        let standing = self.standing("plan", purpose).await?;
        if purpose == Purpose::Cleanup {
            // What nobody has set up yet may be about to be filled by a restore.
            return match standing {
                SchemaState::Current => self.orphans().await,
                _ => Ok(Vec::new()),
            };
        }
        // Indexes first: a migration finds by them what it has to change, and once a version is
        // recorded all of it is there.
        let mut steps = self.misshapen().await?;
        steps.extend(self.outstanding(standing));
        if purpose == Purpose::Fixup && self.area == Area::Repository {
            steps.extend(self.miscounted().await?);
        }
        Ok(steps)
    }

    async fn apply(
        &self,
        purpose: Purpose,
        step: &Step,
        progress: &dyn StepProgress,
    ) -> Result<StepOutcome> {
        let work = self.work(purpose, step).ok_or_else(|| step.refused(BACKEND))?;
        let standing = self.standing("apply", purpose).await?;
        let took_place = match work {
            Work::Shape(shape) => self.reshape(shape, step).await?,
            Work::Migrate(number) => self.migrate_to(number).await?,
            Work::Seats(seats) => self.recount(&seats).await?,
            Work::Sweep(_) if standing != SchemaState::Current => false,
            Work::Sweep(orphans) => self.sweep(&orphans, progress).await?,
        };
        Ok(if took_place { StepOutcome::Done } else { StepOutcome::NotNeeded })
    }

    async fn backup(&self, _to: &Path, _progress: &dyn StepProgress) -> Result<()> {
        Err(no_backup(
            BACKEND,
            "the server's own tools copy a database: mongodump (with --oplog on a replica set), or a \
             snapshot of its disks",
        ))
    }
}
