//! A number of bytes, written as people do: `65536`, `64KiB`, `1MiB`.

use std::fmt;

use flare_core::model::size::{format_size, parse_size};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// A number of bytes: an integer, or a string with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent(pub(crate) u64);

impl Extent {
    /// How it is described: what is read may be either, what is shown is a string.
    pub(crate) fn described() -> Object {
        let types = [Type::String, Type::Integer, Type::Null];
        ObjectBuilder::new()
            .schema_type(SchemaType::from_iter(types))
            .description(Some("The most bytes of the body, a number or a size such as `1MiB`, which it is unless set."))
            .build()
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Extent;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, or a size like \"64KiB\" or \"1MiB\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Extent, E> {
                parse_size(text).map(Extent).map_err(|invalid| E::custom(invalid.reason()))
            }

            /// A number, as the text it was written as.
            fn visit_newtype_struct<D>(self, text: D) -> Result<Extent, D::Error>
            where
                D: Deserializer<'de>,
            {
                let text = String::deserialize(text)?;
                parse_size(&text).map(Extent).map_err(|invalid| D::Error::custom(invalid.reason()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for Extent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_size(self.0))
    }
}
