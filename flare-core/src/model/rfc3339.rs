//! Takes RFC 3339 text or Unix nanoseconds; gives the other. Strict in, as short as exact out.

use std::sync::LazyLock;

use jiff::Timestamp;

use super::layout::Excerpt;
use super::{Invalid, Layout};

/// Compiled once; the text is constant, so that nothing of a caller is shared.
static LAYOUT: LazyLock<Result<Layout, Invalid>> =
    LazyLock::new(|| Layout::parse("2006-01-02T15:04:05Z07:00"));

/// Reads `2024-05-01T12:30:00.25+02:00`: what Go's layout of that name reads, without what it
/// reads beyond RFC 3339 (an hour of one digit, a comma, an offset of a day or more). `T` and `Z`
/// are upper-case, a leap second (`:60`) is refused, digits beyond nanoseconds are dropped.
pub(super) fn parse(text: &str) -> Result<i64, Invalid> {
    let nanos = match &*LAYOUT {
        Ok(layout) => layout.parse_nanos(text)?,
        Err(invalid) => return Err(invalid.clone()),
    };
    let lenient = if text.as_bytes().get(13) != Some(&b':') {
        "hour must have two digits"
    } else if text.contains(',') {
        "fractional second must follow a point"
    } else if !offset_within_a_day(text) {
        "zone offset out of range"
    } else {
        return Ok(nanos);
    };
    Err(Invalid::new("", format!("{}: {lenient}", Excerpt(text))))
}

/// Writes the instant in UTC with as many fractional digits as it needs.
pub(super) fn format(nanos: i64) -> String {
    // Every 64-bit number of nanoseconds lies well within jiff's years.
    Timestamp::from_nanosecond(nanos.into()).unwrap_or_default().to_string()
}

/// `text` was read already: it ends in `Z` or in `±hh:mm`.
fn offset_within_a_day(text: &str) -> bool {
    let Some(offset) = text.len().checked_sub(5).and_then(|at| text.get(at..)) else {
        return false;
    };
    text.ends_with('Z')
        || offset.split_once(':').is_some_and(|(hours, minutes)| hours < "24" && minutes < "60")
}
