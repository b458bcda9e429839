//! Takes a message as a well-known service wraps it; gives what the mapping is about.

use std::borrow::Cow;

use super::pointer::{MessagePointer, text};
use super::{RejectReason, Rejection};
use crate::model::Invalid;

/// How messages are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappingPreset {
    /// Amazon SNS: the mapping is about what is in the string `Message`.
    Sns,
    /// Amazon EventBridge: the mapping is about `detail`.
    EventBridge,
    /// Debezium, with or without a schema: the mapping is about the row `after` the change or, if `op` is
    /// `d`, the row `before` it, which is deleted.
    Debezium,
}

/// What a message says once it is unwrapped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unwrapped<'m> {
    /// A message of its own, to be mapped.
    Message(Cow<'m, str>),
    /// A row, and whether it is gone.
    Row(&'m str, bool),
    /// Nothing that concerns a document.
    Nothing,
}

impl MappingPreset {
    /// Every preset there is.
    pub const ALL: [Self; 3] = [Self::Sns, Self::EventBridge, Self::Debezium];

    /// The preset as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::Debezium => "debezium",
        }
    }

    /// Reads a preset. A refusal names no field: the caller knows where it stood.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|preset| preset.as_str() == text);
        found.ok_or_else(|| Invalid::new("", "must be sns, eventbridge or debezium"))
    }

    pub(super) fn unwrap(self, message: &str) -> Result<Unwrapped<'_>, Rejection> {
        match self {
            Self::Sns => {
                let inner = at("/Message", message)?;
                let inner = text(inner).ok_or_else(|| wrong("/Message", "must be a string"))?;
                Ok(Unwrapped::Message(inner))
            }
            Self::EventBridge => Ok(Unwrapped::Message(Cow::Borrowed(at("/detail", message)?))),
            Self::Debezium => debezium(message),
        }
    }
}

/// A change of a row. With the JSON converter's schema it is in `payload`.
fn debezium(message: &str) -> Result<Unwrapped<'_>, Rejection> {
    // After a delete there may be a message without anything in it, for brokers that compact.
    if matches!(message.trim(), "" | "null") {
        return Ok(Unwrapped::Nothing);
    }
    let wrapped = look("/schema", message)?.is_some() && look("/op", message)?.is_none();
    let (change, place) = match wrapped {
        true => match look("/payload", message)? {
            Some(payload) => (payload, "/payload"),
            None => return Ok(Unwrapped::Nothing),
        },
        false => (message, ""),
    };
    let rejected = |rejection: Rejection| rejection.below(place);
    let op = at("/op", change).map_err(rejected)?;
    let (row, gone) = match op {
        r#""c""# | r#""u""# | r#""r""# => ("/after", false),
        r#""d""# => ("/before", true),
        // Truncated tables and messages of the database say nothing of a single row.
        r#""t""# | r#""m""# => return Ok(Unwrapped::Nothing),
        _ => return Err(rejected(wrong("/op", "must be c, u, r, d, t or m"))),
    };
    Ok(Unwrapped::Row(at(row, change).map_err(rejected)?, gone))
}

/// The value at a place that the preset knows.
fn at<'m>(pointer: &str, message: &'m str) -> Result<&'m str, Rejection> {
    look(pointer, message)?.ok_or_else(|| wrong(pointer, "is missing"))
}

fn look<'m>(pointer: &str, message: &'m str) -> Result<Option<&'m str>, Rejection> {
    match MessagePointer::parse(pointer) {
        Ok(pointer) => pointer.find(message),
        Err(invalid) => Err(wrong(pointer, invalid.reason())),
    }
}

fn wrong(pointer: &str, detail: &str) -> Rejection {
    Rejection::new(RejectReason::Envelope, pointer, detail)
}
