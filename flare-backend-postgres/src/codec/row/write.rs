//! Takes rows as they are to be stored; gives them column by column, as one statement stores them all.

use flare_core::model::{Row, Version};
use uuid::Uuid;

use super::{ATTEMPTED_GONE, GIVEN_UP_GONE, PRESENT, RowPlace, SETTLED_GONE, WANTED_GONE, present};
use crate::codec::{count, id, time};
use crate::connection::Value;

/// Rows, column by column.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    subscription: Vec<i64>,
    document: Vec<i64>,
    bucket: Vec<i32>,
    pending: Vec<bool>,
    state: Vec<i16>,
    wanted: Vec<i64>,
    settled: Vec<Option<i64>>,
    due: Vec<i64>,
    since: Vec<i64>,
    generation: Vec<i64>,
    epoch: Vec<i64>,
    given_up: Vec<Option<i64>>,
    attempted: Vec<Option<i64>>,
    attempts: Vec<i64>,
    first_failure: Vec<Option<i64>>,
    round: Vec<i64>,
    not_before: Vec<Option<i64>>,
    demanded: Vec<bool>,
    claim: Vec<Option<Uuid>>,
    claim_until: Vec<Option<i64>>,
    claim_held: Vec<Option<i16>>,
    dead: Vec<Option<String>>,
    dead_id: Vec<Option<Uuid>>,
    died: Vec<Option<i64>>,
}

impl Columns {
    pub(crate) fn is_empty(&self) -> bool {
        self.subscription.is_empty()
    }

    /// Adds a row that is at a place.
    pub(crate) fn push(&mut self, place: RowPlace, row: &Row) -> serde_json::Result<()> {
        let dead = row.dead.as_ref();
        self.dead.push(dead.map(serde_json::to_string).transpose()?);
        self.dead_id.push(dead.map(|dead| id(dead.id.as_bytes())));
        self.died.push(dead.map(|dead| time(dead.died_at)));
        let revision = |version: Option<Version>| version.map(|version| version.revision().get());
        let claim = row.claim.as_ref();
        self.subscription.push(place.subscription);
        self.document.push(place.document);
        self.bucket.push(row.bucket().number().into());
        self.pending.push(row.is_pending());
        self.state.push(state(row));
        self.wanted.push(row.wanted.revision().get());
        self.settled.push(revision(row.settled));
        self.due.push(time(row.due));
        self.since.push(time(row.since));
        self.generation.push(count(row.generation.get()));
        self.epoch.push(count(row.epoch.get()));
        self.given_up.push(revision(row.given_up));
        self.attempted.push(revision(row.attempted));
        self.attempts.push(row.attempts.into());
        self.first_failure.push(row.first_failure.map(time));
        self.round.push(count(row.round.get()));
        self.not_before.push(row.not_before.map(time));
        self.demanded.push(row.demanded);
        self.claim.push(claim.map(|claim| id(claim.id.as_bytes())));
        self.claim_until.push(claim.map(|claim| time(claim.until)));
        self.claim_held.push(claim.map(|claim| present(claim.held)));
        Ok(())
    }

    /// All of them, in the order of the statements that store them.
    pub(crate) fn values(&self) -> [&dyn Value; 24] {
        [
            &self.subscription,
            &self.document,
            &self.bucket,
            &self.pending,
            &self.state,
            &self.wanted,
            &self.settled,
            &self.due,
            &self.since,
            &self.generation,
            &self.epoch,
            &self.given_up,
            &self.attempted,
            &self.attempts,
            &self.first_failure,
            &self.round,
            &self.not_before,
            &self.demanded,
            &self.claim,
            &self.claim_until,
            &self.claim_held,
            &self.dead,
            &self.dead_id,
            &self.died,
        ]
    }
}

/// Which of a row's versions are gone, and what the client holds.
fn state(row: &Row) -> i16 {
    let gone = |version: Option<Version>, bit: i16| match version {
        Some(version) if version.is_gone() => bit,
        _ => 0,
    };
    gone(Some(row.wanted), WANTED_GONE)
        | gone(row.settled, SETTLED_GONE)
        | gone(row.given_up, GIVEN_UP_GONE)
        | gone(row.attempted, ATTEMPTED_GONE)
        | (present(row.present) << PRESENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the statements have for the bits.
    #[test]
    fn the_bits_are_those_of_the_statements() {
        assert_eq!(WANTED_GONE | ATTEMPTED_GONE, 9);
        assert_eq!((SETTLED_GONE, GIVEN_UP_GONE, PRESENT), (2, 4, 4));
        assert_eq!(SETTLED_GONE | ATTEMPTED_GONE | (3 << PRESENT), 58);
        assert_eq!(super::super::LARGEST_STATE, 47);
    }
}
