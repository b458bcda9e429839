//! Takes a Go reference-time layout; gives instants for texts and texts for instants.
//!
//! Never asks the clock or the machine's own zone, so that a text means the same everywhere.

mod element;
mod format;
mod parse;
mod scan;
mod zone;

use std::fmt;
use std::str::FromStr;

use super::Invalid;
use element::{Chunk, Element};

/// Words that stand in dates and are no elements.
const WORDS: [&str; 11] = ["T", "Z", "UTC", "GMT", "at", "of", "de", "th", "h", "m", "s"];

/// A layout of Go's `time` package, compiled once and used many times.
///
/// A layout shows how the reference time `Mon Jan 2 15:04:05 MST 2006` would be written; every
/// element of Go's language is known, and texts are read as Go's `time.Parse` reads them:
///
/// - Runs of spaces count as one; any other text between elements must match to the letter.
/// - `.` or `,` with digits after a seconds element is a fraction, also where the layout has none.
///   Digits beyond nanoseconds are dropped.
/// - Names of months and weekdays are read in any case. A weekday is not compared with the date.
/// - A two-digit year from 69 on is 19xx. What the layout leaves out is the first: January, the
///   1st, midnight, and the year 0, which lies outside of what 64 bits of nanoseconds can say.
/// - A text without a zone is UTC. Offsets are taken as written, also beyond a day, and `Z070000`
///   and `Z07:00:00` do not read a `Z`: so does the Go whose answers the tests hold (newer ones
///   bound offsets and read the `Z`).
///
/// It differs from Go in one rule: a zone name other than `UTC` and `GMT` (also `GMT+3`) is
/// refused, whereas Go takes an unknown name for UTC, which would make unequal instants equal.
///
/// ```
/// use flare_core::model::Layout;
///
/// let layout = Layout::parse("Jan _2 2006 15:04:05 -0700")?;
/// let nanos = layout.parse_nanos("Feb  4 2010 21:00:57.5 -0800")?;
/// assert_eq!(nanos, 1_265_346_057_500_000_000);
/// assert_eq!(layout.format_nanos(nanos), "Feb  5 2010 05:00:57 +0000");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Layout {
    source: Box<str>,
    chunks: Box<[Chunk]>,
    tail: Box<str>,
}

impl Layout {
    /// The longest layout that is accepted, in bytes.
    pub const MAX_LEN: usize = 256;

    /// Compiles a layout. A refusal names no field: the caller knows where the layout stood.
    ///
    /// At least one element must say a year, month, day, hour, minute or second; a zone, a
    /// weekday, `PM` or a fraction alone says no date or time.
    ///
    /// ```
    /// use flare_core::model::Layout;
    ///
    /// assert!(Layout::parse("2006-01-02").is_ok());
    /// assert!(Layout::parse("yyyy-MM-dd").is_err());
    /// assert!(Layout::parse("Z07:00").is_err());
    /// ```
    pub fn parse(layout: &str) -> Result<Self, Invalid> {
        if layout.len() > Self::MAX_LEN {
            let reason = format!("is {} bytes long, at most {}", layout.len(), Self::MAX_LEN);
            return Err(Invalid::new("", reason));
        }
        let (chunks, tail) = element::chunks(layout);
        if !chunks.iter().any(|chunk| chunk.element.is_date_or_time()) {
            let reason = format!(
                "{layout:?} has no date or time element of a Go layout such as \
                 2006-01-02T15:04:05Z07:00"
            );
            return Err(Invalid::new("", reason));
        }
        Ok(Self { source: layout.into(), chunks: chunks.into(), tail })
    }

    /// Refuses a layout that names no day, or that has letters which are no elements: versions by it
    /// would be refused at every put, or be told apart by the hour alone.
    pub(crate) fn check_whole(&self) -> Result<(), Invalid> {
        let has = |wanted: fn(Element) -> bool| self.chunks.iter().any(|it| wanted(it.element));
        let missing = [
            ("year", has(Element::is_year)),
            ("month", has(Element::is_month) || has(Element::is_year_day)),
            ("day", has(Element::is_day) || has(Element::is_year_day)),
        ];
        let example = "as in 2006-01-02T15:04:05Z07:00 (or is it one of rfc3339, unix, unix-ms?)";
        if let Some((part, _)) = missing.iter().find(|(_, found)| !found) {
            let reason = format!("{:?} has no {part} of a Go layout, {example}", self.source);
            return Err(Invalid::new("", reason));
        }
        let texts = self.chunks.iter().map(|chunk| &*chunk.literal).chain([&*self.tail]);
        let mut words = texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphabetic()));
        match words.find(|word| !word.is_empty() && !WORDS.contains(word)) {
            Some(word) => {
                let reason = format!(
                    "{word:?} in {:?} is no element of a Go layout, {example}",
                    self.source
                );
                Err(Invalid::new("", reason))
            }
            None => Ok(()),
        }
    }

    /// The instant that `text` names, in nanoseconds since 1970-01-01T00:00:00Z.
    ///
    /// A refusal names no field; its reason quotes the text and says what did not match.
    pub fn parse_nanos(&self, text: &str) -> Result<i64, Invalid> {
        parse::nanos(&self.chunks, &self.tail, text)
            .map_err(|fault| Invalid::new("", format!("{}: {fault}", Excerpt(text))))
    }

    /// The instant in this layout, in UTC.
    pub fn format_nanos(&self, nanos: i64) -> String {
        let mut text = String::with_capacity(self.source.len() + 16);
        format::nanos(&self.chunks, nanos, &mut text);
        text.push_str(&self.tail);
        text
    }

    /// The layout as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }
}

/// The same text compiles to the same layout.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Layout {}

impl FromStr for Layout {
    type Err = Invalid;

    fn from_str(layout: &str) -> Result<Self, Invalid> {
        Self::parse(layout)
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Layout").field(&self.source).finish()
    }
}

/// A text in quotes, cut short: a refusal must not grow with the document it refuses.
pub(super) struct Excerpt<'t>(pub(super) &'t str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(64) {
            Some((end, _)) => write!(f, "{:?}…", self.0.get(..end).unwrap_or_default()),
            None => write!(f, "{:?}", self.0),
        }
    }
}
