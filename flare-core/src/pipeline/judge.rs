//! Takes what became of an attempt; gives what to store of it and what to say about it. Pure.

mod batch;

use std::time::Duration;

use super::backoff;
use super::event::{Event, EventKind, Told};
use super::health::Sign;
use crate::model::subscription::DeliveryOptions;
use crate::model::{
    DeadLetter, DeadLetterId, DeathReason, Present, Row, RowEffect, Telling, Timestamp, Verdict,
    present_after,
};
use crate::port::{DeliveryOutcome, FailureKind, Reply, RetryAfter};

pub(crate) use self::batch::{BatchJudgement, judge_batch};

/// An attempt that was made.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The row as it was read before.
    pub(crate) row: Row,
    /// When that version was stored.
    pub(crate) stored_at: Timestamp,
    /// What the client was told.
    pub(crate) telling: Telling,
    /// Whether it was made to see how a client is that was failing.
    pub(crate) probe: bool,
}

/// What there is to know beside the attempt itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Circumstances {
    /// Store time.
    pub(crate) now: Timestamp,
    /// From 0 up to 1.
    pub(crate) random: f64,
    /// What a dead letter would be known by.
    pub(crate) dead_letter: DeadLetterId,
    /// Whether a failure uses up an attempt. While a client is probed only probes do.
    pub(crate) counts: bool,
    /// How long a version is tried; `None` while nothing expires.
    pub(crate) ttl: Option<Duration>,
    /// When the last pause, suspension, hold or spell of probing ended, if there was one.
    pub(crate) free_since: Option<Timestamp>,
    /// The longest a client may have itself held.
    pub(crate) hold_limit: Duration,
}

/// What an attempt's outcome means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) effect: RowEffect,
    /// Why it failed, in words.
    pub(crate) error: Option<String>,
    /// Attempts used up for this version, this one included.
    pub(crate) attempts: u32,
    /// What the answer says about the client itself.
    pub(crate) sign: Sign,
    /// What the client asks of Flare beside.
    pub(crate) asks: Option<ClientAsks>,
}

/// What a client asks for with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAsks {
    /// To be left alone until then.
    Hold(Timestamp),
    /// Not to be told anything any more.
    Leave,
}

impl Judgement {
    /// What listeners are told once it is stored.
    pub(crate) fn event(&self, attempt: &Attempt) -> Event {
        let key = &attempt.row.key;
        let told = Told::new(key.url.clone(), attempt.telling.version, attempt.telling.action);
        let error = || self.error.clone().unwrap_or_default();
        let kind = match (&self.effect, self.verdict) {
            (RowEffect::GiveUp { .. }, _) => EventKind::DeadLettered { told, error: error() },
            (_, Verdict::Success) => EventKind::Delivered(told),
            (_, Verdict::Discard) => EventKind::Discarded(told),
            _ => EventKind::Failed { told, error: error(), attempts: self.attempts },
        };
        Event::new(key.subscription, kind)
    }
}

/// Judges an outcome. The subscription's lists win over any other meaning of a status.
pub(crate) fn judge(
    attempt: &Attempt,
    outcome: &DeliveryOutcome,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> Judgement {
    conclude(attempt, outcome, read(outcome, options, circumstances), options, circumstances)
}

/// What an outcome says.
#[derive(Debug, Clone)]
struct Reading {
    /// About the version.
    verdict: Verdict,
    /// About the client.
    sign: Sign,
    /// For Flare.
    asks: Option<ClientAsks>,
    /// In words.
    error: Option<String>,
}

/// What is to be done about a version, once it is known what its outcome says.
fn conclude(
    attempt: &Attempt,
    outcome: &DeliveryOutcome,
    reading: Reading,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> Judgement {
    let Telling { version, action, holding, .. } = attempt.telling;
    let Reading { verdict, sign, asks, error } = reading;
    let present = present_after(holding, action, verdict);
    if matches!(verdict, Verdict::Success | Verdict::Discard) {
        let not_before = options.min_interval().map(|interval| circumstances.now + interval);
        let effect = RowEffect::Settle { version, present, not_before };
        return Judgement { verdict, effect, error: None, attempts: 0, sign, asks };
    }
    let counts = circumstances.counts && asks != Some(ClientAsks::Leave);
    let (attempts, effect) = if counts {
        count(attempt, present, asks, outcome, error.as_deref(), options, circumstances)
    } else {
        spare(attempt, present)
    };
    Judgement { verdict, effect, error, attempts, sign, asks }
}

fn read(
    outcome: &DeliveryOutcome,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> Reading {
    let (verdict, sign, asks, error) = match &outcome.reply {
        Reply::Answered { status, .. } if options.success().contains(*status) => {
            (Verdict::Success, Sign::Accepted, None, None)
        }
        Reply::Answered { status, .. } if options.discard().contains(*status) => {
            (Verdict::Discard, Sign::Refused, None, None)
        }
        Reply::Answered { status, excerpt, retry_after } => {
            let sign = if *status >= 500 { Sign::Down } else { Sign::Unhappy };
            let asks = match (status, retry_after) {
                (410, _) => Some(ClientAsks::Leave),
                (429 | 503, Some(after)) => hold(*after, circumstances).map(ClientAsks::Hold),
                _ => None,
            };
            (Verdict::Failure, sign, asks, Some(answered(*status, excerpt)))
        }
        Reply::Failed { kind, message } => {
            let verdict = if outcome.sent { Verdict::Unknown } else { Verdict::Failure };
            let sign = match kind {
                // A request that cannot be made says nothing about the client.
                FailureKind::Unsendable => Sign::Unhappy,
                _ => Sign::Down,
            };
            (verdict, sign, None, Some(message.clone()))
        }
    };
    Reading { verdict, sign, asks, error }
}

/// Until when a client wants to be left alone, within the limit; `None` if that is now.
fn hold(after: RetryAfter, circumstances: &Circumstances) -> Option<Timestamp> {
    let Circumstances { now, hold_limit, .. } = *circumstances;
    let until = match after {
        RetryAfter::Delay(delay) => now + delay.min(hold_limit),
        RetryAfter::At(time) => time.min(now + hold_limit),
    };
    (until > now).then_some(until)
}

/// A failure that uses up an attempt: tried again by policy, or given up.
fn count(
    attempt: &Attempt,
    present: Present,
    asks: Option<ClientAsks>,
    outcome: &DeliveryOutcome,
    error: Option<&str>,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> (u32, RowEffect) {
    let (row, Telling { version, action, .. }) = (&attempt.row, attempt.telling);
    let Circumstances { now, random, .. } = *circumstances;
    // Newer content starts counting anew.
    let again = row.attempted == Some(version);
    let attempts = if again { row.attempts.saturating_add(1) } else { 1 };
    let first_failure = row.first_failure.filter(|_| again).unwrap_or(now);
    // A client that asked to be left alone is; nothing expires meanwhile.
    let held = match asks {
        Some(ClientAsks::Hold(until)) => Some(until),
        _ => None,
    };
    let expires = circumstances.ttl.filter(|_| held.is_none()).map(|ttl| {
        let tried_since =
            circumstances.free_since.map_or(first_failure, |it| it.max(first_failure));
        tried_since + ttl
    });
    let reason = match backoff::delay(options.retry(), attempts, random) {
        None => DeathReason::Exhausted,
        Some(_) if expires.is_some_and(|expires| expires <= now) => DeathReason::Expired,
        Some(delay) => {
            let due = (now + delay).max(held.unwrap_or(now));
            // The last attempt is made when the time is up, rather than long after.
            let due = expires.map_or(due, |expires| due.min(expires));
            let effect = RowEffect::Retry {
                version,
                present,
                attempts,
                due,
                first_failure: Some(first_failure),
            };
            return (attempts, effect);
        }
    };
    let mut dead = DeadLetter::new(circumstances.dead_letter, action, reason, now);
    dead.attempts = attempts;
    dead.last_status = match outcome.reply {
        Reply::Answered { status, .. } => Some(status),
        Reply::Failed { .. } => None,
    };
    dead.last_error = error.map(str::to_owned);
    dead.first_failure_at = first_failure;
    (attempts, RowEffect::GiveUp { version, present, dead })
}

/// A failure that uses up no attempt: the row stays as due as it is.
fn spare(attempt: &Attempt, present: Present) -> (u32, RowEffect) {
    let (row, version) = (&attempt.row, attempt.telling.version);
    let again = row.attempted == Some(version);
    let attempts = if again { row.attempts } else { 0 };
    let first_failure = row.first_failure.filter(|_| again);
    let effect = RowEffect::Retry { version, present, attempts, due: row.due, first_failure };
    (attempts, effect)
}

/// A failure status and the beginning of what came with it, printable and short.
fn answered(status: u16, excerpt: &[u8]) -> String {
    let text = String::from_utf8_lossy(excerpt);
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    match text.trim() {
        "" => format!("answered {status}"),
        text => format!("answered {status}: {text}"),
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
