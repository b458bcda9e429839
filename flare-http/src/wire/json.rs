//! Takes the bytes of a body; gives any type of serde's from them, or the field that is wrong and why.
//! Never shows a value, which may be a secret, hands numbers on as they were written, and needs no
//! more stack for deep JSON than the type has depth.

use std::fmt;
use std::vec::IntoIter;

use flare_core::model::Invalid;
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use super::entries::Entries;

/// Reads one JSON value. A refusal has the path of its field, which is empty where the whole is wrong.
pub(crate) fn read<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Invalid> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Invalid::new("", format!("must be JSON in UTF-8: {error}")))?;
    let raw: &RawValue = decode(text).map_err(|Refusal(invalid)| invalid)?;
    T::deserialize(Json::of(raw)).map_err(|Refusal(invalid)| invalid)
}

/// What a type asks for that wants JSON as it was written.
const RAW_JSON: &str = "flare::RawJson";

/// JSON as it was written, whatever it is; for types that [`read`] reads.
pub(crate) struct RawJson(String);

impl RawJson {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = RawJson;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawJson, E> {
                Ok(RawJson(text.to_owned()))
            }
        }
        deserializer.deserialize_newtype_struct(RAW_JSON, Written)
    }
}

/// One JSON value that has not been looked into yet.
///
/// A number is an integer where one is asked for, else a newtype of its text; never a float, which would
/// change it.
#[derive(Clone, Copy)]
struct Json<'de>(&'de str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl<'de> Json<'de> {
    fn of(raw: &'de RawValue) -> Self {
        Self(raw.get().trim())
    }

    fn kind(self) -> Kind {
        match self.0.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// What a refusal may know of it.
    fn unexpected(self) -> Unexpected<'static> {
        match self.kind() {
            Kind::Null => Unexpected::Unit,
            Kind::Bool => Unexpected::Bool(true),
            Kind::Number => Unexpected::NewtypeStruct,
            Kind::String => Unexpected::Str(""),
            Kind::List => Unexpected::Seq,
            Kind::Object => Unexpected::Map,
        }
    }

    /// Reads it if it is of that kind, which the refusal calls by these words.
    fn only<V: Visitor<'de>>(
        self,
        kind: Kind,
        words: &str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if self.kind() != kind {
            return Err(de::Error::invalid_type(self.unexpected(), &words));
        }
        self.deserialize_any(visitor)
    }
}

/// What the parser found to be JSON can have bad escapes in its strings only.
fn decode<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Refusal> {
    serde_json::from_str(text)
        .map_err(|error| Refusal(Invalid::new("", format!("must be JSON: {error}"))))
}

macro_rules! integers {
    ($($read:ident)+) => {$(
        fn $read<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            match (self.kind(), self.0.parse(), self.0.parse()) {
                (Kind::Number, Ok(number), _) => visitor.visit_u64(number),
                (Kind::Number, _, Ok(number)) => visitor.visit_i64(number),
                (Kind::Number, ..) => Err(de::Error::custom("must be an integer within range")),
                _ => Err(de::Error::invalid_type(self.unexpected(), &"an integer")),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Json<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Bool => visitor.visit_bool(self.0 == "true"),
            Kind::Number => visitor.visit_newtype_struct(BorrowedStrDeserializer::new(self.0)),
            Kind::String => visitor.visit_string(decode(self.0)?),
            Kind::List => {
                let items: Vec<&RawValue> = decode(self.0)?;
                visitor.visit_seq(ListAccess { items: items.into_iter(), next: 0 })
            }
            Kind::Object => {
                let Entries(entries) = decode(self.0)?;
                check_once(&entries)?;
                visitor.visit_map(ObjectAccess { entries: entries.into_iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.kind() {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.only(Kind::Bool, "true or false", visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.only(Kind::String, "a string", visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.only(Kind::List, "a list", visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.only(Kind::Object, "an object", visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match name {
            RAW_JSON => visitor.visit_borrowed_str(self.0),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    /// A word; none has anything with it.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let word = String::deserialize(self)?;
        visitor.visit_enum(StrDeserializer::new(&word))
    }

    integers! { deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }
    integers! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 }

    forward_to_deserialize_any! {
        i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

struct ListAccess<'de> {
    items: IntoIter<&'de RawValue>,
    next: usize,
}

impl<'de> SeqAccess<'de> for ListAccess<'de> {
    type Error = Refusal;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Refusal> {
        let Some(raw) = self.items.next() else { return Ok(None) };
        let place = format!("[{}]", self.next);
        self.next += 1;
        seed.deserialize(Json::of(raw)).map(Some).map_err(|refusal| refusal.within(&place))
    }
}

struct ObjectAccess<'de> {
    entries: IntoIter<(String, &'de RawValue)>,
    value: Option<(String, &'de RawValue)>,
}

impl<'de> MapAccess<'de> for ObjectAccess<'de> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Refusal> {
        self.value = self.entries.next();
        let key = self.value.as_ref().map(|(key, _)| StrDeserializer::new(key));
        key.map(|key| seed.deserialize(key)).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refusal> {
        let Some((key, raw)) = self.value.take() else {
            return Err(de::Error::custom("must have a value for every key"));
        };
        seed.deserialize(Json::of(raw)).map_err(|refusal| refusal.within(&key))
    }
}

/// Refuses a key that is given twice, known or not.
fn check_once(entries: &[(String, &RawValue)]) -> Result<(), Refusal> {
    let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Refusal(Invalid::new(twice[0].to_owned(), "is given twice"))),
        None => Ok(()),
    }
}

/// What serde has to say, in the words and with the path of the model's own refusals.
#[derive(Debug)]
struct Refusal(Invalid);

impl Refusal {
    fn within(self, parent: &str) -> Self {
        Self(self.0.within(parent))
    }
}

impl de::Error for Refusal {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self(Invalid::new("", reason.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Unit | Unexpected::Option => "null",
            Unexpected::Bool(_) => "true or false",
            Unexpected::Str(_) => "a string",
            Unexpected::Seq => "a list",
            Unexpected::Map => "an object",
            _ => "a number",
        };
        Self(Invalid::new("", format!("must be {wanted}, not {found}")))
    }

    fn invalid_value(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self(Invalid::new("", format!("must be within the range of {wanted}")))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let reason = match known {
            [] => "is unknown: there are no fields here".to_owned(),
            known => format!("is unknown; known here: {}", known.join(", ")),
        };
        Self(Invalid::new(field.to_owned(), reason))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        let words = match known {
            [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
            words => words.concat(),
        };
        Self(Invalid::new("", format!("must be {words}")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self(Invalid::new(field, "is required"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refusal {}
