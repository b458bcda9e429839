//! A client's own values: flat, in order, and numbers as they were written.

use std::fmt;

use flare_core::model::subscription::{self, DataNumber, DataScalar};
use flare_core::model::{Invalid, Template};
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Object, RefOr, Type};
use utoipa::{PartialSchema, ToSchema};

use super::entries::Entries;

/// The client's own values.
pub(crate) struct Data(Entries<DataValue>);

/// A value of `data`: a scalar or a list of scalars.
pub(crate) struct DataValue(subscription::DataValue);

struct Scalar(DataScalar);

impl From<&subscription::Data> for Data {
    fn from(data: &subscription::Data) -> Self {
        let entries = data.iter().map(|(name, value)| (name.to_owned(), DataValue(value.clone())));
        Self(Entries(entries.collect()))
    }
}

impl TryFrom<Data> for subscription::Data {
    type Error = Invalid;

    fn try_from(Data(Entries(entries)): Data) -> Result<Self, Invalid> {
        Self::new(entries.into_iter().map(|(name, DataValue(value))| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = "an object of booleans, numbers, strings and lists of those";
        Entries::read(deserializer, words).map(Self)
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for DataValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = DataValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a boolean, a number, a string or a list of those")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<DataValue, E> {
                One.visit_bool(value).map(DataValue::from)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<DataValue, E> {
                One.visit_str(text).map(DataValue::from)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                number: D,
            ) -> Result<DataValue, D::Error> {
                One.visit_newtype_struct(number).map(DataValue::from)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<DataValue, A::Error> {
                let mut scalars = Vec::new();
                while let Some(Scalar(scalar)) = list.next_element()? {
                    scalars.push(scalar);
                }
                Ok(DataValue(subscription::DataValue::List(scalars)))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl From<Scalar> for DataValue {
    fn from(Scalar(scalar): Scalar) -> Self {
        Self(subscription::DataValue::Scalar(scalar))
    }
}

struct One;

impl<'de> Visitor<'de> for One {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, a number or a string")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar(DataScalar::Bool(value)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        let template = Template::parse(text).map_err(|invalid| E::custom(invalid.reason()))?;
        Ok(Scalar(DataScalar::Text(template)))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Scalar, D::Error> {
        let number = DataNumber::new(String::deserialize(number)?);
        let number = number.map_err(|invalid| D::Error::custom(invalid.reason()))?;
        Ok(Scalar(DataScalar::Number(number)))
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(One)
    }
}

impl Serialize for DataValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialSchema for DataValue {
    fn schema() -> RefOr<Schema> {
        let scalar = || {
            [Type::Boolean, Type::Number, Type::String]
                .into_iter()
                .fold(OneOfBuilder::new(), |one, kind| one.item(Object::with_type(kind)))
        };
        let list = ArrayBuilder::new().items(scalar());
        let about = "A value of `data`: a scalar or a list of scalars.";
        Schema::OneOf(scalar().item(list).description(Some(about)).build()).into()
    }
}

impl ToSchema for DataValue {}
