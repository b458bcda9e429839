//! Takes JSON text; gives its values one level at a time, each refusal with the path it belongs to.
//! Never builds a tree, so numbers keep their exact text and depth costs no stack.

use std::cell::RefCell;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Invalid;
use super::duration::parse_duration;
use super::kept::KeptFields;

/// One JSON value that has not been looked into yet.
#[derive(Clone, Copy)]
pub(crate) struct Json<'a> {
    text: &'a str,
    /// Where fields go that nobody knows; without it they are refused.
    aside: Option<&'a Aside>,
}

/// Takes the unknown fields of an object and of those inside it, where they are kept and not
/// refused: what is stored may have been written by a newer version.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    /// The fields that are being looked into.
    path: RefCell<Vec<String>>,
    kept: RefCell<KeptFields>,
}

impl Aside {
    /// What was put aside.
    pub(crate) fn into_kept(self) -> KeptFields {
        self.kept.into_inner()
    }

    fn put(&self, name: String, value: Json<'_>) {
        let mut path = self.path.borrow().clone();
        path.push(name);
        self.kept.borrow_mut().keep(path, value.text);
    }
}

/// The kinds of JSON value, as a person calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl<'a> Json<'a> {
    /// Checks that the bytes are one JSON value.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Invalid::new("", format!("must be JSON in UTF-8: {error}")))?;
        let raw: &RawValue = serde_json::from_str(text)
            .map_err(|error| Invalid::new("", format!("must be JSON: {error}")))?;
        Ok(Self::of(raw))
    }

    /// A value that the JSON parser has already delimited.
    pub(crate) fn of(raw: &'a RawValue) -> Self {
        Self::text_of(raw.get().trim())
    }

    /// A value whose text is known to be one.
    pub(super) fn text_of(text: &'a str) -> Self {
        Self { text, aside: None }
    }

    /// The same; unknown fields of it are put aside.
    pub(crate) fn putting(self, aside: &'a Aside) -> Self {
        Self { aside: Some(aside), ..self }
    }

    pub(crate) fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::List,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// The value's text, exactly as written.
    pub(crate) fn text(self) -> &'a str {
        self.text
    }

    pub(crate) fn string(self) -> Result<String, Invalid> {
        if self.kind() != Kind::String {
            return Err(self.refuse("a string"));
        }
        self.decode()
    }

    pub(crate) fn bool(self) -> Result<bool, Invalid> {
        match self.text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.refuse("true or false")),
        }
    }

    /// An integer in `range`, which the refusal names.
    pub(crate) fn integer(self, range: &RangeInclusive<u32>) -> Result<u32, Invalid> {
        if self.kind() != Kind::Number {
            return Err(self.refuse("an integer"));
        }
        self.text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| out_of(range))
    }

    /// A duration string; a number is refused with the form it should have.
    pub(crate) fn duration(self) -> Result<Duration, Invalid> {
        match self.kind() {
            Kind::String => parse_duration(&self.string()?),
            _ => Err(self.refuse("a duration string like \"500ms\", \"1s\", \"5m\" or \"72h\"")),
        }
    }

    /// The entries of a list, each to be read [`within`](Invalid::within) its `[index]`.
    pub(crate) fn list(self) -> Result<Vec<Self>, Invalid> {
        if self.kind() != Kind::List {
            return Err(self.refuse("a list"));
        }
        Ok(self.decode::<Vec<&RawValue>>()?.into_iter().map(Self::of).collect())
    }

    /// Reads every entry of a list with `read`, naming the index of the one that is refused.
    pub(crate) fn each<T>(
        self,
        read: impl Fn(Self) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Invalid> {
        let entries = self.list()?.into_iter().enumerate();
        entries.map(|(i, entry)| read(entry).map_err(|e| e.within(&format!("[{i}]")))).collect()
    }

    /// The entries of an object in the order given; a key given twice is refused.
    pub(crate) fn object(self) -> Result<Vec<(String, Self)>, Invalid> {
        if self.kind() != Kind::Object {
            return Err(self.refuse("an object"));
        }
        let Entries(entries) = self.decode()?;
        let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Invalid::new(twice[0].to_owned(), "is given twice"));
        }
        Ok(entries)
    }

    /// The entries of an object whose keys are known, to be taken one by one.
    pub(crate) fn fields(self) -> Result<Fields<'a>, Invalid> {
        Ok(Fields { entries: self.object()?, aside: self.aside })
    }

    fn decode<T: Deserialize<'a>>(self) -> Result<T, Invalid> {
        // The outer parser has seen this text, so what is left are bad escapes in strings.
        serde_json::from_str(self.text)
            .map_err(|error| Invalid::new("", format!("must be JSON: {error}")))
    }

    /// A refusal that says what the value must be and what kind it is; never the value itself.
    pub(crate) fn refuse(self, wanted: &str) -> Invalid {
        Invalid::new("", format!("must be {wanted}, not {}", self.kind()))
    }
}

/// Refuses an integer outside `range`.
pub(crate) fn out_of(range: &RangeInclusive<u32>) -> Invalid {
    let (low, high) = (range.start(), range.end());
    Invalid::new("", format!("must be an integer from {low} to {high}"))
}

/// As [`Json::integer`] does for one that is already a number.
pub(crate) fn in_range(value: u32, range: &RangeInclusive<u32>) -> Result<u32, Invalid> {
    if range.contains(&value) { Ok(value) } else { Err(out_of(range)) }
}

/// The fields of an object that are still to be taken.
pub(crate) struct Fields<'a> {
    entries: Vec<(String, Json<'a>)>,
    aside: Option<&'a Aside>,
}

impl<'a> Fields<'a> {
    /// Takes a field, telling absent (`None`) from null.
    pub(crate) fn take_nullable(&mut self, name: &str) -> Option<Json<'a>> {
        let at = self.entries.iter().position(|(key, _)| key == name)?;
        Some(self.entries.remove(at).1)
    }

    /// Takes and reads a field; null is the same as not given.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Json<'a>) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Invalid> {
        match self.take_nullable(name) {
            Some(value) if value.kind() != Kind::Null => self.within(name, value, read).map(Some),
            _ => Ok(None),
        }
    }

    /// Reads a field that was taken.
    pub(crate) fn within<T>(
        &self,
        name: &str,
        value: Json<'a>,
        read: impl FnOnce(Json<'a>) -> Result<T, Invalid>,
    ) -> Result<T, Invalid> {
        if let Some(aside) = self.aside {
            aside.path.borrow_mut().push(name.to_owned());
        }
        let read = read(Json { aside: self.aside, ..value });
        if let Some(aside) = self.aside {
            aside.path.borrow_mut().pop();
        }
        read.map_err(|invalid| invalid.within(name))
    }

    /// Refuses whatever was not taken, naming its key and the ones that exist, or puts it aside.
    pub(crate) fn finish(self, known: &[&str]) -> Result<(), Invalid> {
        if let Some(aside) = self.aside {
            self.entries.into_iter().for_each(|(name, value)| aside.put(name, value));
            return Ok(());
        }
        match self.entries.into_iter().next() {
            None => Ok(()),
            Some((key, _)) => {
                let reason = format!("is unknown; known here: {}", known.join(", "));
                Err(Invalid::new(key, reason))
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        })
    }
}

struct Entries<'a>(Vec<(String, Json<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, Json<'de>)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    entries.push((key, Json::of(value)));
                }
                Ok(entries)
            }
        }
        deserializer.deserialize_map(InOrder).map(Entries)
    }
}
