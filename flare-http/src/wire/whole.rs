//! A whole number within bounds, read from the text it was written as.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// A whole number from `LOW` to `HIGH`; `1e2` and `200.0` are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const LOW: u32, const HIGH: u32>(pub(crate) u32);

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for Whole<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<const LOW: u32, const HIGH: u32>;
        impl<'de, const LOW: u32, const HIGH: u32> Visitor<'de> for Text<LOW, HIGH> {
            type Value = Whole<LOW, HIGH>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }

            fn visit_newtype_struct<D>(self, text: D) -> Result<Self::Value, D::Error>
            where
                D: Deserializer<'de>,
            {
                let number = String::deserialize(text)?.parse().ok();
                match number.filter(|number| (LOW..=HIGH).contains(number)) {
                    Some(number) => Ok(Whole(number)),
                    None => {
                        let reason = format!("must be an integer from {LOW} to {HIGH}");
                        Err(D::Error::custom(reason))
                    }
                }
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl<const LOW: u32, const HIGH: u32> Serialize for Whole<LOW, HIGH> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}
