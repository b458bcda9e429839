//! What answers of all kinds come to.

use super::*;
use crate::model::subscription::RetryPolicy;
use crate::model::{
    Action, DocumentKey, DocumentUrl, Generation, ResourceId, Revision, Round, Spread,
    SubscriptionId, SubscriptionSpec, Version,
};
use crate::port::FailureKind;

fn live(r: i64) -> Version {
    Version::live(Revision::new(r))
}

fn now() -> Timestamp {
    Timestamp::from_unix_seconds(1_000)
}

fn attempt(action: Action, holding: Present) -> Attempt {
    attempt_of(1, action, holding)
}

/// The same of one among several documents.
pub(super) fn attempt_of(document: usize, action: Action, holding: Present) -> Attempt {
    let url = DocumentUrl::parse(&format!("http://a.example/u/{document}")).unwrap();
    let spread = Spread::new(
        SubscriptionId::from_bytes([1; 16]),
        Generation::new(1),
        DocumentKey::new(ResourceId::from_bytes([2; 16]), url),
        live(5),
    );
    let row = Row::new(&spread, Timestamp::EPOCH);
    let stored_at = Timestamp::EPOCH;
    let (version, round, withholds) = (live(5), Round::ZERO, false);
    let telling = Telling { version, action, holding, round, withholds };
    Attempt { row, telling, stored_at, probe: false }
}

pub(super) fn circumstances() -> Circumstances {
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
        .min_delay_target(Duration::from_secs(10))
        .max_delay_target(Duration::from_secs(10))
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
    assert_eq!((judgement.asks, judgement.attempts), (Some(ClientAsks::Leave), 3));
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
        assert_eq!(
            judgement.asks,
            hold.map(|at| ClientAsks::Hold(second(at))),
            "{status} {after:?}"
        );
        let RowEffect::Retry { due, .. } = judgement.effect else { panic!() };
        let expected = hold.unwrap_or(0).max(1_010);
        assert_eq!(due, second(expected), "{status} {after:?}: never before the policy");
    }
}

#[test]
fn while_a_client_is_probed_others_use_up_nothing() {
    let mut circumstances = circumstances();
    circumstances.counts = false;
    let judgement = judged_under(&again(1, 990), DeliveryOutcome::answered(500), 1, &circumstances);
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
    assert!(matches!(effect, RowEffect::Retry { due, .. } if due == second(1_005)), "{effect:?}");

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
