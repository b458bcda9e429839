//! The secrets of a subscription, as JSON has them: whole on their way in, their number on the way out.

use std::fmt;

use flare_core::model::subscription::Signing;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The secrets to sign with: one, or two while rotating.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SigningGiven {
    /// `whsec_` and the base64 of 24 to 64 bytes.
    #[schema(required = true, nullable = false, value_type = Vec<String>, min_items = 1, max_items = 2)]
    pub(super) secrets: Option<Secrets>,
}

/// Secrets as they were given.
pub(super) struct Secrets(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Secrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = Secrets;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Secrets, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Secrets)
            }

            /// What a read shows, sent back.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, _: D) -> Result<Secrets, D::Error> {
                let reason =
                    "must be a list of secrets; to keep the ones that are set, leave out signing";
                Err(D::Error::custom(reason))
            }
        }
        deserializer.deserialize_any(Strings)
    }
}

/// How many secrets there are: they are never shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SigningShown {
    #[schema(minimum = 1, maximum = 2)]
    secrets: u32,
}

impl From<&Signing> for SigningShown {
    fn from(signing: &Signing) -> Self {
        Self { secrets: u32::try_from(signing.count()).unwrap_or(u32::MAX) }
    }
}
