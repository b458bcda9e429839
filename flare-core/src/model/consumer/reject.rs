//! A message that became no document, as it is kept to be looked at and tried again.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{RejectReason, Rejection};
use crate::model::{ConsumerId, Invalid, RejectId, Timestamp};

/// Messages up to this size are kept whole, and can be tried again.
pub const MAX_REJECT_BYTES: usize = 64 * 1024;
/// So much of a message is shown.
const EXCERPT_BYTES: usize = 1024;
/// So much of what a broker calls a message, or of what is wrong with it, is kept.
const TEXT_BYTES: usize = 1024;

/// A message that became no document, or not all that it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reject {
    /// What it is known by: of one message of a consumer always the same.
    pub id: RejectId,
    /// Whose message it was.
    pub consumer: ConsumerId,
    /// What the broker calls it.
    pub message: String,
    /// Why it was rejected.
    pub reason: RejectReason,
    /// Where in it, as a JSON Pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
    /// How it begins, as text.
    pub excerpt: String,
    /// All of it, unless it is too large to be kept.
    pub body: Option<Bytes>,
    /// When the broker got it, if it says so.
    pub sent_at: Option<Timestamp>,
    /// When it was rejected.
    pub rejected_at: Timestamp,
}

/// What a store keeps of it as text; id, consumer and time it keeps beside that.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RejectText {
    message: String,
    reason: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pointer: String,
    detail: String,
    /// Its bytes as text where they are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Its bytes in hexadecimal where they are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    /// How it begins, where it is not kept whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    excerpt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent_at: Option<i64>,
}

impl Reject {
    /// What is kept of a message that was rejected.
    pub fn new(
        consumer: ConsumerId,
        message: &str,
        body: &Bytes,
        rejection: Rejection,
        now: Timestamp,
    ) -> Self {
        Self {
            id: reject_id(consumer, message),
            consumer,
            message: shortened(message, TEXT_BYTES),
            reason: rejection.reason,
            pointer: shortened(&rejection.pointer, TEXT_BYTES),
            detail: shortened(&rejection.detail, TEXT_BYTES),
            excerpt: excerpt(body),
            body: (body.len() <= MAX_REJECT_BYTES).then(|| body.clone()),
            sent_at: None,
            rejected_at: now,
        }
    }

    /// The same, rejected once more.
    #[must_use]
    pub fn rejected_again(self, rejection: Rejection, now: Timestamp) -> Self {
        Self {
            reason: rejection.reason,
            pointer: shortened(&rejection.pointer, TEXT_BYTES),
            detail: shortened(&rejection.detail, TEXT_BYTES),
            rejected_at: now,
            ..self
        }
    }

    /// The text a store keeps.
    pub fn stored(&self) -> Result<String, Invalid> {
        let body = self.body.as_ref();
        let text = body.and_then(|body| std::str::from_utf8(body).ok()).map(str::to_owned);
        let bytes = body
            .filter(|_| text.is_none())
            .map(|body| body.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let text = RejectText {
            message: self.message.clone(),
            reason: self.reason.as_str().to_owned(),
            pointer: self.pointer.clone(),
            detail: self.detail.clone(),
            body: text,
            bytes,
            excerpt: body.is_none().then(|| self.excerpt.clone()),
            sent_at: self.sent_at.map(Timestamp::unix_nanos),
        };
        serde_json::to_string(&text).map_err(|error| Invalid::new("", format!("{error}")))
    }

    /// Reads the text of the [stored form](Self::stored).
    pub fn from_stored(
        id: RejectId,
        consumer: ConsumerId,
        rejected_at: Timestamp,
        text: &str,
    ) -> Result<Self, Invalid> {
        let damaged = |what: String| Invalid::new("", format!("is damaged: {what}"));
        let read: RejectText =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let body = match (read.body, read.bytes) {
            (Some(text), _) => Some(Bytes::from(text)),
            (None, Some(hex)) => Some(from_hex(&hex).ok_or_else(|| damaged("bytes".to_owned()))?),
            (None, None) => None,
        };
        // A reason that only a newer version knows is shown as what every version knows.
        let reason = RejectReason::parse(&read.reason).unwrap_or(RejectReason::Refused);
        let excerpt = match (&body, read.excerpt) {
            (Some(body), _) => excerpt(body),
            (None, shown) => shown.unwrap_or_default(),
        };
        Ok(Self {
            id,
            consumer,
            message: read.message,
            reason,
            pointer: read.pointer,
            detail: read.detail,
            excerpt,
            body,
            sent_at: read.sent_at.map(Timestamp::from_unix_nanos),
            rejected_at,
        })
    }
}

/// FNV-1a of 128 bits: a message that is received again is the reject that it was.
fn reject_id(consumer: ConsumerId, message: &str) -> RejectId {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = consumer.as_bytes().iter().chain(message.as_bytes());
    let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    RejectId::from_bytes(hash.to_be_bytes())
}

fn excerpt(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(EXCERPT_BYTES)]);
    // What was cut in two is no letter of the message.
    text.trim_end_matches('\u{fffd}').to_owned()
}

fn shortened(text: &str, most: usize) -> String {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

fn from_hex(text: &str) -> Option<Bytes> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    rest.is_empty().then(|| bytes.collect::<Option<Vec<u8>>>().map(Bytes::from)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reject(body: impl Into<Bytes>) -> Reject {
        let rejection = Rejection::new(RejectReason::Missing, "/id", "is missing");
        let consumer = ConsumerId::from_bytes([1; 16]);
        Reject::new(consumer, "m-1", &body.into(), rejection, Timestamp::from_unix_nanos(9))
    }

    fn again(reject: &Reject) -> Reject {
        let text = reject.stored().unwrap();
        Reject::from_stored(reject.id, reject.consumer, reject.rejected_at, &text).unwrap()
    }

    #[test]
    fn a_message_has_one_id_and_comes_back_as_it_was() {
        for body in [&b"{\"id\":null}"[..], b"\xff\x00\"", b"", "ä".as_bytes()] {
            let mut one = reject(body.to_vec());
            one.sent_at = Some(Timestamp::from_unix_nanos(3));
            assert_eq!(again(&one), one);
            assert_eq!(one.id, reject("other").id);
        }
    }

    #[test]
    fn a_large_one_keeps_how_it_begins() {
        let large = reject("ä".repeat(MAX_REJECT_BYTES));
        assert_eq!(large.body, None);
        assert_eq!(large.excerpt, "ä".repeat(EXCERPT_BYTES / 2));
        assert_eq!(again(&large), large);
        assert_eq!(shortened("aä", 2), "a");
    }
}
