//! Takes where a revision stands and in which form; gives revisions for documents and back.

use serde::{Deserialize, Serialize};

use super::field::ChangeField;
use super::find::{FoundValue, find};
use super::{Revision, ShownRevision, value};
use crate::model::{Invalid, Layout, rfc3339};

/// How the versions of a resource's documents are told apart: the field, and its format.
///
/// ```
/// use flare_core::model::{ChangeRule, Revision};
///
/// let counted = ChangeRule::new("/meta/rev", None)?;
/// assert_eq!(counted.read(br#"{"meta":{"rev":42}}"#)?, Revision::new(42));
///
/// let timed = ChangeRule::new("updatedAt", Some("rfc3339"))?;
/// let revision = timed.read(br#"{"updatedAt":"2024-05-01T14:00:00.50+02:00"}"#)?;
/// assert_eq!(timed.show(revision), "2024-05-01T12:00:00.5Z");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredChange", try_from = "StoredChange")]
pub struct ChangeRule {
    field: ChangeField,
    format: ChangeFormat,
}

/// The form in which a document writes its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeFormat {
    /// No format: a JSON integer, or a string that holds a decimal integer.
    Integer,
    /// A string in a Go reference-time layout.
    Layout(Layout),
    /// `rfc3339`: a string such as `2024-05-01T12:30:00.25+02:00`.
    ///
    /// `T` and `Z` are upper-case, a leap second is refused, digits beyond nanoseconds are dropped.
    Rfc3339,
    /// `unix`: seconds since 1970-01-01T00:00:00Z, an integer or a string that holds one.
    Unix,
    /// `unix-ms`: the same in milliseconds.
    UnixMillis,
}

impl ChangeRule {
    /// A change by its two parts, refused as `change.field` or `change.format`.
    pub fn new(field: &str, format: Option<&str>) -> Result<Self, Invalid> {
        Ok(Self {
            field: ChangeField::parse(field).map_err(|invalid| invalid.within("change.field"))?,
            format: format
                .map_or(Ok(ChangeFormat::Integer), ChangeFormat::parse)
                .map_err(|invalid| invalid.within("change.format"))?,
        })
    }

    /// Refuses what would be taken to the letter, and surely is not meant so.
    pub(crate) fn check_habits(&self) -> Result<(), Invalid> {
        self.field.check_habits().map_err(|invalid| invalid.within("change.field"))?;
        match &self.format {
            ChangeFormat::Layout(layout) => {
                layout.check_whole().map_err(|invalid| invalid.within("change.format"))
            }
            _ => Ok(()),
        }
    }

    /// Where in a document the revision stands.
    pub fn field(&self) -> &ChangeField {
        &self.field
    }

    /// In which form it stands there.
    pub fn format(&self) -> &ChangeFormat {
        &self.format
    }

    /// The revision of a document, which must be one JSON object and hold the field once.
    ///
    /// What is no such document is refused as `document`, all else under the field as it was
    /// written. One pass over the bytes; no JSON nested deeper than 127 levels.
    pub fn read(&self, document: &[u8]) -> Result<Revision, Invalid> {
        let found = find(document, self.field.path())
            .map_err(|problem| Invalid::new("document", problem.reason()))?;
        let number = match found {
            FoundValue::One(json) => self.format.read(json.get()),
            FoundValue::Missing => Err(Invalid::new("", "is missing")),
            FoundValue::Repeated => Err(Invalid::new("", "is repeated")),
        };
        number.map(Revision::new).map_err(|invalid| invalid.within(self.field.as_str()))
    }

    /// A revision as people and clients see it: the integer or, where there is a format, RFC 3339
    /// in UTC with as many fractional digits as it needs.
    pub fn show(&self, revision: Revision) -> String {
        match self.format {
            ChangeFormat::Integer => revision.to_string(),
            _ => rfc3339::format(revision.get()),
        }
    }

    /// The same, as JSON has it: a number or a string.
    pub fn shown(&self, revision: Revision) -> ShownRevision {
        match self.format {
            ChangeFormat::Integer => ShownRevision::Number(revision.get()),
            _ => ShownRevision::Time(self.show(revision)),
        }
    }

    /// The revision that [`show`](Self::show) wrote, or any other RFC 3339 text for its instant.
    ///
    /// A refusal names no field: the caller knows where the text stood.
    pub fn read_shown(&self, shown: &str) -> Result<Revision, Invalid> {
        match self.format {
            ChangeFormat::Integer => value::decimal(shown),
            _ => rfc3339::parse(shown),
        }
        .map(Revision::new)
    }
}

impl ChangeFormat {
    /// The names that are no layouts.
    const NAMED: [Self; 3] = [Self::Rfc3339, Self::Unix, Self::UnixMillis];

    /// Reads a `change.format`. A refusal names no field: the caller knows where it stood.
    pub fn parse(format: &str) -> Result<Self, Invalid> {
        for named in Self::NAMED {
            match named.as_str() {
                Some(name) if name == format => return Ok(named),
                // RFC3339 would be a layout of three hours, in which no document could be read.
                Some(name) if name.eq_ignore_ascii_case(format) => {
                    let reason = format!("is written in lower case: {name}");
                    return Err(Invalid::new("", reason));
                }
                _ => {}
            }
        }
        Layout::parse(format).map(Self::Layout)
    }

    /// The format as it was written; none for integers.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Integer => None,
            Self::Layout(layout) => Some(layout.as_str()),
            Self::Rfc3339 => Some("rfc3339"),
            Self::Unix => Some("unix"),
            Self::UnixMillis => Some("unix-ms"),
        }
    }

    /// The number of a revision in the JSON text of its value.
    pub(in crate::model) fn read(&self, json: &str) -> Result<i64, Invalid> {
        match self {
            Self::Integer => value::integer(json),
            Self::Layout(layout) => layout.parse_nanos(&value::text(json)?),
            Self::Rfc3339 => rfc3339::parse(&value::text(json)?),
            Self::Unix => scaled(value::integer(json)?, 1_000_000_000),
            Self::UnixMillis => scaled(value::integer(json)?, 1_000_000),
        }
    }
}

fn scaled(number: i64, nanos: i64) -> Result<i64, Invalid> {
    number.checked_mul(nanos).ok_or_else(|| {
        Invalid::new("", format!("{number} out of range: in nanoseconds it exceeds 64 bits"))
    })
}

/// A change as stores keep it. It may have been written by a newer version, so fields that
/// are not known are left aside; a resource is never written again, so they stay.
#[derive(Serialize, Deserialize)]
struct StoredChange {
    field: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
}

impl From<ChangeRule> for StoredChange {
    fn from(change: ChangeRule) -> Self {
        Self {
            field: change.field.as_str().to_owned(),
            format: change.format.as_str().map(str::to_owned),
        }
    }
}

impl TryFrom<StoredChange> for ChangeRule {
    type Error = Invalid;

    fn try_from(stored: StoredChange) -> Result<Self, Invalid> {
        Self::new(&stored.field, stored.format.as_deref())
    }
}
