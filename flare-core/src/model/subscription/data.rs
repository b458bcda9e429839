//! Takes a client's own flat values; gives them checked, in order and with numbers as written.
//! Never goes through a float.

use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::model::json::{Json, Kind};
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
    /// The number's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Data {
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

    pub(crate) fn insert(&mut self, name: String, value: Json<'_>) -> Result<(), Invalid> {
        if self.get(&name).is_some() {
            return Err(Invalid::new(name, "is given twice"));
        }
        let value = DataValue::read(value).map_err(|invalid| invalid.within(&name))?;
        self.entries.push((name, value));
        self.check_sizes()
    }

    pub(crate) fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let Kind::Object = json.kind() else {
            return Err(json.refuse("an object of booleans, numbers, strings and lists of those"));
        };
        let entries = json.object()?.into_iter().map(|(name, value)| {
            let value = DataValue::read(value).map_err(|invalid| invalid.within(&name))?;
            Ok((name, value))
        });
        let data = Self { entries: entries.collect::<Result<_, Invalid>>()? };
        data.check_sizes()?;
        Ok(data)
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
    fn read(json: Json<'_>) -> Result<Self, Invalid> {
        match json.kind() {
            Kind::List => json.each(DataScalar::read).map(Self::List),
            Kind::Null | Kind::Object => {
                Err(json.refuse("a boolean, a number, a string or a list of those"))
            }
            _ => DataScalar::read(json).map(Self::Scalar),
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
    fn read(json: Json<'_>) -> Result<Self, Invalid> {
        match json.kind() {
            Kind::Bool => json.bool().map(Self::Bool),
            Kind::Number => Ok(Self::Number(DataNumber(json.text().to_owned()))),
            Kind::String => Template::parse(&json.string()?).map(Self::Text),
            _ => Err(json.refuse("a boolean, a number or a string")),
        }
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

/// A JSON string.
fn quoted(text: String) -> String {
    serde_json::Value::String(text).to_string()
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
