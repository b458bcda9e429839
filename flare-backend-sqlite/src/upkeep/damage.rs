//! Takes what SQLite finds wrong with a file; gives the indexes that can be built again, or the refusal of what
//! cannot be put right from here.

use std::collections::BTreeSet;

use flare_core::port::Step;
use flare_core::{Error, ErrorKind};
use rusqlite::{Connection, OptionalExtension};

use super::Opened;
use crate::error;
use crate::fault::Worked;
use crate::file::Place;

/// Findings that are asked for, and shown.
const FINDINGS: usize = 100;
const SHOWN: usize = 3;

/// The indexes that can be built again from their tables.
const INDEXES: [&str; 24] = [
    "resources_endpoint",
    "subscriptions_members",
    "subscriptions_slots",
    "subscriptions_placed",
    "subscriptions_list",
    "subscription_urls_of",
    "documents_hash",
    "documents_undispatched",
    "documents_tombstones",
    "rows_of",
    "rows_pending",
    "rows_demanded",
    "dead_letters_list",
    "dead_letters_ids",
    "dead_letters_deaths",
    "jobs_subject",
    "jobs_due",
    "messages_at",
    "messages_key",
    "messages_holder",
    "lease_keys_of",
    "rejects_ids",
    "rejects_list",
    "audit_subjects",
];

fn step(index: &str) -> Step {
    Step::update(format!("index {index}"), "it is damaged: it is built again from its table")
}

/// The index that a step builds again.
pub(super) fn index_of(taken: &Step) -> Option<&'static str> {
    INDEXES.into_iter().find(|index| step(index).id == taken.id)
}

impl Opened<'_> {
    /// What is damaged and can be put right; an error if something cannot be.
    pub(super) fn damaged(&self) -> Worked<Vec<Step>> {
        let mut indexes = BTreeSet::new();
        let mut others = Vec::new();
        for finding in findings(&self.connection)? {
            match index_in(&self.connection, &finding)? {
                Some(index) => drop(indexes.insert(index)),
                None => others.push(finding),
            }
        }
        if others.is_empty() {
            return Ok(indexes.into_iter().map(step).collect());
        }
        Err(beyond_repair(&self.place, &others).into())
    }

    /// Builds an index again, if it is still damaged; tells whether it was.
    pub(super) fn reindex(&mut self, index: &'static str) -> Worked<bool> {
        let damaged = self.damaged()?;
        if !damaged.iter().any(|step| index_of(step) == Some(index)) {
            return Ok(false);
        }
        self.connection.execute_batch(&format!("REINDEX {index}"))?;
        Ok(true)
    }
}

/// What is wrong with a file, in SQLite's words.
pub(super) fn findings(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({FINDINGS})"))?;
    let found = check.query_map([], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = found.collect::<rusqlite::Result<_>>()?;
    Ok(found.into_iter().filter(|finding| finding != "ok").collect())
}

/// The index that a finding is about, if it is about one alone.
fn index_in(connection: &Connection, finding: &str) -> rusqlite::Result<Option<&'static str>> {
    let known = |name: &str| INDEXES.into_iter().find(|index| *index == name);
    if let Some(index) = finding.split([' ', ':']).find_map(known) {
        return Ok(Some(index));
    }
    // "Tree 17 page 31 cell 2: …" names the page that the tree begins at.
    let Some(root) = finding.strip_prefix("Tree ").and_then(|rest| rest.split(' ').next()) else {
        return Ok(None);
    };
    let mut find = connection
        .prepare_cached("SELECT name FROM sqlite_schema WHERE type = 'index' AND rootpage = ?1")?;
    let name: Option<String> = find.query_row([root], |row| row.get(0)).optional()?;
    Ok(name.as_deref().and_then(known))
}

fn beyond_repair(place: &Place, findings: &[String]) -> Error {
    let shown: Vec<&str> = findings.iter().take(SHOWN).map(String::as_str).collect();
    let more = findings.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let detail = format!(
        "{} is damaged beyond what can be built again ({}{more}): restore a backup, or save what can be \
         read with `sqlite3 FILE .recover`",
        place.path().display(),
        shown.join("; ")
    );
    error::of(ErrorKind::Corrupt, "plan", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_of_the_schema_can_be_built_again() {
        let mut new = Connection::open_in_memory().unwrap();
        crate::schema::migrate(&mut new, crate::schema::MIGRATIONS).unwrap();
        let mut list = new
            .prepare(
                "SELECT name, rootpage FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
            )
            .unwrap();
        let found = list.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut found: Vec<(String, i64)> = found.map(Result::unwrap).collect();
        found.sort();
        let mut known = INDEXES.to_vec();
        known.sort_unstable();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, known);
        for (name, root) in &found {
            let known = index_of(&step(name)).unwrap();
            let said = [
                format!("wrong # of entries in index {name}"),
                format!("row 3 missing from index {name}"),
                format!("Tree {root} page 31 cell 2: Rowid 7 out of order"),
            ];
            for finding in said {
                assert_eq!(index_in(&new, &finding).unwrap(), Some(known), "{finding}");
            }
        }
        for other in
            ["Tree 2 page 2: btreeInitPage() returns error code 11", "Page 9 is never used"]
        {
            assert_eq!(index_in(&new, other).unwrap(), None);
        }
        assert_eq!(index_of(&Step::update("index of_somebody_else", "")), None);
    }
}
