//! Takes rows' records; gives rows, and what a write stores of them.

mod write;

use flare_core::model::{
    Claim, ClaimId, DeadLetter, DocumentKey, Present, Round, Row, RowKey, Spread, SubscriptionId,
    Version,
};

use super::{
    Decoded, check_needs, damaged, read_count, read_epoch, read_flag, read_generation, read_id,
    read_small, read_time, version,
};
pub(crate) use write::{INSERT, RESTART, SETTLE, Settled, UPDATE, insert, restart, settle, update};

/// What is read of a record; [`StoredRow::of`] takes it from these columns, after as many as it is told.
pub(crate) const COLUMNS: &str = "r.state, r.wanted, r.settled, r.due, r.since, r.generation, r.epoch, \
     r.given_up, r.attempted, r.attempts, r.first_failure, r.round, r.not_before, r.demanded, r.claim, \
     r.claim_until, r.claim_held, r.needs, CASE r.dead WHEN 1 THEN (SELECT l.record FROM dead_letters l \
     WHERE l.subscription = r.subscription AND l.document = r.document) END";

const WANTED_GONE: i64 = 1;
const SETTLED_GONE: i64 = 2;
const GIVEN_UP_GONE: i64 = 4;
const ATTEMPTED_GONE: i64 = 8;
const PRESENT: u32 = 4;
const LARGEST_STATE: i64 = 15 + (2 << PRESENT);

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredRow {
    state: i64,
    wanted: i64,
    settled: Option<i64>,
    due: i64,
    since: i64,
    generation: i64,
    epoch: i64,
    given_up: Option<i64>,
    attempted: Option<i64>,
    attempts: i64,
    first_failure: Option<i64>,
    round: i64,
    not_before: Option<i64>,
    demanded: i64,
    claim: Option<Vec<u8>>,
    claim_until: Option<i64>,
    claim_held: Option<i64>,
    needs: Option<i64>,
    dead: Option<String>,
}

impl StoredRow {
    /// Reads [`COLUMNS`], after `first` others.
    pub(crate) fn of(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            state: row.get(first)?,
            wanted: row.get(first + 1)?,
            settled: row.get(first + 2)?,
            due: row.get(first + 3)?,
            since: row.get(first + 4)?,
            generation: row.get(first + 5)?,
            epoch: row.get(first + 6)?,
            given_up: row.get(first + 7)?,
            attempted: row.get(first + 8)?,
            attempts: row.get(first + 9)?,
            first_failure: row.get(first + 10)?,
            round: row.get(first + 11)?,
            not_before: row.get(first + 12)?,
            demanded: row.get(first + 13)?,
            claim: row.get(first + 14)?,
            claim_until: row.get(first + 15)?,
            claim_held: row.get(first + 16)?,
            needs: row.get(first + 17)?,
            dead: row.get(first + 18)?,
        })
    }

    /// The newest version spread to it, whatever else it needs.
    pub(crate) fn wanted(&self) -> Version {
        version(self.wanted, self.state & WANTED_GONE != 0)
    }

    /// When it is due, as the file has it.
    pub(crate) fn due(&self) -> i64 {
        self.due
    }

    /// The row of a subscription for a document, if this version knows all of it.
    pub(crate) fn row(&self, subscription: SubscriptionId, document: &DocumentKey) -> Decoded<Row> {
        check_needs(self.needs)?;
        self.known(subscription, document)
    }

    /// What this version knows of the row.
    pub(crate) fn known(
        &self,
        subscription: SubscriptionId,
        document: &DocumentKey,
    ) -> Decoded<Row> {
        if !(0..=LARGEST_STATE).contains(&self.state) {
            return Err(damaged("state"));
        }
        let versioned = |revision: Option<i64>, gone: i64| {
            revision.map(|revision| version(revision, self.state & gone != 0))
        };
        let generation = read_generation(self.generation)?;
        let spread = Spread::new(subscription, generation, document.clone(), self.wanted());
        let mut row = Row::new(&spread, read_time(self.since));
        row.settled = versioned(self.settled, SETTLED_GONE);
        row.given_up = versioned(self.given_up, GIVEN_UP_GONE);
        row.attempted = versioned(self.attempted, ATTEMPTED_GONE);
        row.present = read_present(self.state >> PRESENT, "state")?;
        row.round = Round::new(read_count(self.round, "round")?);
        row.not_before = self.not_before.map(read_time);
        row.demanded = read_flag(self.demanded, "demanded")?;
        row.due = read_time(self.due);
        row.epoch = read_epoch(self.epoch)?;
        row.attempts = read_small(self.attempts, "attempts")?;
        row.first_failure = self.first_failure.map(read_time);
        row.claim = match (&self.claim, self.claim_until, self.claim_held) {
            (Some(id), Some(until), Some(held)) => {
                let id = ClaimId::from_bytes(read_id(id, "claim")?);
                let held = read_present(held, "claim_held")?;
                Some(Claim { id, until: read_time(until), held })
            }
            _ => None,
        };
        row.dead = self.dead.as_deref().map(read_dead).transpose()?;
        Ok(row)
    }
}

/// What is kept of a notification that was given up, as JSON.
pub(crate) fn dead(dead: &DeadLetter) -> serde_json::Result<String> {
    serde_json::to_string(dead)
}

fn read_dead(text: &str) -> Decoded<DeadLetter> {
    serde_json::from_str(text).map_err(|_| damaged("dead letter"))
}

/// Where a row is: its subscription's number and its document's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowPlace {
    pub(crate) subscription: i64,
    pub(crate) document: i64,
}

/// What a client holds, as a number.
fn present(present: Present) -> i64 {
    match present {
        Present::No => 0,
        Present::Maybe => 1,
        Present::Yes => 2,
    }
}

fn read_present(number: i64, column: &str) -> Decoded<Present> {
    match number {
        0 => Ok(Present::No),
        1 => Ok(Present::Maybe),
        2 => Ok(Present::Yes),
        _ => Err(damaged(column)),
    }
}

/// The key of a row, which names it.
pub(crate) fn key(subscription: SubscriptionId, document: &DocumentKey) -> RowKey {
    RowKey::new(subscription, document.url.clone())
}
