//! Takes the indexes and single records that a part should have, as its migrations make them; gives those that
//! are missing, and makes them again. A table that is missing took its records along: that is for a backup.

use flare_core::Result;
use flare_core::port::{Part, Step};

use super::PostgresUpkeep;
use crate::connection::Session;
use crate::fault::Worked;
use crate::schema::of_part;

/// Something that a part has by its migrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    kind: Kind,
    name: &'static str,
    /// How it is made.
    sql: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Index,
    /// The only record of a table.
    Record,
}

/// The record of what there is one of. Epochs and the count of changes go on above all that was ever given.
const STORE: &str = "INSERT INTO flare.store (one, epoch, catalogue) SELECT true, greatest(0, \
     (SELECT max(epoch) FROM flare.rows), (SELECT max(epoch) FROM flare.lanes), \
     (SELECT max(epoch) FROM flare.jobs), (SELECT max(epoch) FROM flare.consumers), \
     (SELECT max(least_epoch) FROM flare.subscriptions)) + 1000000, flare.now()";

/// The record of how far the history of keys is. Whoever watched it lists again.
const HISTORY: &str = "INSERT INTO flare.lease_history (one, revision, forgotten) SELECT true, n, n \
     FROM (SELECT greatest(0, (SELECT max(revision) FROM flare.lease_events), \
         (SELECT max(revision) FROM flare.lease_keys)) + 1000000 AS n) h";

impl Shape {
    /// All that a part has, read from its migrations.
    fn all(part: Part) -> Vec<Self> {
        let statements = of_part(part).iter().flat_map(|migration| migration.sql.split(";\n"));
        let mut shapes: Vec<Self> = Vec::new();
        for sql in statements {
            // A later version may do without what an earlier one made.
            let dropped = sql.lines().find_map(|line| line.strip_prefix("DROP INDEX "));
            for name in dropped.into_iter().flat_map(|names| names.split(", ")) {
                let name = name.strip_prefix("flare.").unwrap_or(name);
                shapes.retain(|shape| shape.name != name);
            }
            shapes.extend(Self::of_statement(sql));
        }
        shapes
    }

    fn of_statement(sql: &'static str) -> Option<Self> {
        // Comments stand on lines of their own, before what they are about.
        let start = sql.lines().find(|line| !line.is_empty() && !line.starts_with("--"))?;
        // What is indented is within a function.
        if start.starts_with(' ') {
            return None;
        }
        let sql = &sql[sql.find(start)?..];
        let mut words = start.split_whitespace();
        let kind = match (words.next()?, words.next()?) {
            ("CREATE", "INDEX") => Kind::Index,
            ("CREATE", "UNIQUE") if words.next() == Some("INDEX") => Kind::Index,
            ("INSERT", "INTO") => Kind::Record,
            _ => return None,
        };
        let name = words.next()?;
        let name = name.strip_prefix("flare.").unwrap_or(name);
        let sql = match name {
            "store" => STORE,
            "lease_history" => HISTORY,
            _ => sql,
        };
        Some(Self { kind, name, sql })
    }

    fn step(&self) -> Step {
        let what = match self.kind {
            Kind::Index => "index",
            Kind::Record => "record of",
        };
        Step::create(format!("{what} {}", self.name), "it is missing")
    }

    /// What a step makes again, if it is one that could have been planned.
    pub(super) fn of_step(part: Part, step: &Step) -> Option<Self> {
        Self::all(part).into_iter().find(|shape| shape.step().id == step.id)
    }

    /// Whether it is there, and good for something.
    async fn is_there(&self, session: &mut Session<'_>, schema: &str) -> Worked<bool> {
        const INDEX: &str = "SELECT 1 FROM pg_catalog.pg_index x \
             JOIN pg_catalog.pg_class c ON c.oid = x.indexrelid \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1 AND c.relname = $2 AND x.indisvalid";
        let found = match (self.kind, self.name) {
            (Kind::Index, name) => session.query_opt(INDEX, &[&schema, &name]).await?,
            (Kind::Record, "store") => session.query_opt("SELECT 1 FROM flare.store", &[]).await?,
            (Kind::Record, _) => {
                session.query_opt("SELECT 1 FROM flare.lease_history", &[]).await?
            }
        };
        Ok(found.is_some())
    }
}

impl PostgresUpkeep {
    /// What is missing.
    pub(super) async fn misshapen(&self) -> Result<Vec<Step>> {
        self.database.attempts("plan", || self.look_at_shapes()).await
    }

    async fn look_at_shapes(&self) -> Worked<Vec<Step>> {
        let mut session = self.database.session("plan").await?;
        let mut steps = Vec::new();
        for shape in Shape::all(self.part) {
            if !shape.is_there(&mut session, self.database.schema.as_str()).await? {
                steps.push(shape.step());
            }
        }
        Ok(steps)
    }

    /// Makes one again that is missing; tells whether it was. Whoever writes to the table of an index waits
    /// until it is built.
    pub(super) async fn reshape(&self, shape: &Shape) -> Result<bool> {
        self.database.patiently("apply", || self.make_again(shape)).await
    }

    async fn make_again(&self, shape: &Shape) -> Worked<bool> {
        const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        let schema = self.database.schema.as_str();
        let mut session = self.database.session("apply").await?;
        session.begin(LOCK, &[&format!("flare setup {schema}")]).await?;
        if shape.is_there(&mut session, schema).await? {
            session.roll_back().await?;
            return Ok(false);
        }
        session.script("SET LOCAL statement_timeout = 0").await?;
        if shape.kind == Kind::Index {
            // One whose building was broken off is there, and good for nothing.
            session.script(&format!("DROP INDEX IF EXISTS {schema}.{}", shape.name)).await?;
        }
        session.script(&self.database.schema.text(shape.sql)).await?;
        session.commit().await?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_part_has_can_be_made_again() {
        let names = |part| Shape::all(part).iter().map(|shape| shape.name).collect::<Vec<_>>();
        let repository = names(Part::Repository);
        for name in [
            "store",
            "rows_pending",
            "tombstones_updated",
            "resources_endpoint",
            "consumer_rejects_rejected",
            "audit_subjects",
        ] {
            assert!(repository.contains(&name), "{name} in {repository:?}");
        }
        assert_eq!(names(Part::Queue), ["messages_at", "messages_key"]);
        assert_eq!(names(Part::Lease), ["lease_history", "lease_keys_of"]);
        for part in Part::ALL {
            for shape in Shape::all(part) {
                assert_eq!(Shape::of_step(part, &shape.step()), Some(shape));
            }
        }
        assert_eq!(Shape::of_step(Part::Queue, &Step::create("index strangers", "")), None);
    }
}
