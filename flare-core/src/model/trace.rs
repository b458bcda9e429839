//! Takes a W3C `traceparent`; gives it back unchanged with the version it arrived with.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// The trace a version belongs to, in the form of a W3C `traceparent` header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceContext(Box<str>);

impl TraceContext {
    /// The header's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TraceContext {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = |reason: &'static str| Err(Invalid::new("traceparent", reason));
        let lower_hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let all_zero = |part: &str| part.bytes().all(|b| b == b'0');
        let mut parts = text.split('-');
        let (Some(version), Some(trace), Some(span), Some(flags)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return refuse("must be version-trace-span-flags");
        };
        // Version 00 has exactly four parts; later ones may append some.
        if version.len() != 2 || !lower_hex(version) || version == "ff" {
            return refuse("has an unknown version");
        }
        if version == "00" && parts.next().is_some() || text.len() > 256 || !text.is_ascii() {
            return refuse("has more parts than its version knows");
        }
        if trace.len() != 32 || !lower_hex(trace) || all_zero(trace) {
            return refuse("trace id must be 32 lower-case hex digits, not all zero");
        }
        if span.len() != 16 || !lower_hex(span) || all_zero(span) {
            return refuse("span id must be 16 lower-case hex digits, not all zero");
        }
        if flags.len() != 2 || !lower_hex(flags) {
            return refuse("flags must be 2 lower-case hex digits");
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for TraceContext {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        text.parse()
    }
}

impl From<TraceContext> for String {
    fn from(trace: TraceContext) -> Self {
        trace.0.into()
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_w3c_does() {
        for text in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings",
        ] {
            assert_eq!(text.parse::<TraceContext>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn refuses_what_w3c_does() {
        for text in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-\u{e9}",
        ] {
            assert_eq!(text.parse::<TraceContext>().unwrap_err().field(), "traceparent", "{text}");
        }
    }
}
