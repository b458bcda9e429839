//! Takes records as the server hands them out; gives their fields as Flare's values, or says which
//! one cannot be understood. And the other way round.

use flare_core::model::{Revision, Timestamp, Version};
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, doc};

use crate::BACKEND;

/// Store time in a pipeline: nanoseconds, like every time we keep, from the server's clock of
/// milliseconds.
pub(crate) fn now() -> Bson {
    doc! { "$multiply": [{ "$toLong": "$$NOW" }, 1_000_000_i64] }.into()
}

pub(crate) fn id(bytes: &[u8; 16]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: bytes.to_vec() })
}

pub(crate) fn bytes(bytes: &[u8]) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() })
}

/// Versions compare as they should: first by revision, then live before gone. So the order of the
/// fields matters, here and in every pipeline.
pub(crate) fn version(version: Version) -> Bson {
    doc! { "revision": version.revision().get(), "gone": version.is_gone() }.into()
}

pub(crate) fn time(time: Timestamp) -> Bson {
    Bson::Int64(time.unix_nanos())
}

/// Numbers of ours that only count up (epochs, generations): far below 2^63.
pub(crate) fn count(number: u64) -> Bson {
    Bson::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A value that a pipeline must take as it is, whatever it looks like.
pub(crate) fn literal(value: impl Into<Bson>) -> Bson {
    doc! { "$literal": value.into() }.into()
}

/// One record, or one of the records inside it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    operation: &'static str,
    fields: &'a Document,
}

impl<'a> Record<'a> {
    pub(crate) fn new(operation: &'static str, fields: &'a Document) -> Self {
        Self { operation, fields }
    }

    /// A value that is not what it should be: written by a newer Flare, or by somebody else.
    pub(crate) fn corrupt(&self, field: &str) -> Error {
        let shown = self.fields.get("_id").map_or_else(|| "?".to_owned(), Bson::to_string);
        let detail = format!("{field} of record {shown} is not understood");
        Error::new(ErrorKind::Corrupt, self.operation)
            .with_backend(BACKEND)
            .with_field(field.to_owned())
            .with_detail(detail)
    }

    /// What it is read for.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// A value as it is, for whoever can do without it.
    pub(crate) fn any(&self, field: &str) -> Option<&'a Bson> {
        self.value(field)
    }

    fn value(&self, field: &str) -> Option<&'a Bson> {
        self.fields.get(field).filter(|value| !matches!(value, Bson::Null))
    }

    fn required<T>(&self, field: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| self.corrupt(field))
    }

    /// The record inside it.
    pub(crate) fn inner(&self, field: &str) -> Result<Record<'a>> {
        let inner = self.inner_if_any(field)?;
        self.required(field, inner)
    }

    pub(crate) fn inner_if_any(&self, field: &str) -> Result<Option<Record<'a>>> {
        match self.value(field) {
            None => Ok(None),
            Some(Bson::Document(fields)) => Ok(Some(Record { operation: self.operation, fields })),
            Some(_) => Err(self.corrupt(field)),
        }
    }

    pub(crate) fn id(&self, field: &str) -> Result<[u8; 16]> {
        let bytes = match self.value(field) {
            Some(Bson::Binary(binary)) => binary.bytes.as_slice().try_into().ok(),
            _ => None,
        };
        self.required(field, bytes)
    }

    pub(crate) fn object_id(&self, field: &str) -> Result<ObjectId> {
        let id = self.value(field).and_then(Bson::as_object_id);
        self.required(field, id)
    }

    pub(crate) fn bytes_if_any(&self, field: &str) -> Result<Option<&'a [u8]>> {
        match self.value(field) {
            None => Ok(None),
            Some(Bson::Binary(binary)) => Ok(Some(&binary.bytes)),
            Some(_) => Err(self.corrupt(field)),
        }
    }

    pub(crate) fn text(&self, field: &str) -> Result<&'a str> {
        let text = self.text_if_any(field)?;
        self.required(field, text)
    }

    pub(crate) fn text_if_any(&self, field: &str) -> Result<Option<&'a str>> {
        match self.value(field) {
            None => Ok(None),
            Some(Bson::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.corrupt(field)),
        }
    }

    /// A whole number, however the server spells it.
    pub(crate) fn number_if_any(&self, field: &str) -> Result<Option<i64>> {
        match self.value(field) {
            None => Ok(None),
            Some(Bson::Int64(number)) => Ok(Some(*number)),
            Some(Bson::Int32(number)) => Ok(Some(i64::from(*number))),
            Some(_) => Err(self.corrupt(field)),
        }
    }

    pub(crate) fn number(&self, field: &str) -> Result<i64> {
        let number = self.number_if_any(field)?;
        self.required(field, number)
    }

    /// A whole number of a smaller type.
    pub(crate) fn small<T: TryFrom<i64>>(&self, field: &str) -> Result<T> {
        T::try_from(self.number(field)?).map_err(|_| self.corrupt(field))
    }

    pub(crate) fn flag(&self, field: &str) -> Result<bool> {
        match self.value(field) {
            None => Ok(false),
            Some(Bson::Boolean(flag)) => Ok(*flag),
            Some(_) => Err(self.corrupt(field)),
        }
    }

    pub(crate) fn time(&self, field: &str) -> Result<Timestamp> {
        self.number(field).map(Timestamp::from_unix_nanos)
    }

    pub(crate) fn time_if_any(&self, field: &str) -> Result<Option<Timestamp>> {
        Ok(self.number_if_any(field)?.map(Timestamp::from_unix_nanos))
    }

    pub(crate) fn version(&self, field: &str) -> Result<Version> {
        let version = self.version_if_any(field)?;
        self.required(field, version)
    }

    pub(crate) fn version_if_any(&self, field: &str) -> Result<Option<Version>> {
        let Some(inner) = self.inner_if_any(field)? else { return Ok(None) };
        let revision = Revision::new(inner.number("revision")?);
        Ok(Some(if inner.flag("gone")? {
            Version::gone(revision)
        } else {
            Version::live(revision)
        }))
    }

    pub(crate) fn array_if_any(&self, field: &str) -> Result<Option<&'a [Bson]>> {
        match self.value(field) {
            None => Ok(None),
            Some(Bson::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.corrupt(field)),
        }
    }
}
