//! Takes what became of an attempt; gives what to store of it and what to say about it. Pure.

use super::backoff;
use super::event::{Event, EventKind};
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

impl Judgement {
    /// What listeners are told once it is stored.
    pub(crate) fn event(&self, attempt: &Attempt) -> Event {
        let error = || self.error.clone().unwrap_or_default();
        let kind = match (&self.effect, self.verdict) {
            (RowEffect::GiveUp { .. }, _) => EventKind::DeadLettered { error: error() },
            (_, Verdict::Success) => EventKind::Delivered,
            (_, Verdict::Discard) => EventKind::Discarded,
            _ => EventKind::Failed { error: error(), attempts: self.attempts },
        };
        Event {
            subscription: attempt.row.key.subscription,
            document: attempt.row.key.url.clone(),
            version: attempt.version,
            action: attempt.action,
            kind,
        }
    }
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
    let again = row.attempted == Some(version);
    let attempts = if again { row.attempts.saturating_add(1) } else { 1 };
    let first_failure = row.first_failure.filter(|_| again).unwrap_or(now);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::subscription::RetryPolicy;
    use crate::model::{
        DocumentKey, DocumentUrl, Generation, ResourceId, Revision, Spread, SubscriptionId,
        SubscriptionSpec,
    };
    use crate::port::FailureKind;

    fn live(r: i64) -> Version {
        Version::live(Revision::new(r))
    }

    fn now() -> Timestamp {
        Timestamp::from_unix_seconds(1_000)
    }

    fn attempt(action: Action, holding: Present) -> Attempt {
        let url = DocumentUrl::parse("http://a.example/u/1").unwrap();
        let spread = Spread {
            subscription: SubscriptionId::from_bytes([1; 16]),
            generation: Generation::new(1),
            document: DocumentKey::new(ResourceId::from_bytes([2; 16]), url),
            wanted: live(5),
        };
        let row = Row::new(&spread, Timestamp::EPOCH);
        Attempt { row, version: live(5), action, holding }
    }

    fn judged(attempt: &Attempt, outcome: DeliveryOutcome, retries: u32) -> Judgement {
        let retry = RetryPolicy::builder()
            .num_retries(retries)
            .min_delay_target(10)
            .max_delay_target(10)
            .build()
            .unwrap();
        let spec = SubscriptionSpec::post("http://c.example/").discard([409]).retry(retry);
        let spec = spec.build().unwrap();
        let dead = DeadLetterId::from_bytes([9; 16]);
        judge(attempt, &outcome, spec.delivery(), now(), 0.0, dead)
    }

    #[test]
    fn the_lists_decide_what_a_status_means() {
        let create = attempt(Action::Create, Present::No);
        for (status, verdict) in [
            (200, Verdict::Success),
            (204, Verdict::Success),
            (409, Verdict::Discard),
            (203, Verdict::Failure),
            (301, Verdict::Failure),
            (410, Verdict::Failure),
            (503, Verdict::Failure),
        ] {
            let judgement = judged(&create, DeliveryOutcome::answered(status), 3);
            assert_eq!(judgement.verdict, verdict, "{status}");
        }
    }

    #[test]
    fn no_answer_is_unknown_only_if_the_request_left() {
        let create = attempt(Action::Create, Present::No);
        let broken = |sent| DeliveryOutcome::failed(FailureKind::Broken, "reset", sent);
        let unknown = judged(&create, broken(true), 3);
        assert_eq!(unknown.verdict, Verdict::Unknown);
        assert!(matches!(unknown.effect, RowEffect::Retry { present: Present::Maybe, .. }));
        let failure = judged(&create, broken(false), 3);
        assert_eq!(failure.verdict, Verdict::Failure);
        assert!(matches!(failure.effect, RowEffect::Retry { present: Present::No, .. }));
    }

    #[test]
    fn a_failure_is_retried_later_and_counted() {
        let mut again = attempt(Action::Update, Present::Yes);
        again.row.attempted = Some(live(5));
        again.row.attempts = 2;
        again.row.first_failure = Some(Timestamp::from_unix_seconds(900));
        let judgement = judged(&again, DeliveryOutcome::answered(500), 5);
        assert_eq!(
            judgement.effect,
            RowEffect::Retry {
                version: live(5),
                present: Present::Yes,
                attempts: 3,
                due: Timestamp::from_unix_seconds(1_010),
                first_failure: Some(Timestamp::from_unix_seconds(900)),
            }
        );
    }

    #[test]
    fn newer_content_starts_counting_anew() {
        let mut newer = attempt(Action::Update, Present::Yes);
        newer.row.attempted = Some(live(4));
        newer.row.attempts = 99;
        newer.row.first_failure = Some(Timestamp::EPOCH);
        let judgement = judged(&newer, DeliveryOutcome::answered(500), 5);
        assert_eq!(judgement.attempts, 1);
        let RowEffect::Retry { first_failure, .. } = judgement.effect else { panic!() };
        assert_eq!(first_failure, Some(now()));
    }

    #[test]
    fn the_last_failure_gives_up_with_everything_that_is_known() {
        let mut last = attempt(Action::Create, Present::No);
        last.row.attempted = Some(live(5));
        last.row.attempts = 1;
        let mut outcome = DeliveryOutcome::answered(500);
        if let Reply::Answered { excerpt, .. } = &mut outcome.reply {
            *excerpt = "no\u{0}pe\n".into();
        }
        let judgement = judged(&last, outcome, 1);
        let RowEffect::GiveUp { version, present, dead } = judgement.effect else {
            panic!("{judgement:?}");
        };
        assert_eq!((version, present), (live(5), Present::No));
        assert_eq!((dead.attempts, dead.last_status, dead.died_at), (2, Some(500), now()));
        assert_eq!(dead.last_error.as_deref(), Some("answered 500: nope"));
    }
}
