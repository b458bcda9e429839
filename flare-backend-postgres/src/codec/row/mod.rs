//! Takes rows' records; gives rows, and what a write stores of them.

mod write;

use flare_core::model::{
    Claim, ClaimId, DeadLetter, DocumentKey, Present, Round, Row, Spread, SubscriptionId, Version,
};

use super::{
    Decoded, check_needs, damaged, read_count, read_epoch, read_generation, read_small, read_time,
    version,
};
use tokio_postgres::Row as Record;
use uuid::Uuid;
pub(crate) use write::Columns;

pub(crate) const WANTED_GONE: i16 = 1;
pub(crate) const SETTLED_GONE: i16 = 2;
const GIVEN_UP_GONE: i16 = 4;
const ATTEMPTED_GONE: i16 = 8;
const PRESENT: u32 = 4;
const LARGEST_STATE: i16 = 15 + (2 << PRESENT);

/// A record as it is.
#[derive(Debug)]
pub(crate) struct StoredRow {
    state: i16,
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
    demanded: bool,
    claim: Option<Uuid>,
    claim_until: Option<i64>,
    claim_held: Option<i16>,
    needs: Option<i32>,
    dead: Option<String>,
}

impl StoredRow {
    /// Reads `state, wanted, settled, due, since, generation, epoch, given_up, attempted, attempts,
    /// first_failure, round, not_before, demanded, claim, claim_until, claim_held, needs` and the dead letter,
    /// after `first` other columns.
    pub(crate) fn of(row: &Record, first: usize) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            state: row.try_get(first)?,
            wanted: row.try_get(first + 1)?,
            settled: row.try_get(first + 2)?,
            due: row.try_get(first + 3)?,
            since: row.try_get(first + 4)?,
            generation: row.try_get(first + 5)?,
            epoch: row.try_get(first + 6)?,
            given_up: row.try_get(first + 7)?,
            attempted: row.try_get(first + 8)?,
            attempts: row.try_get(first + 9)?,
            first_failure: row.try_get(first + 10)?,
            round: row.try_get(first + 11)?,
            not_before: row.try_get(first + 12)?,
            demanded: row.try_get(first + 13)?,
            claim: row.try_get(first + 14)?,
            claim_until: row.try_get(first + 15)?,
            claim_held: row.try_get(first + 16)?,
            needs: row.try_get(first + 17)?,
            dead: row.try_get(first + 18)?,
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
        let versioned = |revision: Option<i64>, gone: i16| {
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
        row.demanded = self.demanded;
        row.due = read_time(self.due);
        row.epoch = read_epoch(self.epoch)?;
        row.attempts = read_small(self.attempts, "attempts")?;
        row.first_failure = self.first_failure.map(read_time);
        row.claim = match (self.claim, self.claim_until, self.claim_held) {
            (Some(id), Some(until), Some(held)) => {
                let id = ClaimId::from_bytes(id.into_bytes());
                let held = read_present(held, "claim_held")?;
                Some(Claim { id, until: read_time(until), held })
            }
            _ => None,
        };
        row.dead = self.dead.as_deref().map(read_dead).transpose()?;
        Ok(row)
    }
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
pub(crate) fn present(present: Present) -> i16 {
    match present {
        Present::No => 0,
        Present::Maybe => 1,
        Present::Yes => 2,
    }
}

fn read_present(number: i16, column: &str) -> Decoded<Present> {
    match number {
        0 => Ok(Present::No),
        1 => Ok(Present::Maybe),
        2 => Ok(Present::Yes),
        _ => Err(damaged(column)),
    }
}
