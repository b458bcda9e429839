//! Takes a document's bytes and a path; gives the text of the one value there, in one pass.
//!
//! Never builds the document: what is not on the path is read and dropped. It is read as
//! `serde_json::Value` would be, though, nesting limit included, so that whatever is accepted here
//! can be read as a value later.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::field::PathStep;

/// What stands at the end of a path.
pub(in crate::model) enum FoundValue<'d> {
    One(&'d RawValue),
    Missing,
    Repeated,
}

/// Why the bytes are no document.
pub(in crate::model) enum NoDocument {
    /// JSON of another kind, or nothing at all.
    Kind(&'static str),
    /// No JSON.
    Malformed(String),
}

impl NoDocument {
    /// The same in words.
    pub(in crate::model) fn reason(&self) -> String {
        match self {
            Self::Kind(kind) => format!("must be a JSON object, found {kind}"),
            Self::Malformed(error) => format!("is not well-formed JSON: {error}"),
        }
    }
}

pub(in crate::model) fn find<'d>(
    document: &'d [u8],
    path: &[PathStep],
) -> Result<FoundValue<'d>, NoDocument> {
    let malformed = |error: &dyn fmt::Display| NoDocument::Malformed(error.to_string());
    // Once for all strings, those that are dropped included.
    let text = std::str::from_utf8(document).map_err(|error| malformed(&error))?;
    let first = text.trim_start_matches([' ', '\t', '\n', '\r']).bytes().next();
    if let Some(kind) = other_kind(first) {
        return Err(NoDocument::Kind(kind));
    }
    let mut found = FoundValue::Missing;
    let mut json = serde_json::Deserializer::from_str(text);
    let goal = Some(Goal { path, found: &mut found });
    ReadValue { goal }.deserialize(&mut json).map_err(|error| malformed(&error))?;
    json.end().map_err(|error| malformed(&error))?;
    Ok(found)
}

fn other_kind(first: Option<u8>) -> Option<&'static str> {
    match first {
        None => Some("nothing"),
        Some(b'[') => Some("an array"),
        Some(b'"') => Some("a string"),
        Some(b't' | b'f') => Some("a boolean"),
        Some(b'n') => Some("null"),
        Some(b'-' | b'0'..=b'9') => Some("a number"),
        Some(_) => None,
    }
}

/// Reads one value. With a goal it follows the path into it, or takes it where the path has ended;
/// without one it only makes sure that it is JSON.
struct ReadValue<'p, 'f, 'd> {
    goal: Option<Goal<'p, 'f, 'd>>,
}

struct Goal<'p, 'f, 'd> {
    path: &'p [PathStep],
    found: &'f mut FoundValue<'d>,
}

impl ReadValue<'_, '_, '_> {
    const DROP: Self = Self { goal: None };
}

impl<'d> DeserializeSeed<'d> for ReadValue<'_, '_, 'd> {
    type Value = ();

    fn deserialize<D: Deserializer<'d>>(self, json: D) -> Result<(), D::Error> {
        match self.goal {
            Some(Goal { path: [], found }) => {
                // The text itself: a number must not pass through a float.
                *found = FoundValue::One(<&RawValue>::deserialize(json)?);
                Ok(())
            }
            goal => json.deserialize_any(ReadValue { goal }),
        }
    }
}

impl<'d> Visitor<'d> for ReadValue<'_, '_, 'd> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(Goal { path: [step, path @ ..], found }) = self.goal else {
            while map.next_key_seed(IsKey(""))?.is_some() {
                map.next_value_seed(ReadValue::DROP)?;
            }
            return Ok(());
        };
        let mut seen = false;
        while let Some(here) = map.next_key_seed(IsKey(&step.key))? {
            if !here {
                map.next_value_seed(ReadValue::DROP)?;
            } else if !seen {
                seen = true;
                map.next_value_seed(ReadValue { goal: Some(Goal { path, found: &mut *found }) })?;
            } else {
                // Which of the two is meant is unclear, whatever lies below them.
                map.next_value_seed(ReadValue::DROP)?;
                *found = FoundValue::Repeated;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'d>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Some(Goal { path: [PathStep { index: Some(index), .. }, path @ ..], found }) =
            self.goal
        {
            for _ in 0..*index {
                if seq.next_element_seed(ReadValue::DROP)?.is_none() {
                    return Ok(());
                }
            }
            if seq.next_element_seed(ReadValue { goal: Some(Goal { path, found }) })?.is_none() {
                return Ok(());
            }
        }
        while seq.next_element_seed(ReadValue::DROP)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a key and compares it, unescaped, without a copy of it.
struct IsKey<'k>(&'k str);

impl<'d> DeserializeSeed<'d> for IsKey<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'d>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for IsKey<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
