//! Why a message became no document.

use std::fmt;

/// Why a message, or a part of it, became no document: the kinds that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RejectReason {
    /// It is no JSON object.
    NotJson,
    /// It is not wrapped as the preset says.
    Envelope,
    /// Something the mapping points to is not there, or there twice.
    Missing,
    /// A part of the URL is neither a string nor a number nor a boolean, or is empty.
    NoScalar,
    /// The URL is none, or that of another resource's document.
    OtherResource,
    /// Its content is no JSON object with a revision as the resource says.
    NoRevision,
    /// The expression that says what is deleted fails on it.
    Expression,
    /// It is split into more documents than one message may be.
    TooMany,
    /// The store refuses the document.
    Refused,
}

impl RejectReason {
    /// Every reason there is.
    pub const ALL: [Self; 9] = [
        Self::NotJson,
        Self::Envelope,
        Self::Missing,
        Self::NoScalar,
        Self::OtherResource,
        Self::NoRevision,
        Self::Expression,
        Self::TooMany,
        Self::Refused,
    ];

    /// The reason as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotJson => "not-json",
            Self::Envelope => "envelope",
            Self::Missing => "missing",
            Self::NoScalar => "no-scalar",
            Self::OtherResource => "other-resource",
            Self::NoRevision => "no-revision",
            Self::Expression => "expression",
            Self::TooMany => "too-many",
            Self::Refused => "refused",
        }
    }

    /// The reason that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a message, or a part of it, became no document, in words. Says nothing of what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The kind of reason.
    pub reason: RejectReason,
    /// Where in the message: a JSON Pointer, or empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
}

impl Rejection {
    /// Refuses what is at a place of a message.
    pub fn new(
        reason: RejectReason,
        pointer: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self { reason, pointer: pointer.into(), detail: detail.into() }
    }

    /// A message that is no JSON object.
    pub(super) fn not_json(detail: impl Into<String>) -> Self {
        Self::new(RejectReason::NotJson, "", detail)
    }

    /// The same, of a value that is itself at a place of the message.
    #[must_use]
    pub(super) fn below(mut self, pointer: &str) -> Self {
        self.pointer.insert_str(0, pointer);
        self
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "{}: {}", self.reason, self.detail),
            pointer => write!(f, "{}: {pointer}: {}", self.reason, self.detail),
        }
    }
}
