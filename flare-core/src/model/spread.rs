//! What is wanted of the row of one (subscription, document), and why: a change, a backfill or a
//! resync. Values; what each does to a row is [`Row::spread`](super::Row::spread).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{DocumentKey, Generation, RowKey, SubscriptionId, Version};

/// Which telling of a row's versions this is. A backfill or resync that has a row told anew raises it,
/// so that the outcome of an earlier telling changes nothing.
///
/// Each job has a number of its own, greater than those of all jobs before it: repeating what it
/// wants of a row changes nothing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Round(u64);

impl Round {
    /// The round of rows that changes alone have made.
    pub const ZERO: Self = Self(0);

    /// The round with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What spread wants of one row. Not fenced: any node may run it, any number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// Who is to be told.
    pub subscription: SubscriptionId,
    /// The subscription's generation as spread read it.
    pub generation: Generation,
    /// About which document.
    pub document: DocumentKey,
    /// Which version it should reach.
    pub wanted: Version,
    /// Why.
    pub cause: SpreadCause,
}

/// Why a row should reach a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadCause {
    /// The document changed.
    Change,
    /// The document changed, and the subscription's filter refuses it: a client that was never told of
    /// it needs no row, so none is made.
    Refused,
    /// The client is to have what it does not hold. A row that rests while the client holds nothing is
    /// told in a new round, unless it is a dead letter.
    Backfill(Round),
    /// The client lost what it had: the row is told in a new round.
    Resync(Round),
    /// The same, of a document that the filter refuses now: no row is made for it.
    ResyncRefused(Round),
}

impl Spread {
    /// A change that a subscription should hear of.
    pub const fn new(
        subscription: SubscriptionId,
        generation: Generation,
        document: DocumentKey,
        wanted: Version,
    ) -> Self {
        Self { subscription, generation, document, wanted, cause: SpreadCause::Change }
    }

    /// The same for another reason.
    #[must_use]
    pub fn because(mut self, cause: SpreadCause) -> Self {
        self.cause = cause;
        self
    }

    /// The row it is about.
    pub fn row_key(&self) -> RowKey {
        RowKey::new(self.subscription, self.document.url.clone())
    }

    /// Whether a row is made where there is none.
    pub const fn makes_row(&self) -> bool {
        !matches!(self.cause, SpreadCause::Refused | SpreadCause::ResyncRefused(_))
    }

    /// The round a row that it makes begins in.
    pub const fn round(&self) -> Round {
        match self.cause {
            SpreadCause::Change | SpreadCause::Refused => Round::ZERO,
            SpreadCause::Backfill(round)
            | SpreadCause::Resync(round)
            | SpreadCause::ResyncRefused(round) => round,
        }
    }
}
