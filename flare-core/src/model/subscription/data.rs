//! Takes a client's own flat values; gives them checked, in order and with numbers as written.
//! Never goes through a float.

use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{Escape, Invalid, MissingValue, Template};

/// The most entries of `data`.
pub const MAX_DATA_ENTRIES: usize = 256;
/// The most bytes of `data`'s names and values, before interpolation.
pub const MAX_DATA_BYTES: usize = 64 * 1024;

/// Values of the client's own that every envelope carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    entries: Vec<(String, DataValue)>,
}

/// One value of [`Data`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum DataValue {
    /// A single value.
    Scalar(DataScalar),
    /// A list of single values.
    List(Vec<DataScalar>),
}

/// One single value of [`Data`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum DataScalar {
    /// True or false.
    Bool(bool),
    /// A number.
    Number(DataNumber),
    /// A string, interpolated.
    Text(Template),
}

/// A JSON number, byte for byte as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataNumber(String);

impl DataNumber {
    /// Takes the text of one JSON number. The refusal has an empty field.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text = text.into();
        let number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        // A parser of JSON would take what is around it for space.
        let whole = text.ends_with(|c: char| c.is_ascii_digit());
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(_) if number && whole => Ok(Self(text)),
            _ => Err(Invalid::new("", "must be a JSON number")),
        }
    }

    /// The number's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Data {
    /// Takes names with their values; a name is given once.
    pub fn new(entries: impl IntoIterator<Item = (String, DataValue)>) -> Result<Self, Invalid> {
        let mut data = Self::default();
        for (name, value) in entries {
            data.add(name, value)?;
        }
        Ok(data)
    }

    /// The names with their values, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &DataValue)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&DataValue> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The JSON object an envelope carries: every placeholder filled in, the rest as it was given.
    pub fn render<'v>(
        &self,
        lookup: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, MissingValue> {
        let mut out = String::from("{");
        for (i, (name, value)) in self.entries.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            out.push_str(&quoted(name.clone()));
            out.push(':');
            match value {
                DataValue::Scalar(scalar) => out.push_str(&scalar.render(&lookup)?),
                DataValue::List(scalars) => {
                    let texts: Result<Vec<_>, _> =
                        scalars.iter().map(|scalar| scalar.render(&lookup)).collect();
                    out.push('[');
                    out.push_str(&texts?.join(","));
                    out.push(']');
                }
            }
        }
        out.push('}');
        Ok(out)
    }

    /// No fewer bytes than it has in an envelope of a document whose URL has `url` bytes: a character
    /// takes six at most, and a value is a part of the URL or a revision.
    pub(crate) fn most_bytes(&self, url: usize) -> usize {
        const ESCAPED: usize = 6;
        const REVISION: usize = 40;
        let placeholders: usize =
            self.templates().map(|(_, template)| template.names().count()).sum();
        let given: usize =
            self.entries.iter().map(|(name, value)| name.len() + value.len() + ESCAPED).sum();
        let values: usize = self.entries.iter().map(|(_, value)| value.count() * ESCAPED).sum();
        given * ESCAPED + values + placeholders * (url * ESCAPED + REVISION)
    }

    /// Every template with its path within `data`.
    pub(crate) fn templates(&self) -> impl Iterator<Item = (String, &Template)> {
        self.entries.iter().flat_map(|(name, value)| {
            let (scalars, listed) = match value {
                DataValue::Scalar(scalar) => (std::slice::from_ref(scalar), false),
                DataValue::List(scalars) => (scalars.as_slice(), true),
            };
            scalars.iter().enumerate().filter_map(move |(i, scalar)| match scalar {
                DataScalar::Text(text) if listed => Some((format!("{name}[{i}]"), text)),
                DataScalar::Text(text) => Some((name.clone(), text)),
                DataScalar::Bool(_) | DataScalar::Number(_) => None,
            })
        })
    }

    pub(crate) fn add(&mut self, name: String, value: DataValue) -> Result<(), Invalid> {
        if self.get(&name).is_some() {
            return Err(Invalid::new(name, "is given twice"));
        }
        self.entries.push((name, value));
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), Invalid> {
        if self.entries.len() > MAX_DATA_ENTRIES {
            return Err(Invalid::new("", format!("must have at most {MAX_DATA_ENTRIES} entries")));
        }
        let bytes: usize = self.entries.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > MAX_DATA_BYTES {
            return Err(Invalid::new("", format!("must be at most {MAX_DATA_BYTES} bytes")));
        }
        Ok(())
    }
}

impl DataValue {
    /// Takes the text of one JSON value. The refusal has an empty field, or the place in the list.
    pub(crate) fn read(json: &str) -> Result<Self, Invalid> {
        if !json.starts_with('[') {
            let wanted = "a boolean, a number, a string or a list of those";
            return DataScalar::read(json, wanted).map(Self::Scalar);
        }
        let items: Vec<&RawValue> = serde_json::from_str(json).map_err(not_json)?;
        let scalars = items.into_iter().enumerate().map(|(i, item)| {
            DataScalar::read(item.get(), "a boolean, a number or a string")
                .map_err(|invalid| invalid.within(&format!("[{i}]")))
        });
        scalars.collect::<Result<_, _>>().map(Self::List)
    }

    fn count(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::List(scalars) => scalars.len(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Scalar(scalar) => scalar.len(),
            Self::List(scalars) => scalars.iter().map(|scalar| scalar.len() + 1).sum(),
        }
    }
}

impl DataScalar {
    fn read(json: &str, wanted: &str) -> Result<Self, Invalid> {
        if let Ok(number) = DataNumber::new(json) {
            return Ok(Self::Number(number));
        }
        let kind = match serde_json::from_str(json).map_err(not_json)? {
            Value::Bool(value) => return Ok(Self::Bool(value)),
            Value::String(text) => return Template::parse(&text).map(Self::Text),
            Value::Null => "null",
            Value::Number(_) => "a number",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Err(Invalid::new("", format!("must be {wanted}, not {kind}")))
    }

    fn render<'v>(
        &self,
        lookup: &impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, MissingValue> {
        Ok(match self {
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.0.clone(),
            Self::Text(template) => quoted(template.render(Escape::None, lookup)?),
        })
    }

    fn len(&self) -> usize {
        match self {
            Self::Bool(_) => 5,
            Self::Number(number) => number.0.len(),
            Self::Text(template) => template.as_str().len(),
        }
    }
}

fn not_json(error: serde_json::Error) -> Invalid {
    Invalid::new("", format!("must be JSON: {error}"))
}

/// A JSON string.
fn quoted(text: String) -> String {
    Value::String(text).to_string()
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entries.len()))?;
        for (name, value) in &self.entries {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for DataNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw = RawValue::from_string(self.0.clone()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}
