//! Takes the tables, indexes and views that a file should have, as a new one has them; gives those that are
//! missing or different, and makes them again.

use std::collections::BTreeMap;

use flare_core::port::Step;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::Opened;
use crate::fault::Worked;
use crate::schema;

/// Something that a file has by its schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    kind: Kind,
    name: String,
}

/// In the order in which they can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Table,
    Index,
    View,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Table, Self::Index, Self::View];

    fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Index => "index",
            Self::View => "view",
        }
    }
}

impl Shape {
    fn new_step(&self) -> Step {
        Step::create(format!("{} {}", self.kind.as_str(), self.name), "it is missing")
    }

    /// The step for one that is there and is like `found`.
    fn other_step(&self, found: &str) -> Step {
        let subject = format!("{} {}", self.kind.as_str(), self.name);
        Step::update(subject, "it is not as it should be").planned_from(one_line(found))
    }

    /// What a step makes again, if it is one that could have been planned.
    pub(super) fn of_step(step: &Step) -> Option<Self> {
        let wanted = wanted().ok()?;
        let made = |shape: &&Self| {
            let update = format!("update {} {}, from ", shape.kind.as_str(), shape.name);
            let replaceable = shape.kind != Kind::Table && step.id.starts_with(&update);
            step.id == shape.new_step().id || replaceable
        };
        wanted.keys().find(made).cloned()
    }
}

fn one_line(sql: &str) -> String {
    sql.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All that a new file has, with how it is made.
fn wanted() -> rusqlite::Result<BTreeMap<Shape, String>> {
    let mut new = Connection::open_in_memory()?;
    schema::migrate(&mut new, schema::MIGRATIONS)?;
    shapes(&new)
}

/// All that a file has.
fn shapes(connection: &Connection) -> rusqlite::Result<BTreeMap<Shape, String>> {
    let mut found = BTreeMap::new();
    for kind in Kind::ALL {
        let mut list = connection.prepare(
            "SELECT name, sql FROM sqlite_schema WHERE type = ?1 AND sql IS NOT NULL \
             AND name NOT LIKE 'sqlite_%'",
        )?;
        let rows = list.query_map([kind.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            let (name, sql) = row?;
            found.insert(Shape { kind, name }, sql);
        }
    }
    Ok(found)
}

impl Opened<'_> {
    /// What is missing, and which indexes and views are different. A table that is different has a newer
    /// version's columns: it is left alone.
    pub(super) fn misshapen(&self) -> Worked<Vec<Step>> {
        let there = shapes(&self.connection)?;
        let step = |(shape, sql): (&Shape, &String)| match there.get(shape) {
            None => Some(shape.new_step()),
            Some(found) if shape.kind != Kind::Table && one_line(found) != one_line(sql) => {
                Some(shape.other_step(found))
            }
            Some(_) => None,
        };
        Ok(wanted()?.iter().filter_map(step).collect())
    }

    /// Makes one again that is still as the step was planned from; tells whether it was.
    pub(super) fn reshape(&mut self, shape: &Shape, step: &Step) -> Worked<bool> {
        let wanted = wanted()?;
        let Some(sql) = wanted.get(shape) else { return Ok(false) };
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let found: Option<String> = transaction
            .query_row(
                "SELECT sql FROM sqlite_schema WHERE type = ?1 AND name = ?2",
                [shape.kind.as_str(), &shape.name],
                |row| row.get(0),
            )
            .optional()?;
        let planned = match &found {
            None => shape.new_step(),
            Some(found) => shape.other_step(found),
        };
        if planned.id != step.id {
            return Ok(false);
        }
        if found.is_some() {
            transaction.execute_batch(&format!("DROP {} {}", shape.kind.as_str(), shape.name))?;
        }
        transaction.execute_batch(sql)?;
        transaction.commit()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_a_new_file_has_can_be_made_again() {
        let wanted = wanted().unwrap();
        assert!(wanted.len() > 30, "{}", wanted.len());
        for shape in wanted.keys() {
            assert_eq!(Shape::of_step(&shape.new_step()).as_ref(), Some(shape));
            let other = Shape::of_step(&shape.other_step("CREATE  something\n else"));
            assert_eq!(other.is_some(), shape.kind != Kind::Table, "{shape:?}");
        }
        assert_eq!(Shape::of_step(&Step::create("table strangers", "")), None);
        assert_eq!(Shape::of_step(&Step::delete("table rows", "")), None);
    }
}
