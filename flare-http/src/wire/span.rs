//! A length of time, written as people do: `500ms`, `1s`, `5m`, `72h`.

use std::fmt;
use std::time::Duration;

use flare_core::model::duration::{format_duration, parse_duration};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// A length of time; a number is none, as it has no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration string like \"500ms\", \"1s\", \"5m\" or \"72h\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
                parse_duration(text).map(Span).map_err(|invalid| E::custom(invalid.reason()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}
