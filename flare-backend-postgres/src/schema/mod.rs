//! The shape of the schema, as data: numbered migrations of each part that lead to it, and what a schema that
//! is connected to is like, seen from them.

mod migration;

use std::collections::BTreeSet;

use flare_core::port::Part;
use flare_core::{ErrorKind, Result};

use crate::connection::{Database, Session};
use crate::error;
use crate::fault::Worked;
pub(crate) use migration::{Migration, of_part};

/// Whether there is a schema of the name with a table of migrations in it.
const THERE: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables \
     WHERE schemaname = $1 AND tablename = 'migrations')";
const RAN: &str = "SELECT number FROM flare.migrations WHERE part = $1";
const RECORD: &str = "INSERT INTO flare.migrations (part, number, about) VALUES ($1, $2, $3)";

/// What every part builds on.
const BASE: &str = include_str!("../../sql/base.sql");

/// Makes sure that a part is set up as this version has it, or sets it up.
pub(crate) async fn check(database: &Database, part: Part, create: bool) -> Result<()> {
    const OPERATION: &str = "connect";
    let ran = database.attempts(OPERATION, || ran(database, part)).await?;
    let known = of_part(part);
    if let Some(newer) = ran.iter().find(|number| !known.iter().any(|it| it.number == **number)) {
        let detail = format!(
            "schema {} has version {newer} of the {part}, this Flare knows {} at most: update this node",
            database.schema.as_str(),
            known.len()
        );
        return Err(error::of(ErrorKind::Conflict, OPERATION, detail));
    }
    for migration in known.iter().filter(|it| !ran.contains(&it.number)) {
        if !create {
            let detail = format!(
                "the {part} is not set up in schema {}: run `flare setup`",
                database.schema.as_str()
            );
            return Err(error::of(ErrorKind::NotFound, OPERATION, detail));
        }
        run(database, part, migration).await?;
    }
    Ok(())
}

/// The numbers of a part's migrations that have run.
pub(crate) async fn ran(database: &Database, part: Part) -> Worked<BTreeSet<i32>> {
    let mut session = database.session("connect").await?;
    let there = session.query_opt(THERE, &[&database.schema.as_str()]).await?;
    if !there.map_or(Ok(false), |row| row.try_get(0))? {
        return Ok(BTreeSet::new());
    }
    numbers(&mut session, part).await
}

async fn numbers(session: &mut Session<'_>, part: Part) -> Worked<BTreeSet<i32>> {
    let rows = session.query(RAN, &[&part.as_str()]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<_, _>>()?)
}

/// Runs a migration that has not run, and records it in the same transaction; tells whether it had not.
pub(crate) async fn run(database: &Database, part: Part, migration: &Migration) -> Result<bool> {
    database.attempts("setup", || run_once(database, part, migration)).await
}

async fn run_once(database: &Database, part: Part, migration: &Migration) -> Worked<bool> {
    // Of several that set up at once one goes first. The lock is this transaction's, so a pooler is no matter.
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    let name = database.schema.as_str();
    let mut session = database.session("setup").await?;
    session.begin(LOCK, &[&format!("flare setup {name}")]).await?;
    session.script(&format!("CREATE SCHEMA IF NOT EXISTS {name}")).await?;
    session.script(&database.schema.text(BASE)).await?;
    if numbers(&mut session, part).await?.contains(&migration.number) {
        session.roll_back().await?;
        return Ok(false);
    }
    session.script(&database.schema.text(migration.sql)).await?;
    session.finish(RECORD, &[&part.as_str(), &migration.number, &migration.about]).await?;
    Ok(true)
}
