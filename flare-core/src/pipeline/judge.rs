//! Takes what became of an attempt; gives what to store of it and what to say about it. Pure.

use std::time::Duration;

use super::backoff;
use super::event::{Event, EventKind, Told};
use super::health::Sign;
use crate::model::subscription::DeliveryOptions;
use crate::model::{
    Action, DeadLetter, DeadLetterId, DeathReason, Present, Row, RowEffect, Timestamp, Verdict,
    Version, present_after,
};
use crate::port::{DeliveryOutcome, FailureKind, Reply, RetryAfter};

/// An attempt that was made.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    /// The row as it was read before.
    pub(crate) row: Row,
    /// The version that was sent.
    pub(crate) version: Version,
    /// When that version was stored.
    pub(crate) stored_at: Timestamp,
    /// What the client was told.
    pub(crate) action: Action,
    /// What it held before, as far as this owner can know.
    pub(crate) holding: Present,
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
    pub(crate) wish: Option<Wish>,
}

/// What a client asks for with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To be left alone until then.
    Hold(Timestamp),
    /// Not to be told anything any more.
    Leave,
}

impl Judgement {
    /// What listeners are told once it is stored.
    pub(crate) fn event(&self, attempt: &Attempt) -> Event {
        let key = &attempt.row.key;
        let told = Told::new(key.url.clone(), attempt.version, attempt.action);
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
    let Attempt { version, action, holding, .. } = *attempt;
    let (verdict, sign, wish, error) = read(outcome, options, circumstances);
    let present = present_after(holding, action, verdict);
    if matches!(verdict, Verdict::Success | Verdict::Discard) {
        let effect = RowEffect::Settle { version, present };
        return Judgement { verdict, effect, error: None, attempts: 0, sign, wish };
    }
    let counts = circumstances.counts && wish != Some(Wish::Leave);
    let (attempts, effect) = if counts {
        count(attempt, present, wish, outcome, error.as_deref(), options, circumstances)
    } else {
        spare(attempt, present)
    };
    Judgement { verdict, effect, error, attempts, sign, wish }
}

/// What an outcome says: about the version, about the client, for Flare, in words.
fn read(
    outcome: &DeliveryOutcome,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> (Verdict, Sign, Option<Wish>, Option<String>) {
    match &outcome.reply {
        Reply::Answered { status, .. } if options.success().contains(*status) => {
            (Verdict::Success, Sign::Accepted, None, None)
        }
        Reply::Answered { status, .. } if options.discard().contains(*status) => {
            (Verdict::Discard, Sign::Refused, None, None)
        }
        Reply::Answered { status, excerpt, retry_after } => {
            let sign = if *status >= 500 { Sign::Down } else { Sign::Unhappy };
            let wish = match (status, retry_after) {
                (410, _) => Some(Wish::Leave),
                (429 | 503, Some(after)) => hold(*after, circumstances).map(Wish::Hold),
                _ => None,
            };
            (Verdict::Failure, sign, wish, Some(answered(*status, excerpt)))
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
    }
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
    wish: Option<Wish>,
    outcome: &DeliveryOutcome,
    error: Option<&str>,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
) -> (u32, RowEffect) {
    let Attempt { row, version, action, .. } = attempt;
    let Circumstances { now, random, .. } = *circumstances;
    // Newer content starts counting anew.
    let again = row.attempted == Some(*version);
    let attempts = if again { row.attempts.saturating_add(1) } else { 1 };
    let first_failure = row.first_failure.filter(|_| again).unwrap_or(now);
    // Whoever asked to be left alone is; nothing expires meanwhile.
    let held = match wish {
        Some(Wish::Hold(until)) => Some(until),
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
                version: *version,
                present,
                attempts,
                due,
                first_failure: Some(first_failure),
            };
            return (attempts, effect);
        }
    };
    let mut dead = DeadLetter::new(circumstances.dead_letter, *action, reason, now);
    dead.attempts = attempts;
    dead.last_status = match outcome.reply {
        Reply::Answered { status, .. } => Some(status),
        Reply::Failed { .. } => None,
    };
    dead.last_error = error.map(str::to_owned);
    dead.first_failure_at = first_failure;
    (attempts, RowEffect::GiveUp { version: *version, present, dead })
}

/// A failure that uses up no attempt: the row stays as due as it is.
fn spare(attempt: &Attempt, present: Present) -> (u32, RowEffect) {
    let Attempt { row, version, .. } = attempt;
    let again = row.attempted == Some(*version);
    let attempts = if again { row.attempts } else { 0 };
    let first_failure = row.first_failure.filter(|_| again);
    let effect =
        RowEffect::Retry { version: *version, present, attempts, due: row.due, first_failure };
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
        let stored_at = Timestamp::EPOCH;
        Attempt { row, version: live(5), stored_at, action, holding, probe: false }
    }

    fn circumstances() -> Circumstances {
        Circumstances {
            now: now(),
            random: 0.0,
            dead_letter: DeadLetterId::from_bytes([9; 16]),
            counts: true,
            ttl: Some(Duration::from_hours(1)),
            free_since: None,
            hold_limit: Duration::from_hours(1),
        }
    }

    fn judged(attempt: &Attempt, outcome: DeliveryOutcome, retries: u32) -> Judgement {
        judged_under(attempt, outcome, retries, &circumstances())
    }

    fn judged_under(
        attempt: &Attempt,
        outcome: DeliveryOutcome,
        retries: u32,
        circumstances: &Circumstances,
    ) -> Judgement {
        let retry = RetryPolicy::builder()
            .num_retries(retries)
            .min_delay_target(10)
            .max_delay_target(10)
            .build()
            .unwrap();
        let spec = SubscriptionSpec::post("http://c.example/").discard([409]).retry(retry);
        let spec = spec.build().unwrap();
        judge(attempt, &outcome, spec.delivery(), circumstances)
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

    fn asking(status: u16, after: RetryAfter) -> DeliveryOutcome {
        let mut outcome = DeliveryOutcome::answered(status);
        outcome.reply =
            Reply::Answered { status, retry_after: Some(after), excerpt: Default::default() };
        outcome
    }

    fn again(attempts: u32, first_failure: i64) -> Attempt {
        let mut again = attempt(Action::Update, Present::Yes);
        again.row.attempted = Some(live(5));
        again.row.attempts = attempts;
        again.row.first_failure = Some(Timestamp::from_unix_seconds(first_failure));
        again
    }

    #[test]
    fn a_client_that_is_gone_uses_up_no_attempt() {
        let judgement = judged(&again(3, 990), DeliveryOutcome::answered(410), 3);
        assert_eq!((judgement.wish, judgement.attempts), (Some(Wish::Leave), 3));
        let RowEffect::Retry { attempts, due, .. } = judgement.effect else { panic!() };
        assert_eq!((attempts, due), (3, Timestamp::EPOCH), "as due as it was");
    }

    #[test]
    fn retry_after_holds_and_never_beyond_the_limit() {
        let second = Timestamp::from_unix_seconds;
        for (status, after, hold) in [
            (429, RetryAfter::Delay(Duration::from_secs(30)), Some(1_030)),
            (503, RetryAfter::At(second(1_020)), Some(1_020)),
            (503, RetryAfter::At(second(900)), None),
            (429, RetryAfter::Delay(Duration::ZERO), None),
            (429, RetryAfter::Delay(Duration::from_hours(48)), Some(4_600)),
            (429, RetryAfter::At(Timestamp::MAX), Some(4_600)),
            (500, RetryAfter::Delay(Duration::from_secs(30)), None),
        ] {
            let judgement = judged(&again(1, 990), asking(status, after), 9);
            assert_eq!(judgement.wish, hold.map(|at| Wish::Hold(second(at))), "{status} {after:?}");
            let RowEffect::Retry { due, .. } = judgement.effect else { panic!() };
            let expected = hold.unwrap_or(0).max(1_010);
            assert_eq!(due, second(expected), "{status} {after:?}: never before the policy");
        }
    }

    #[test]
    fn while_a_client_is_probed_others_use_up_nothing() {
        let mut circumstances = circumstances();
        circumstances.counts = false;
        let judgement =
            judged_under(&again(1, 990), DeliveryOutcome::answered(500), 1, &circumstances);
        let RowEffect::Retry { attempts, due, first_failure, .. } = judgement.effect else {
            panic!("{judgement:?}")
        };
        let first = Some(Timestamp::from_unix_seconds(990));
        assert_eq!((attempts, due, first_failure), (1, Timestamp::EPOCH, first));
    }

    /// First failure at 990, ttl 15 s, retries every 10 s, now 1,000.
    #[test]
    fn a_version_expires_by_its_ttl_with_a_last_attempt_at_the_end() {
        let second = Timestamp::from_unix_seconds;
        let failed = || DeliveryOutcome::answered(500);
        let mut under = circumstances();
        under.ttl = Some(Duration::from_secs(15));
        let effect = judged_under(&again(1, 990), failed(), 9, &under).effect;
        assert!(
            matches!(effect, RowEffect::Retry { due, .. } if due == second(1_005)),
            "{effect:?}"
        );

        let old = again(1, 985);
        let effect = judged_under(&old, failed(), 9, &under).effect;
        let RowEffect::GiveUp { dead, .. } = effect else { panic!("{effect:?}") };
        assert_eq!((dead.reason, dead.first_failure_at), (DeathReason::Expired, second(985)));

        under.free_since = Some(second(999));
        let effect = judged_under(&old, failed(), 9, &under).effect;
        assert!(matches!(effect, RowEffect::Retry { .. }), "counted from the end of the pause");

        under.free_since = None;
        let wait = asking(503, RetryAfter::Delay(Duration::from_secs(60)));
        let effect = judged_under(&old, wait, 9, &under).effect;
        assert!(matches!(effect, RowEffect::Retry { due, .. } if due == second(1_060)), "held");

        under.ttl = None;
        let effect = judged_under(&old, failed(), 9, &under).effect;
        assert!(matches!(effect, RowEffect::Retry { .. }), "nothing expires");
    }

    #[test]
    fn answers_tell_how_the_client_is() {
        let create = attempt(Action::Create, Present::No);
        let failed = |kind| DeliveryOutcome::failed(kind, "no", false);
        for (outcome, sign) in [
            (DeliveryOutcome::answered(200), Sign::Accepted),
            (DeliveryOutcome::answered(409), Sign::Refused),
            (DeliveryOutcome::answered(404), Sign::Unhappy),
            (DeliveryOutcome::answered(302), Sign::Unhappy),
            (DeliveryOutcome::answered(500), Sign::Down),
            (failed(FailureKind::Connect), Sign::Down),
            (failed(FailureKind::Timeout), Sign::Down),
            (failed(FailureKind::Unsendable), Sign::Unhappy),
        ] {
            assert_eq!(judged(&create, outcome.clone(), 3).sign, sign, "{outcome:?}");
        }
    }
}
