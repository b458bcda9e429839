//! Takes the JSON text of one value; gives the number or string a revision is read from.

use std::borrow::Cow;
use std::fmt;

use crate::model::Invalid;
use crate::model::layout::Excerpt;

/// An integer as it stands in `value`: as a JSON integer, or as a string that holds one.
///
/// Taken exactly, digit by digit. `1.0` and `1e3` are no integers here: a writer that sends them
/// computes revisions in floating point, where neighbours become equal.
pub(super) fn integer(value: &str) -> Result<i64, Invalid> {
    match value.bytes().next() {
        Some(b'-' | b'0'..=b'9') if value.contains(['.', 'e', 'E']) => {
            Err(Invalid::new("", format!("must be an integer, found {}", Cut(value))))
        }
        Some(b'-' | b'0'..=b'9') => decimal(value),
        Some(b'"') => decimal(&string(value)?),
        first => Err(wrong_kind(first, "an integer or a string holding one")),
    }
}

/// A string of `value`; a number is refused, for it would say nothing of its unit.
pub(super) fn text(value: &str) -> Result<Cow<'_, str>, Invalid> {
    match value.bytes().next() {
        Some(b'"') => string(value),
        first => Err(wrong_kind(first, "a string")),
    }
}

/// Digits with at most a `-` before them; zeros may lead (`007` is 7), nothing else may: no `+`, no
/// space.
pub(super) fn decimal(text: &str) -> Result<i64, Invalid> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Invalid::new("", format!("{}: not a decimal integer", Excerpt(text))));
    }
    text.parse().map_err(|_| Invalid::new("", format!("{} out of range of 64 bits", Cut(text))))
}

fn wrong_kind(first: Option<u8>, wanted: &str) -> Invalid {
    let kind = match first {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    };
    Invalid::new("", format!("must be {wanted}, found {kind}"))
}

/// The content of a JSON string; copied only where it has escapes.
fn string(json: &str) -> Result<Cow<'_, str>, Invalid> {
    match json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        Some(content) if !content.contains('\\') => Ok(Cow::Borrowed(content)),
        _ => serde_json::from_str(json)
            .map(Cow::Owned)
            .map_err(|_| Invalid::new("", "must be a string of valid Unicode")),
    }
}

/// A number, cut short like an [`Excerpt`] but without quotes.
struct Cut<'t>(&'t str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get(..64) {
            Some(head) if head.len() < self.0.len() => write!(f, "{head}…"),
            _ => f.write_str(self.0),
        }
    }
}
