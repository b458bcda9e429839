//! What a puller's receipt says: enough for any node to settle what was handed out. Opaque to clients.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};

use super::PullOutcome;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Action, ClaimEffect, ClaimId, DocumentUrl, Invalid, Present, Revision, Round, Row, RowKey,
    SubscriptionId, Telling, Version,
};
use crate::port::ClaimUpdate;

/// The longest receipt that is looked into.
const LONGEST: usize = 8 * 1024;

/// What was handed out, under which claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReceiptContent {
    url: DocumentUrl,
    claim: ClaimId,
    round: Round,
    pub(super) version: Version,
    pub(super) held: Present,
    pub(super) action: Action,
}

/// The form it travels in.
#[derive(Serialize, Deserialize)]
struct Form {
    u: String,
    c: ClaimId,
    n: Round,
    r: i64,
    g: bool,
    h: Present,
    a: Action,
}

impl ReceiptContent {
    pub(super) fn of(row: &Row, claim: ClaimId, telling: Telling) -> Self {
        Self {
            url: row.key.url.clone(),
            claim,
            round: telling.round,
            version: telling.version,
            held: telling.holding,
            action: telling.action,
        }
    }

    pub(super) fn encode(&self) -> Result<String> {
        let form = Form {
            u: self.url.as_str().to_owned(),
            c: self.claim,
            n: self.round,
            r: self.version.revision().get(),
            g: self.version.is_gone(),
            h: self.held,
            a: self.action,
        };
        let text = serde_json::to_vec(&form)
            .map_err(|error| Error::new(ErrorKind::Internal, "pull").with_source(error))?;
        Ok(BASE64.encode(text))
    }

    fn decode(text: &str) -> Option<Self> {
        let bytes = BASE64.decode(text.get(..LONGEST.min(text.len()))?).ok()?;
        let form: Form = serde_json::from_slice(&bytes).ok()?;
        let revision = Revision::new(form.r);
        let version = if form.g { Version::gone(revision) } else { Version::live(revision) };
        let (round, held, action) = (form.n, form.h, form.a);
        let url = DocumentUrl::parse(&form.u).ok()?;
        Some(Self { url, claim: form.c, round, version, held, action })
    }

    /// What is to be done to the row of a subscription.
    pub(super) fn update(self, subscription: SubscriptionId, effect: ClaimEffect) -> ClaimUpdate {
        let key = RowKey::new(subscription, self.url);
        ClaimUpdate { key, claim: self.claim, round: self.round, effect }
    }
}

/// Reads receipts; the refusal names the one that is none.
pub(super) fn read_all(
    outcomes: &[(String, PullOutcome)],
) -> std::result::Result<Vec<ReceiptContent>, Invalid> {
    let read = |(i, (text, _)): (usize, &(String, PullOutcome))| {
        ReceiptContent::decode(text).ok_or_else(|| {
            Invalid::new(format!("receipts[{i}].receipt"), "is no receipt of a pull")
        })
    };
    outcomes.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn receipt() -> ReceiptContent {
        ReceiptContent {
            url: DocumentUrl::parse("http://a.example/u/%C3%A9").unwrap(),
            claim: ClaimId::from_bytes([7; 16]),
            round: Round::new(3),
            version: Version::gone(Revision::new(i64::MIN)),
            held: Present::Maybe,
            action: Action::Delete,
        }
    }

    #[test]
    fn comes_back_as_it_was_given() {
        let text = receipt().encode().unwrap();
        assert_eq!(ReceiptContent::decode(&text), Some(receipt()));
    }

    #[test]
    fn the_refusal_names_the_one_that_is_none() {
        let good = receipt().encode().unwrap();
        let given = [good, "nonsense".to_owned()].map(|it| (it, PullOutcome::Success));
        assert_eq!(read_all(&given).unwrap_err().field(), "receipts[1].receipt");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_given_nothing_panics(text in ".{0,80}") {
            let _ = ReceiptContent::decode(&text);
            let _ = ReceiptContent::decode(&BASE64.encode(text));
        }
    }
}
