//! Takes a consumer as a user writes it, or as Flare knows it; gives the other.

use std::collections::BTreeMap;
use std::fmt;

use flare_core::model::consumer::MappingInput;
use flare_core::model::{
    Consumer, ConsumerId, Invalid, NewConsumer, OnReject, ResourceId, SourceSettings,
};
use flare_core::port::{Listing, Page};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::entries::Entries;
use super::json::{RawJson, read};
use super::mapping::NewMapping;
use super::page::Pagination;
use super::unreadable::{Listed, ListedConsumer};
use super::word::{ConsumerStatusWord, OnRejectWord, Word};
use crate::problem::Problem;

/// What documents are pulled from, as it is asked for. Beside what is named here it has one more key: the kind of
/// its source, with the source's settings.
#[derive(Default, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewConsumer, example = json!({
    "resource": "0192f0e0-0000-7000-8000-000000000000",
    "sqs": {"queue": "users"},
    "document": {
        "url": "http://api.example.com/users/{/user/id}",
        "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"},
        "revision": "/ts"
    },
    "onReject": "keep"
}))]
pub(crate) struct ConsumerInput {
    /// Whose documents its messages become. Required of a new one; it stays with it.
    #[schema(format = "uuid", nullable = false)]
    resource: Option<String>,
    /// The settings of its source, below the word for the source's kind: `sqs`, `rabbitmq`, `kinesis`, or what
    /// the host adds.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Object>)]
    source: Option<(String, RawJson)>,
    /// How a message becomes a document.
    #[schema(required = true, nullable = false)]
    document: Option<NewMapping>,
    /// What becomes of a message that becomes none; it is kept unless set.
    #[schema(value_type = Option<OnRejectWord>)]
    on_reject: Option<OnReject>,
}

impl<'de> Deserialize<'de> for ConsumerInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = ConsumerInput;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConsumerInput, A::Error> {
                let mut input = ConsumerInput::default();
                while let Some(key) = map.next_key::<String>()? {
                    match (key.as_str(), &input.source) {
                        ("resource", _) => input.resource = map.next_value()?,
                        ("document", _) => input.document = map.next_value()?,
                        ("onReject", _) => input.on_reject = map.next_value()?,
                        // Reads show them, so some clients will send them back.
                        ("id" | "status" | "generation" | "createdAt" | "updatedAt", _) => {
                            map.next_value_seed(RefuseValue("is read-only".to_owned()))?;
                        }
                        // Which kinds there are the handle knows: any other key is one.
                        (_, None) => input.source = Some((key, map.next_value()?)),
                        (_, Some((first, _))) => {
                            let reason = format!(
                                "is unknown, or a second source: {first} is taken for the one it \
                                 has; known beside it: resource, document, onReject"
                            );
                            map.next_value_seed(RefuseValue(reason))?;
                        }
                    }
                }
                Ok(input)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Refuses a value; the reader of its object adds the key to the path.
struct RefuseValue(String);

impl<'de> DeserializeSeed<'de> for RefuseValue {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, _: D) -> Result<(), D::Error> {
        Err(D::Error::custom(self.0))
    }
}

impl ConsumerInput {
    /// The resource of a new one. What is not an id is the id of nothing.
    pub(crate) fn resource(&self) -> Result<ResourceId, Problem> {
        let given = self.resource.as_ref();
        let given = given.ok_or_else(|| Invalid::new("resource", "is required"))?;
        let unknown = || Problem::not_found(format!("there is no resource {given}"));
        given.parse().map_err(|_| unknown().field("resource"))
    }

    /// The resource, if it names one that could be.
    pub(crate) fn resource_given(&self) -> Result<Option<ResourceId>, Invalid> {
        let given = self.resource.as_ref().map(|given| given.parse());
        given.transpose().map_err(|_| Invalid::new("resource", "is not the id of a resource"))
    }

    /// Refuses another resource than the one a consumer has.
    pub(crate) fn check_resource(&self, its: ResourceId) -> Result<(), Invalid> {
        match &self.resource {
            Some(given) if given.parse() != Ok(its) => {
                Err(Invalid::new("resource", format!("cannot be changed: it is {its}")))
            }
            _ => Ok(()),
        }
    }
}

impl TryFrom<ConsumerInput> for NewConsumer {
    type Error = Invalid;

    fn try_from(input: ConsumerInput) -> Result<Self, Invalid> {
        let (kind, json) = input.source.ok_or_else(|| {
            let kinds = "sqs, rabbitmq, kinesis, or another kind that is known here";
            Invalid::new("source", format!("names no source: give one of {kinds}"))
        })?;
        let document = input.document.ok_or_else(|| Invalid::new("document", "is required"))?;
        let document = MappingInput::try_from(document);
        let document = document.map_err(|invalid| invalid.within("document"))?;
        let new = Self::new(settings(kind, &json)?, document);
        Ok(new.on_reject(input.on_reject.unwrap_or_default()))
    }
}

/// The settings of a source. A key that is given twice is refused, as everywhere.
fn settings(kind: String, json: &RawJson) -> Result<SourceSettings, Invalid> {
    let entries = read::<Entries<RawJson>>(json.as_bytes());
    let Entries(entries) = entries.map_err(|invalid| invalid.within(&kind))?;
    let mut values = Map::new();
    for (name, json) in entries {
        // Its depth and its numbers have bounds that a document's do not have.
        let value = serde_json::from_slice(json.as_bytes()).map_err(|error| {
            Invalid::new(name.clone(), format!("cannot be kept: {error}")).within(&kind)
        })?;
        values.insert(name, value);
    }
    SourceSettings::new(kind, Value::Object(values))
}

/// What documents are pulled from, and where that stands. Defaults are written out. Beside what is named here it
/// has one more key: the kind of its source, with the source's settings.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Consumer)]
pub(crate) struct ConsumerView {
    /// What it is known by.
    #[schema(value_type = String, format = "uuid")]
    id: ConsumerId,
    /// Whose documents its messages become.
    #[schema(value_type = String, format = "uuid")]
    resource: ResourceId,
    /// Raised by every change of it; also its `ETag`.
    generation: u64,
    status: ConsumerStatusWord,
    /// The settings of its source, below the word for the source's kind.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Object>)]
    source: BTreeMap<String, Value>,
    /// How a message becomes a document.
    #[schema(value_type = NewMapping)]
    document: MappingInput,
    on_reject: OnRejectWord,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<Consumer> for ConsumerView {
    fn from(consumer: Consumer) -> Self {
        let source = (consumer.source.kind().to_owned(), consumer.source.values());
        Self {
            id: consumer.id,
            resource: consumer.resource,
            generation: consumer.generation.get(),
            status: Word(consumer.status),
            source: BTreeMap::from([source]),
            document: consumer.mapping.input(),
            on_reject: Word(consumer.on_reject),
            created_at: consumer.created_at.to_string(),
            updated_at: consumer.updated_at.to_string(),
        }
    }
}

/// A page of consumers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConsumerList {
    pagination: Pagination,
    #[schema(value_type = Vec<ListedConsumer>)]
    consumers: Vec<Listed<ConsumerView>>,
}

impl ConsumerList {
    pub(crate) fn new(page: Page, listing: Listing<Consumer>) -> Self {
        let items = listing.items.into_iter().map(|it| (it.id.to_string(), it.into()));
        let consumers = Listed::page(items, &listing.unreadable);
        Self { pagination: Pagination::new(page, listing.total), consumers }
    }
}

/// The path of a consumer.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ConsumerPath {
    /// The id of the consumer.
    #[param(format = "uuid")]
    pub(crate) id: String,
}

/// The path of a consumer's producers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ProducersPath {
    /// The id of the consumer.
    #[param(format = "uuid")]
    pub(crate) cid: String,
}

/// The path of one of a consumer's producers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ProducerPath {
    /// The id of the consumer.
    #[param(format = "uuid")]
    pub(crate) cid: String,
    /// The id of the subscription.
    #[param(format = "uuid")]
    pub(crate) id: String,
}
