//! Takes what became of an attempt; gives what to store of it and what to say about it. Pure.

use super::backoff;
use crate::model::subscription::DeliveryOptions;
use crate::model::{
    Action, DeadLetter, DeadLetterId, DeathReason, Present, Row, RowEffect, Timestamp, Verdict,
    Version, present_after,
};
use crate::port::{DeliveryOutcome, Reply};

/// An attempt that was made.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The row as it was read before.
    pub(crate) row: Row,
    /// The version that was sent.
    pub(crate) version: Version,
    /// What the client was told.
    pub(crate) action: Action,
    /// What it held before, as far as this owner can know.
    pub(crate) holding: Present,
}

/// What an attempt's outcome means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) effect: RowEffect,
    /// Why it failed, in words.
    pub(crate) error: Option<String>,
    /// Attempts that failed for this version, this one included.
    pub(crate) attempts: u32,
}

/// Judges an outcome at `now`. The subscription's lists win over any other meaning of a status.
pub(crate) fn judge(
    attempt: &Attempt,
    outcome: &DeliveryOutcome,
    options: &DeliveryOptions,
    now: Timestamp,
    random: f64,
    dead_letter: DeadLetterId,
) -> Judgement {
    let Attempt { row, version, action, holding } = attempt;
    let version = *version;
    let (verdict, status, error) = match &outcome.reply {
        Reply::Answered { status, .. } if options.success().contains(*status) => {
            (Verdict::Success, Some(*status), None)
        }
        Reply::Answered { status, .. } if options.discard().contains(*status) => {
            (Verdict::Discard, Some(*status), None)
        }
        Reply::Answered { status, excerpt, .. } => {
            (Verdict::Failure, Some(*status), Some(answered(*status, excerpt)))
        }
        Reply::Failed { message, .. } if outcome.sent => {
            (Verdict::Unknown, None, Some(message.clone()))
        }
        Reply::Failed { message, .. } => (Verdict::Failure, None, Some(message.clone())),
    };
    let present = present_after(*holding, *action, verdict);
    if matches!(verdict, Verdict::Success | Verdict::Discard) {
        let effect = RowEffect::Settle { version, present };
        return Judgement { verdict, effect, error: None, attempts: 0 };
    }
    // Newer content starts counting anew.
    let before = if row.attempted == Some(version) { row.attempts } else { 0 };
    let attempts = before.saturating_add(1);
    let first_failure = row.first_failure.unwrap_or(now);
    let effect = match backoff::delay(options.retry(), attempts, random) {
        Some(delay) => RowEffect::Retry {
            version,
            present,
            attempts,
            due: now + delay,
            first_failure: Some(first_failure),
        },
        None => {
            let mut dead = DeadLetter::new(dead_letter, *action, DeathReason::Exhausted, now);
            dead.attempts = attempts;
            dead.last_status = status;
            dead.last_error = error.clone();
            dead.first_failure_at = first_failure;
            RowEffect::GiveUp { version, present, dead }
        }
    };
    Judgement { verdict, effect, error, attempts }
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
