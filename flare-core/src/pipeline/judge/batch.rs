//! Takes what became of a request that told of many; gives what to store of each. Pure.
//!
//! - A success status takes all of them, but for those its body names: `{"failed":[…],"discarded":[…]}`.
//! - Anything else is said of the whole, and one of them may be why. More than one use up no attempt then,
//!   and are asked about again in smaller requests, until the one that is at fault is alone: what is said
//!   of a request of one is said of that one.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Attempt, Circumstances, Judgement, Reading, conclude, read};
use crate::model::subscription::DeliveryOptions;
use crate::model::{DeadLetterId, Verdict};
use crate::pipeline::compose::id_of;
use crate::pipeline::health::Sign;
use crate::port::{DeliveryOutcome, Reply};

/// What the outcome of a request that told of many means.
#[derive(Debug)]
pub(crate) struct BatchJudgement {
    /// Of each of them, in their order.
    pub(crate) each: Vec<Judgement>,
    /// The answer is about the request as a whole, which said nothing of any one of several.
    pub(crate) undivided: bool,
    /// How many ids the client named that it was not told of.
    pub(crate) unknown_ids: usize,
}

/// Judges the outcome of a request that told `attempts`.
pub(crate) fn judge_batch(
    attempts: &[Attempt],
    outcome: &DeliveryOutcome,
    options: &DeliveryOptions,
    circumstances: &Circumstances,
    dead_letters: impl Iterator<Item = DeadLetterId>,
) -> BatchJudgement {
    let whole = read(outcome, options, circumstances);
    let (whole, named) = match whole.verdict {
        Verdict::Success => match Named::read(outcome) {
            Ok(named) => (whole, Some(named)),
            Err(unread) => (unread, None),
        },
        Verdict::Discard if attempts.len() > 1 => (refused(whole, attempts.len()), None),
        _ => (whole, None),
    };
    let undivided = attempts.len() > 1 && named.is_none();
    let named = named.unwrap_or_default();
    let ids: Vec<String> = attempts.iter().map(webhook_id).collect();
    let each = attempts.iter().zip(&ids).zip(dead_letters).map(|((attempt, id), dead_letter)| {
        let reading = named.reading(id).unwrap_or_else(|| whole.clone());
        let counts = circumstances.counts && !undivided;
        let circumstances = Circumstances { dead_letter, counts, ..*circumstances };
        conclude(attempt, outcome, reading, options, &circumstances)
    });
    let each = each.collect();
    BatchJudgement { each, undivided, unknown_ids: named.unknown(&ids) }
}

fn webhook_id(attempt: &Attempt) -> String {
    let key = &attempt.row.key;
    id_of(key.subscription, &key.url, attempt.telling)
}

/// A discard of many at once: which of them is meant is not said, so none is discarded.
fn refused(whole: Reading, count: usize) -> Reading {
    let error = format!("refused {count} notifications at once");
    Reading { verdict: Verdict::Failure, sign: Sign::Unhappy, error: Some(error), ..whole }
}

/// What an answer's body names.
#[derive(Debug, Default)]
struct Named {
    failed: HashSet<String>,
    discarded: HashSet<String>,
}

/// The body, as far as Flare reads it; clients may say more.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    failed: Option<&'a RawValue>,
    #[serde(borrow)]
    discarded: Option<&'a RawValue>,
}

impl Named {
    /// What the body of a success names. One that was not read whole leaves everything open; an object
    /// that cannot be read may name failures, so it is none. Whatever else a body is, it names nothing.
    fn read(outcome: &DeliveryOutcome) -> Result<Self, Reading> {
        let Reply::Answered { status, excerpt, .. } = &outcome.reply else {
            return Ok(Self::default());
        };
        if !outcome.whole {
            let error = format!("answered {status} with a body that could not be read whole");
            return Err(failed(Verdict::Unknown, Sign::Down, error));
        }
        if excerpt.trim_ascii_start().first() != Some(&b'{') {
            return Ok(Self::default());
        }
        let wrong = |what: &str| {
            failed(Verdict::Failure, Sign::Unhappy, format!("answered {status} with {what}"))
        };
        let body: Body<'_> =
            serde_json::from_slice(excerpt).map_err(|_| wrong("a body that is no JSON object"))?;
        let list = |name: &str, list: Option<&RawValue>| match list.map(RawValue::get) {
            Some(list) => serde_json::from_str::<HashSet<String>>(list)
                .map_err(|_| wrong(&format!("a `{name}` that is no list of webhook ids"))),
            None => Ok(HashSet::new()),
        };
        Ok(Self {
            failed: list("failed", body.failed)?,
            discarded: list("discarded", body.discarded)?,
        })
    }

    /// What is said of one by name; what is named as both is tried again.
    fn reading(&self, id: &str) -> Option<Reading> {
        if self.failed.contains(id) {
            let error = "the client named it as failed".to_owned();
            return Some(failed(Verdict::Failure, Sign::Unhappy, error));
        }
        self.discarded.contains(id).then_some(Reading {
            verdict: Verdict::Discard,
            sign: Sign::Refused,
            asks: None,
            error: None,
        })
    }

    fn unknown(&self, ids: &[String]) -> usize {
        let named: HashSet<&String> = self.failed.union(&self.discarded).collect();
        named.len() - ids.iter().filter(|id| named.contains(id)).count()
    }
}

fn failed(verdict: Verdict, sign: Sign, error: String) -> Reading {
    Reading { verdict, sign, asks: None, error: Some(error) }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
