//! Takes how far a database is; gives a step per migration that it lacks, and runs them.

use flare_core::Result;
use flare_core::port::Step;

use super::MongoUpkeep;
use crate::schema::{Area, Migration, SchemaState, migrate};

fn step(area: Area, migration: &Migration, standing: Option<SchemaState>) -> Step {
    let number = migration.number;
    let reason = match standing {
        Some(SchemaState::Begun { to, .. }) if to == i64::from(number) => {
            format!("{}; it was begun and not finished", migration.about)
        }
        _ => migration.about.to_owned(),
    };
    Step::update(format!("schema of the {} to version {number}", area.name()), reason)
        .planned_from(format_args!("version {}", number - 1))
}

impl MongoUpkeep {
    /// The migrations that have not run, in their order.
    pub(super) fn outstanding(&self, standing: SchemaState) -> impl Iterator<Item = Step> {
        let version = standing.version(self.migrations);
        let missing = self.migrations.iter().filter(move |it| i64::from(it.number) > version);
        missing.map(move |migration| step(self.area, migration, Some(standing)))
    }

    pub(super) fn migration_of(&self, planned: &Step) -> Option<&'static Migration> {
        self.migrations.iter().find(|it| step(self.area, it, None).id == planned.id)
    }

    /// Runs a migration, if the database is at the version before it.
    pub(super) async fn migrate_to(&self, number: i32) -> Result<bool> {
        match self.migrations.iter().find(|it| it.number == number) {
            Some(migration) => migrate(&self.connection, self.area, migration).await,
            None => Ok(false),
        }
    }
}
