//! Takes a JSON Pointer; gives what it points to in a message: its text, byte for byte.

use std::borrow::Cow;
use std::fmt;

use super::{RejectReason, Rejection};
use crate::model::Invalid;
use crate::model::revision::{FoundValue, PathStep, find, pointer_path};

/// A place in a message: a JSON Pointer (RFC 6901) that is not empty.
#[derive(Clone, PartialEq, Eq)]
pub struct MessagePointer {
    source: Box<str>,
    path: Box<[PathStep]>,
}

impl MessagePointer {
    /// Reads a pointer. A refusal names no field: the caller knows where this one stood.
    pub fn parse(pointer: &str) -> Result<Self, Invalid> {
        Ok(Self { source: pointer.into(), path: pointer_path(pointer)? })
    }

    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The text of the JSON value there, if there is one; null is none.
    pub(super) fn find<'m>(&self, message: &'m str) -> Result<Option<&'m str>, Rejection> {
        let found = find(message.as_bytes(), &self.path);
        match found.map_err(|problem| Rejection::not_json(problem.reason()))? {
            FoundValue::One(json) if json.get() == "null" => Ok(None),
            FoundValue::One(json) => Ok(Some(json.get())),
            FoundValue::Missing => Ok(None),
            FoundValue::Repeated => Err(self.reject(RejectReason::Missing, "is repeated")),
        }
    }

    /// The text of the JSON value there, which has to be there.
    pub(super) fn required<'m>(&self, message: &'m str) -> Result<&'m str, Rejection> {
        self.find(message)?.ok_or_else(|| self.reject(RejectReason::Missing, "is missing"))
    }

    /// The string, number or boolean there, as text.
    pub(super) fn scalar<'m>(&self, message: &'m str) -> Result<Cow<'m, str>, Rejection> {
        let json = self.required(message)?;
        let refuse = |reason| self.reject(RejectReason::NoScalar, reason);
        match json.bytes().next() {
            Some(b'{') => Err(refuse("must be a string, number or boolean, found an object")),
            Some(b'[') => Err(refuse("must be a string, number or boolean, found an array")),
            Some(b'"') => {
                let text = text(json).ok_or_else(|| refuse("must be a string of valid Unicode"))?;
                if text.is_empty() { Err(refuse("must not be empty")) } else { Ok(text) }
            }
            _ => Ok(Cow::Borrowed(json)),
        }
    }

    pub(super) fn reject(&self, reason: RejectReason, detail: impl Into<String>) -> Rejection {
        Rejection::new(reason, self.as_str(), detail)
    }
}

/// The content of a JSON string; copied only where it has escapes.
pub(super) fn text(json: &str) -> Option<Cow<'_, str>> {
    match json.strip_prefix('"')?.strip_suffix('"')? {
        content if !content.contains('\\') => Some(Cow::Borrowed(content)),
        _ => serde_json::from_str(json).map(Cow::Owned).ok(),
    }
}

impl fmt::Display for MessagePointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for MessagePointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessagePointer").field(&self.source).finish()
    }
}
