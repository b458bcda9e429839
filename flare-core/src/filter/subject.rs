//! Takes a document's JSON, revision and wildcard values; gives them as values of the language. Integers
//! are exact.

use std::collections::HashMap;
use std::fmt;

use cel::Env;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::{CowVal, Val};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::model::{Invalid, ShownRevision};

/// Bytes of a string that weigh as much as one value.
const BYTES: usize = 32;

/// What expressions are asked about.
#[derive(Debug)]
pub(super) struct FilterSubject {
    pub(super) document: Box<dyn Val>,
    pub(super) params: Box<dyn Val>,
    pub(super) revision: Option<Box<dyn Val>>,
    /// The weight of the document.
    pub(super) weight: u64,
}

impl FilterSubject {
    /// A document; refused under `document` if it is no JSON object.
    pub(super) fn new<'a>(
        env: &Env,
        json: &[u8],
        revision: Option<&ShownRevision>,
        params: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Invalid> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let read = AsValue.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
        let document = read.map_err(|error| {
            Invalid::new("document", format!("is not well-formed JSON: {error}"))
        })?;
        if document.downcast_ref::<CelMap<'_>>().is_none() {
            return Err(Invalid::new("document", "must be a JSON object"));
        }
        let weight = weight(&*document);
        let params: HashMap<CelMapKey<'static>, Box<dyn Val>> =
            params.into_iter().map(|(name, value)| (key(name), text(value))).collect();
        let revision = revision.and_then(|revision| shown(env, revision));
        Ok(Self { document, params: Box::new(CelMap::from(params)), revision, weight })
    }
}

impl FilterSubject {
    /// A field of the document, if it is there.
    pub(super) fn value_at(&self, path: &[String]) -> Option<&dyn Val> {
        field(&*self.document, path)
    }
}

/// A field somewhere in a value, if it is there.
pub(super) fn field<'a>(mut value: &'a dyn Val, path: &[String]) -> Option<&'a dyn Val> {
    for name in path {
        value = match value.as_indexer()?.get(&CelString::from(name.as_str())) {
            Ok(CowVal::Borrowed(value)) => value,
            _ => return None,
        };
    }
    Some(value)
}

fn key(name: impl Into<String>) -> CelMapKey<'static> {
    CelMapKey::String(CelString::from(name.into()))
}

fn text(text: impl Into<String>) -> Box<dyn Val> {
    Box::new(CelString::from(text.into()))
}

/// An integer, or the instant that a resource with a format shows.
fn shown(env: &Env, revision: &ShownRevision) -> Option<Box<dyn Val>> {
    match revision {
        ShownRevision::Number(number) => Some(Box::new(CelInt::from(*number))),
        ShownRevision::Time(time) => {
            let time: CowVal<'static, 'static> = CowVal::Owned(text(time.as_str()));
            let read = env.find_overload("timestamp", std::slice::from_ref(&time))?;
            read(vec![time]).ok().map(CowVal::into_owned)
        }
    }
}

/// What looking at everything in a value costs, in about the time that one value takes.
pub(super) fn weight(value: &dyn Val) -> u64 {
    let of_text = |text: &str| 1 + (text.len() / BYTES) as u64;
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        of_text(text.inner())
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        1 + list.inner().iter().map(|it| weight(&**it)).sum::<u64>()
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let of_key = |key: &CelMapKey<'_>| match key {
            CelMapKey::String(key) => of_text(key.inner()),
            _ => 1,
        };
        1 + map.inner().iter().map(|(key, value)| of_key(key) + weight(&**value)).sum::<u64>()
    } else {
        1
    }
}

/// Reads any JSON as a value.
#[derive(Clone, Copy)]
struct AsValue;

impl<'de> DeserializeSeed<'de> for AsValue {
    type Value = Box<dyn Val>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Box<dyn Val>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AsValue {
    type Value = Box<dyn Val>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Box<dyn Val>, E> {
        Ok(Box::new(CelNull))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Box<dyn Val>, E> {
        Ok(Box::new(CelBool::from(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Box<dyn Val>, E> {
        Ok(Box::new(CelInt::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Box<dyn Val>, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Box::new(CelInt::from(value)),
            Err(_) => Box::new(CelUInt::from(value)),
        })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Box<dyn Val>, E> {
        Ok(Box::new(CelDouble::from(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Box<dyn Val>, E> {
        Ok(text(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Box<dyn Val>, E> {
        Ok(text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Box<dyn Val>, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = from.next_element_seed(self)? {
            list.push(value);
        }
        Ok(Box::new(CelList::from(list)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Box<dyn Val>, A::Error> {
        let mut map = HashMap::new();
        while let Some(name) = from.next_key::<String>()? {
            map.insert(key(name), from.next_value_seed(self)?);
        }
        Ok(Box::new(CelMap::from(map)))
    }
}
