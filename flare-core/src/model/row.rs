//! Takes what spread, the lane's owner, a puller or a replay wants of one row; gives the row as
//! it must be stored. Pure: stores call it inside their atomic write, or say the same in their
//! own language.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    Action, Bucket, ClaimId, DeadLetterId, DocumentKey, DocumentUrl, Present, Round, Spread,
    SpreadCause, SubscriptionId, Timestamp, Version,
};

/// A fence: every effect of a lane's owner carries the owner's epoch, and a store refuses it once
/// the row has seen a greater one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of rows no owner has touched yet: below every epoch that is drawn.
    pub const ZERO: Self = Self(0);

    /// The epoch with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which state of a subscription's settings something was read under; raised by pause, resume
/// and replacement.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(u64);

impl Generation {
    /// The generation with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// What a row is known by. The resource follows from the subscription.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// Who is to be told.
    pub subscription: SubscriptionId,
    /// About which document.
    pub url: DocumentUrl,
}

impl RowKey {
    /// The row of `subscription` for the document at `url`.
    pub fn new(subscription: SubscriptionId, url: DocumentUrl) -> Self {
        Self { subscription, url }
    }
}

/// Why a notification was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DeathReason {
    /// The retry policy's attempts are used up.
    Exhausted,
    /// The subscription's `ttl` has passed.
    Expired,
}

impl DeathReason {
    /// Every reason there is.
    pub const ALL: [Self; 2] = [Self::Exhausted, Self::Expired];

    /// The reason as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::Expired => "expired",
        }
    }
}

/// What is kept of a notification that was given up, until its retention ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeadLetter {
    /// What it is listed and replayed by.
    pub id: DeadLetterId,
    /// What the client would have been told.
    pub action: Action,
    /// Why it was given up.
    pub reason: DeathReason,
    /// How many attempts were made.
    pub attempts: u32,
    /// The last status the client answered, if it answered.
    pub last_status: Option<u16>,
    /// The last error or the beginning of the last answer's body.
    pub last_error: Option<String>,
    /// When the first attempt failed.
    pub first_failure_at: Timestamp,
    /// When it was given up.
    pub died_at: Timestamp,
}

impl DeadLetter {
    /// A dead letter without status and error text.
    pub fn new(id: DeadLetterId, action: Action, reason: DeathReason, died_at: Timestamp) -> Self {
        Self {
            id,
            action,
            reason,
            attempts: 0,
            last_status: None,
            last_error: None,
            first_failure_at: died_at,
            died_at,
        }
    }
}

/// Rows handed to a puller: no other gets them before `until`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Whose claim it is.
    pub id: ClaimId,
    /// When it lapses, by the store's clock.
    pub until: Timestamp,
    /// What the client held when it was made.
    pub held: Present,
}

/// Delivery state of one (subscription, document).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Who is to be told, about what.
    pub key: RowKey,
    /// The document, with its resource.
    pub document: DocumentKey,
    /// The newest version spread to this row.
    pub wanted: Version,
    /// The newest version the client acknowledged or refused, or that needed no telling.
    pub settled: Option<Version>,
    /// The newest version that was given up.
    pub given_up: Option<Version>,
    /// Details of what was given up; gone after retention, settlement or replay.
    pub dead: Option<DeadLetter>,
    /// Whether the client holds the document.
    pub present: Present,
    /// The subscription's generation when the row was last spread.
    pub generation: Generation,
    /// Which telling of its versions this is.
    pub round: Round,
    /// Attempts that count against the policy, for `attempted`.
    pub attempts: u32,
    /// The version of the last failed attempt; newer content starts counting anew.
    pub attempted: Option<Version>,
    /// When the next attempt may be made.
    pub due: Timestamp,
    /// The client wants to be told nothing of this document before then (`delivery.minInterval`).
    pub not_before: Option<Timestamp>,
    /// A client that is told nothing by itself asked for what waits here.
    pub demanded: bool,
    /// When the first attempt at `attempted` failed.
    pub first_failure: Option<Timestamp>,
    /// Since when it is pending, by the store's clock.
    pub since: Timestamp,
    /// The epoch of the last owner that wrote it.
    pub epoch: Epoch,
    /// A puller's claim, if one was made.
    pub claim: Option<Claim>,
}

impl Row {
    /// The row as spread creates it, at store time `now`.
    pub fn new(spread: &Spread, now: Timestamp) -> Self {
        Self {
            key: spread.row_key(),
            document: spread.document.clone(),
            wanted: spread.wanted,
            settled: None,
            given_up: None,
            dead: None,
            present: Present::No,
            generation: spread.generation,
            round: spread.round(),
            attempts: 0,
            attempted: None,
            due: now,
            not_before: None,
            demanded: false,
            first_failure: None,
            since: now,
            epoch: Epoch::ZERO,
            claim: None,
        }
    }

    /// The bucket, and with it the lane, the row belongs to.
    pub fn bucket(&self) -> Bucket {
        self.key.url.bucket()
    }

    /// Whether there is something left to tell: wanted > max(settled, given up).
    pub fn is_pending(&self) -> bool {
        Some(self.wanted) > self.settled.max(self.given_up)
    }

    /// Raises `wanted` and `generation`; a row that becomes pending by it, or is told in a new round,
    /// begins anew.
    pub fn spread(&mut self, spread: &Spread, now: Timestamp) {
        let was_pending = self.is_pending();
        self.wanted = self.wanted.max(spread.wanted);
        self.generation = self.generation.max(spread.generation);
        let renewed = match spread.cause {
            SpreadCause::Change | SpreadCause::Refused => false,
            SpreadCause::Backfill(round) => {
                let rests = !self.is_pending() && self.given_up <= self.settled;
                rests && self.present == Present::No && self.begin_round(round)
            }
            SpreadCause::Resync(round) | SpreadCause::ResyncRefused(round) => {
                let begun = self.begin_round(round);
                if begun {
                    self.present = Present::Maybe;
                }
                begun
            }
        };
        if renewed || !was_pending && self.is_pending() {
            // What was asked for already may be on its way: a puller that had it now would have it twice.
            let demanded = was_pending && self.demanded;
            self.start_afresh(now);
            self.demanded = demanded;
        }
    }

    /// Has everything told anew; tells whether that was not done yet. The puller that holds the row keeps it.
    fn begin_round(&mut self, round: Round) -> bool {
        if self.round >= round {
            return false;
        }
        self.round = round;
        self.settled = None;
        self.given_up = None;
        self.dead = None;
        true
    }

    /// Applies an effect of the lane's owner on what it told in `round`, fenced by its epoch.
    pub fn apply(&mut self, epoch: Epoch, round: Round, effect: RowEffect) -> Applied {
        if self.epoch > epoch {
            return Applied::Fenced { epoch: self.epoch };
        }
        if self.round != round || self.settled >= Some(effect.version()) {
            return Applied::Overtaken;
        }
        // What was given up later stays on the list, with its own details.
        if matches!(effect, RowEffect::GiveUp { version, .. } if self.given_up > Some(version)) {
            return Applied::Overtaken;
        }
        self.epoch = epoch;
        self.take(effect);
        Applied::Done
    }

    /// Whether a puller may have it at `now`: pending, due, no other puller's, and not asked for by demand.
    pub fn is_claimable(&self, now: Timestamp) -> bool {
        self.is_waiting(now) && !self.demanded
    }

    /// Hands the row to a puller. It is due when the claim lapses, and the client may hold what it is
    /// handed from now on.
    pub fn claim(&mut self, id: ClaimId, until: Timestamp) {
        self.claim = Some(Claim { id, until, held: self.present });
        self.due = until;
        if self.present == Present::No {
            self.present = Present::Maybe;
        }
    }

    /// Marks a row that waits at `now` as asked for by the client; tells whether it was not before.
    pub fn demand(&mut self, now: Timestamp) -> bool {
        let marked = self.is_claimable(now);
        self.demanded |= marked;
        marked
    }

    fn is_waiting(&self, now: Timestamp) -> bool {
        self.is_pending() && self.due <= now && !self.is_claimed(now)
    }

    /// Whether a puller has it at `now`.
    pub fn is_claimed(&self, now: Timestamp) -> bool {
        self.claim.is_some_and(|held| held.until > now)
    }

    /// Applies what the holder of a claim settles of what it was handed in `round`, as long as the
    /// claim holds at `now`. The claim ends with it.
    ///
    /// What is handed back stays as the claim made it: the client may hold it. It has seen it, and a lane that was
    /// lost before the claim may have stored the same meanwhile for a reason of its own, which a return of `no` would
    /// overwrite. What a client is told is truthful either way: a `create` in both cases; only a deletion is told
    /// rather than kept quiet.
    pub fn apply_claimed(
        &mut self,
        claim: ClaimId,
        round: Round,
        effect: ClaimEffect,
        now: Timestamp,
    ) -> Applied {
        match self.claim {
            Some(held) if held.id == claim && held.until > now => {}
            _ => return Applied::Expired,
        }
        self.claim = None;
        self.due = self.earliest(now);
        match effect {
            ClaimEffect::Release => Applied::Done,
            ClaimEffect::Settle { version, .. }
                if self.round != round || self.settled >= Some(version) =>
            {
                Applied::Overtaken
            }
            ClaimEffect::Settle { version, present, not_before } => {
                self.take(RowEffect::Settle { version, present, not_before });
                Applied::Done
            }
        }
    }

    /// Makes a pending row that no puller has claimed due now, or as soon as its client allows; tells
    /// whether it was due later.
    pub fn expedite(&mut self, now: Timestamp) -> bool {
        let due = self.earliest(now);
        let later = self.is_pending() && !self.is_claimed(now) && self.due > due;
        if later {
            self.due = due;
        }
        later
    }

    /// Takes `version` off the dead letters and, unless something newer is pending already, makes
    /// it due now. Tells whether there was such a dead version.
    pub fn replay(&mut self, version: Version, now: Timestamp) -> bool {
        if self.given_up != Some(version) {
            return false;
        }
        let was_pending = self.is_pending();
        self.given_up = None;
        self.dead = None;
        if !was_pending && self.is_pending() {
            self.start_afresh(now);
        }
        true
    }

    /// When the client may be told at the earliest, at `now`.
    fn earliest(&self, now: Timestamp) -> Timestamp {
        self.not_before.map_or(now, |time| time.max(now))
    }

    fn start_afresh(&mut self, now: Timestamp) {
        self.since = now;
        // What a puller has is told again once its claim has ended.
        self.due = self.earliest(self.claim.map_or(now, |held| held.until.max(now)));
        self.demanded = false;
        self.attempts = 0;
        self.attempted = None;
        self.first_failure = None;
    }

    fn take(&mut self, effect: RowEffect) {
        match effect {
            RowEffect::Settle { version, present, not_before } => {
                self.settled = Some(version);
                self.present = present;
                self.demanded = false;
                if let Some(time) = not_before {
                    self.not_before = Some(time);
                    // What is wanted by now waits as well.
                    self.due = self.due.max(time);
                }
                self.attempts = 0;
                self.attempted = None;
                self.first_failure = None;
                if self.given_up <= self.settled {
                    self.dead = None;
                }
            }
            RowEffect::Retry { version, present, attempts, due, first_failure } => {
                self.attempted = Some(version);
                self.present = present;
                self.attempts = attempts;
                self.due = due;
                self.first_failure = first_failure;
            }
            RowEffect::GiveUp { version, present, dead } => {
                self.given_up = Some(version);
                self.present = present;
                self.demanded = false;
                self.dead = Some(dead);
                self.attempts = 0;
                self.attempted = None;
                self.first_failure = None;
            }
        }
    }
}

/// What the lane's owner wants of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowEffect {
    /// The client has, or needs, no more than `version`.
    Settle {
        /// The version that was read just before the attempt; may exceed `wanted`.
        version: Version,
        /// What the client holds now.
        present: Present,
        /// Before when it wants to be told nothing more of the document; as it was, if there is none.
        not_before: Option<Timestamp>,
    },
    /// The attempt failed and another one follows.
    Retry {
        /// The version that was attempted.
        version: Version,
        /// What the client holds now, as far as it can be known.
        present: Present,
        /// Attempts used up so far.
        attempts: u32,
        /// When the next one may be made.
        due: Timestamp,
        /// When the first attempt failed, if one did.
        first_failure: Option<Timestamp>,
    },
    /// No further attempt is made for `version`.
    GiveUp {
        /// The version that was attempted last.
        version: Version,
        /// What the client holds now, as far as it can be known.
        present: Present,
        /// What is kept of it.
        dead: DeadLetter,
    },
}

impl RowEffect {
    /// The version it is about.
    pub fn version(&self) -> Version {
        match self {
            Self::Settle { version, .. }
            | Self::Retry { version, .. }
            | Self::GiveUp { version, .. } => *version,
        }
    }
}

/// What the holder of a claim wants of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimEffect {
    /// The puller has `version`, or refuses it.
    Settle {
        /// The version it was handed.
        version: Version,
        /// What it holds now.
        present: Present,
        /// Before when it wants to be told nothing more of the document; as it was, if there is none.
        not_before: Option<Timestamp>,
    },
    /// The puller hands the row back; it is available again at once.
    Release,
}

/// What became of an effect on a row, a lane's state or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// It is stored.
    Done,
    /// A later owner has written it: nothing changed, and the caller should stop.
    Fenced {
        /// The later owner's epoch.
        epoch: Epoch,
    },
    /// The same or a newer version is settled already, or the row is told in a later round: nothing
    /// changed.
    Overtaken,
    /// The claim is not, or no longer, the caller's: nothing changed.
    Expired,
    /// There is no such row.
    Missing,
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
