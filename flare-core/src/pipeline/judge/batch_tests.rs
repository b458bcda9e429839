//! What answers to many notifications at once come to.

use bytes::Bytes;

use super::super::tests::{attempt_of, circumstances};
use super::*;
use crate::model::subscription::BatchOptions;
use crate::model::{Action, Present, RowEffect, SubscriptionSpec};
use crate::pipeline::judge::ClientAsks;
use crate::port::{FailureKind, RetryAfter};

/// Creates of so many documents.
fn creates(count: usize) -> Vec<Attempt> {
    (0..count).map(|number| attempt_of(number, Action::Create, Present::No)).collect()
}

fn judged(attempts: &[Attempt], outcome: &DeliveryOutcome) -> BatchJudgement {
    let spec = SubscriptionSpec::post("http://c.example/").discard([422]);
    let spec = spec.batch(BatchOptions::of(10)).build().unwrap();
    let letters = (1..).map(|number| DeadLetterId::from_bytes([number; 16]));
    judge_batch(attempts, outcome, spec.delivery(), &circumstances(), letters)
}

fn saying(status: u16, body: &str) -> DeliveryOutcome {
    let mut outcome = DeliveryOutcome::answered(status);
    if let Reply::Answered { excerpt, .. } = &mut outcome.reply {
        *excerpt = Bytes::copy_from_slice(body.as_bytes());
    }
    outcome
}

fn verdicts(judged: &BatchJudgement) -> Vec<Verdict> {
    judged.each.iter().map(|it| it.verdict).collect()
}

/// How many attempts a row has used up then.
fn attempts(judgement: &Judgement) -> Option<u32> {
    match &judgement.effect {
        RowEffect::Retry { attempts, .. } => Some(*attempts),
        _ => None,
    }
}

#[test]
fn a_success_takes_all_but_those_it_names() {
    use Verdict::{Discard, Failure, Success};
    let told = creates(3);
    let ids: Vec<String> = told.iter().map(webhook_id).collect();
    let named = |failed: &[&str], discarded: &[&str]| {
        serde_json::json!({ "failed": failed, "discarded": discarded, "more": [1] }).to_string()
    };
    let (one, two, three) = (ids[0].as_str(), ids[1].as_str(), ids[2].as_str());
    for (body, expected, unknown) in [
        (String::new(), [Success; 3], 0),
        ("ok".to_owned(), [Success; 3], 0),
        ("[]".to_owned(), [Success; 3], 0),
        (r#"{"status":"ok"}"#.to_owned(), [Success; 3], 0),
        (r#"{"failed":null}"#.to_owned(), [Success; 3], 0),
        (named(&[one], &[]), [Failure, Success, Success], 0),
        (named(&[], &[two]), [Success, Discard, Success], 0),
        (named(&[three], &[one]), [Discard, Success, Failure], 0),
        (named(&[one, one], &[one]), [Failure, Success, Success], 0),
        (named(&["msg_x", two], &["msg_x", "msg_y"]), [Success, Failure, Success], 2),
    ] {
        let judged = judged(&told, &saying(200, &body));
        assert_eq!(verdicts(&judged), expected, "{body}");
        assert_eq!((judged.undivided, judged.unknown_ids), (false, unknown), "{body}");
        for (judgement, verdict) in judged.each.iter().zip(expected) {
            let used = if verdict == Failure { Some(1) } else { None };
            assert_eq!(attempts(judgement), used, "{body}: what is named as failed has failed");
        }
    }
}

#[test]
fn a_body_that_cannot_be_read_is_no_success() {
    let told = creates(2);
    for body in [
        r#"{"failed":"msg_1"}"#,
        r#"{"failed":[1]}"#,
        r#"{"failed":["#,
        "{]",
        r#"{"failed":[],"failed":[]}"#,
    ] {
        let judged = judged(&told, &saying(200, body));
        assert_eq!(verdicts(&judged), [Verdict::Failure; 2], "{body}");
        assert!(judged.undivided && judged.each[0].sign == Sign::Unhappy, "{body}");
    }
    let mut cut = saying(200, "");
    cut.whole = false;
    let judged = judged(&told, &cut);
    assert_eq!(verdicts(&judged), [Verdict::Unknown; 2]);
    for judgement in &judged.each {
        let RowEffect::Retry { present, attempts, .. } = judgement.effect else { panic!() };
        assert_eq!((present, attempts), (Present::Maybe, 0), "it may have them");
    }
}

#[test]
fn a_failure_of_many_uses_up_no_attempt_and_a_failure_of_one_does() {
    let timeout = DeliveryOutcome::failed(FailureKind::Timeout, "no answer", true);
    let mut cut = saying(200, "");
    cut.whole = false;
    for outcome in [saying(500, ""), saying(404, ""), saying(422, ""), timeout, cut] {
        let many = judged(&creates(4), &outcome);
        assert!(many.undivided, "{outcome:?}");
        assert!(many.each.iter().all(|it| attempts(it) == Some(0)), "{outcome:?}");
        let one = judged(&creates(1), &outcome);
        assert!(!one.undivided);
        let discards = outcome == saying(422, "");
        let used = if discards { None } else { Some(1) };
        assert_eq!(attempts(&one.each[0]), used, "{outcome:?}");
        assert_eq!(one.each[0].verdict == Verdict::Discard, discards);
    }
}

#[test]
fn a_client_asks_for_quiet_or_to_be_left_for_all_of_them() {
    let gone = judged(&creates(3), &saying(410, ""));
    assert!(gone.each.iter().all(|it| it.asks == Some(ClientAsks::Leave)));
    let mut later = saying(503, "");
    if let Reply::Answered { retry_after, .. } = &mut later.reply {
        *retry_after = Some(RetryAfter::Delay(std::time::Duration::from_secs(9)));
    }
    let held = judged(&creates(3), &later);
    assert!(held.each.iter().all(|it| matches!(it.asks, Some(ClientAsks::Hold(_)))));
    assert!(held.undivided, "one of them may be why");
}

#[test]
fn each_that_is_given_up_is_a_dead_letter_of_its_own() {
    let told = creates(2);
    let ids: Vec<String> = told.iter().map(webhook_id).collect();
    let retry = crate::model::subscription::RetryPolicy::builder().num_retries(0).build().unwrap();
    let spec = SubscriptionSpec::post("http://c.example/").retry(retry);
    let spec = spec.batch(BatchOptions::of(10)).build().unwrap();
    let outcome = saying(200, &serde_json::json!({ "failed": ids }).to_string());
    let letters = (1..).map(|number| DeadLetterId::from_bytes([number; 16]));
    let judged = judge_batch(&told, &outcome, spec.delivery(), &circumstances(), letters);
    let dead = |judgement: &Judgement| match &judgement.effect {
        RowEffect::GiveUp { dead, .. } => dead.id,
        effect => panic!("{effect:?}"),
    };
    assert_ne!(dead(&judged.each[0]), dead(&judged.each[1]));
}
