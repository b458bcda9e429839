//! Takes a row; gives it in as few bytes as it needs, and back. What only troubled rows have is
//! behind a pointer.

use flare_core::model::{
    Claim, DeadLetter, DocumentKey, Epoch, Generation, Present, Revision, Round, Row, Spread,
    SubscriptionId, Timestamp, Version,
};

/// A row without its key. There may be millions of them.
#[derive(Debug)]
pub(super) struct CompactRow {
    wanted: i64,
    settled: i64,
    generation: Generation,
    due: Timestamp,
    since: Timestamp,
    epoch: Epoch,
    trouble: Option<Box<Trouble>>,
    flags: Flags,
}

#[derive(Debug, Clone, Copy)]
struct Flags {
    wanted_gone: bool,
    settled: Settled,
    present: Present,
}

#[derive(Debug, Clone, Copy)]
enum Settled {
    Never,
    Live,
    Gone,
}

/// What few rows have: something went wrong with it, a puller holds it or asked for it, somebody had
/// it told anew, or its client wants some time between two changes.
#[derive(Debug, Default, PartialEq)]
struct Trouble {
    given_up: Option<Version>,
    dead: Option<DeadLetter>,
    attempts: u32,
    attempted: Option<Version>,
    first_failure: Option<Timestamp>,
    claim: Option<Claim>,
    round: Round,
    not_before: Option<Timestamp>,
    demanded: bool,
}

impl CompactRow {
    pub(super) fn pack(row: Row) -> Self {
        let settled = match row.settled {
            None => Settled::Never,
            Some(version) if version.is_gone() => Settled::Gone,
            Some(_) => Settled::Live,
        };
        let trouble = Trouble {
            given_up: row.given_up,
            dead: row.dead,
            attempts: row.attempts,
            attempted: row.attempted,
            first_failure: row.first_failure,
            claim: row.claim,
            round: row.round,
            not_before: row.not_before,
            demanded: row.demanded,
        };
        Self {
            wanted: row.wanted.revision().get(),
            settled: row.settled.map_or(0, |version| version.revision().get()),
            generation: row.generation,
            due: row.due,
            since: row.since,
            epoch: row.epoch,
            trouble: (trouble != Trouble::default()).then(|| Box::new(trouble)),
            flags: Flags { wanted_gone: row.wanted.is_gone(), settled, present: row.present },
        }
    }

    pub(super) fn unpack(&self, subscription: SubscriptionId, document: DocumentKey) -> Row {
        let wanted = version(self.wanted, self.flags.wanted_gone);
        let spread = Spread::new(subscription, self.generation, document, wanted);
        let mut row = Row::new(&spread, self.since);
        row.settled = match self.flags.settled {
            Settled::Never => None,
            Settled::Live => Some(version(self.settled, false)),
            Settled::Gone => Some(version(self.settled, true)),
        };
        row.due = self.due;
        row.epoch = self.epoch;
        row.present = self.flags.present;
        if let Some(trouble) = &self.trouble {
            row.given_up = trouble.given_up;
            row.dead = trouble.dead.clone();
            row.attempts = trouble.attempts;
            row.attempted = trouble.attempted;
            row.first_failure = trouble.first_failure;
            row.claim = trouble.claim;
            row.round = trouble.round;
            row.not_before = trouble.not_before;
            row.demanded = trouble.demanded;
        }
        row
    }

    pub(super) fn since(&self) -> Timestamp {
        self.since
    }
}

fn version(revision: i64, gone: bool) -> Version {
    let revision = Revision::new(revision);
    if gone { Version::gone(revision) } else { Version::live(revision) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_trouble_takes_64_bytes() {
        assert!(size_of::<CompactRow>() <= 64, "{}", size_of::<CompactRow>());
    }
}
