//! Takes what a caller wishes to have pulled and where that stands; gives the record the stores keep, as text
//! with names of its own.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Mapping, MappingInput, SourceSettings};
use crate::model::kept::KeptFields;
use crate::model::{ConsumerId, Generation, Invalid, ResourceId, Timestamp};

/// An input that documents of a resource are pulled from, and where it stands.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Consumer {
    /// What it is known by.
    pub id: ConsumerId,
    /// Whose documents its messages become.
    pub resource: ResourceId,
    /// Raised by every replacement, pause and resume.
    pub generation: Generation,
    /// Where it stands.
    pub status: ConsumerStatus,
    /// What it pulls from.
    pub source: SourceSettings,
    /// How a message becomes a document.
    pub mapping: Mapping,
    /// What becomes of a message that becomes none.
    pub on_reject: OnReject,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What a newer version stored with it.
    kept: KeptFields,
}

/// Whether a consumer pulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsumerStatus {
    /// It does.
    #[default]
    Active,
    /// It does not until it is resumed.
    Paused,
}

/// What becomes of a message that cannot become a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnReject {
    /// It is kept as a reject, to be listed and retried, and the broker is told that it is done.
    #[default]
    Keep,
    /// It is left to the broker's own rule for what is refused.
    Leave,
}

/// What a caller says of a consumer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewConsumer {
    /// What it pulls from.
    pub source: SourceSettings,
    /// How a message becomes a document.
    pub document: MappingInput,
    /// What becomes of a message that becomes none.
    pub on_reject: OnReject,
}

impl NewConsumer {
    /// Pulls from there; messages become documents like this.
    pub fn new(source: SourceSettings, document: MappingInput) -> Self {
        Self { source, document, on_reject: OnReject::default() }
    }

    /// The same, with another way to treat what becomes no document.
    #[must_use]
    pub fn on_reject(mut self, on_reject: OnReject) -> Self {
        self.on_reject = on_reject;
        self
    }
}

/// What a store keeps of it as text; id, resource and generation it keeps beside that.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConsumerText {
    #[serde(default)]
    status: ConsumerStatus,
    source: SourceText,
    document: MappingInput,
    #[serde(default)]
    on_reject: OnReject,
    created_at: i64,
    updated_at: i64,
}

#[derive(Serialize, Deserialize)]
struct SourceText {
    kind: String,
    settings: Value,
}

impl Consumer {
    /// A consumer that pulls from now on.
    pub fn new(
        id: ConsumerId,
        resource: ResourceId,
        source: SourceSettings,
        mapping: Mapping,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            resource,
            generation: Generation::new(1),
            status: ConsumerStatus::Active,
            source,
            mapping,
            on_reject: OnReject::default(),
            created_at: now,
            updated_at: now,
            kept: KeptFields::default(),
        }
    }

    /// The text a store keeps, with all that a newer version had put there.
    pub fn stored(&self) -> Result<String, Invalid> {
        let text = self.written()?;
        if self.kept.is_empty() {
            return Ok(text);
        }
        let text = self.kept.put_back(&text).map_err(|error| damaged(&error))?;
        Ok(text.get().to_owned())
    }

    /// Reads the text of the [stored form](Self::stored).
    pub fn from_stored(
        id: ConsumerId,
        resource: ResourceId,
        generation: Generation,
        text: &str,
    ) -> Result<Self, Invalid> {
        let read: ConsumerText = serde_json::from_str(text).map_err(|error| damaged(&error))?;
        let mut consumer = Self {
            id,
            resource,
            generation,
            status: read.status,
            source: SourceSettings::new(read.source.kind, read.source.settings)?,
            mapping: Mapping::new(read.document)?,
            on_reject: read.on_reject,
            created_at: Timestamp::from_unix_nanos(read.created_at),
            updated_at: Timestamp::from_unix_nanos(read.updated_at),
            kept: KeptFields::default(),
        };
        consumer.kept = KeptFields::beyond(&consumer.written()?, text);
        Ok(consumer)
    }

    /// The same as replaced by `newer`: what identifies it stays, and so does what only a newer version knows.
    #[must_use]
    pub fn replaced_by(&self, newer: Self) -> Self {
        Self {
            id: self.id,
            resource: self.resource,
            generation: self.generation.next(),
            created_at: self.created_at,
            kept: self.kept.clone(),
            ..newer
        }
    }

    fn written(&self) -> Result<String, Invalid> {
        let text = ConsumerText {
            status: self.status,
            source: SourceText {
                kind: self.source.kind().to_owned(),
                settings: self.source.values(),
            },
            document: self.mapping.input(),
            on_reject: self.on_reject,
            created_at: self.created_at.unix_nanos(),
            updated_at: self.updated_at.unix_nanos(),
        };
        serde_json::to_string(&text).map_err(|error| damaged(&error))
    }
}

fn damaged(error: &serde_json::Error) -> Invalid {
    Invalid::new("", format!("is damaged: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn consumer() -> Consumer {
        let source = SourceSettings::new("sqs", json!({"queue": "users"})).unwrap();
        let url = "http://api.example.com/users/{/id}".to_owned();
        let input = MappingInput { url, ..MappingInput::default() };
        let mapping = Mapping::new(input).unwrap();
        let (id, resource) = (ConsumerId::from_bytes([1; 16]), ResourceId::from_bytes([2; 16]));
        let mut consumer =
            Consumer::new(id, resource, source, mapping, Timestamp::from_unix_nanos(7));
        consumer.on_reject = OnReject::Leave;
        consumer
    }

    #[test]
    fn what_is_stored_is_read_back_with_what_is_not_known() {
        let consumer = consumer();
        let text = consumer.stored().unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"status":"active","source":{"kind":"sqs","settings":{"queue":"users"}},"#,
                r#""document":{"url":"http://api.example.com/users/{/id}"},"onReject":"leave","#,
                r#""createdAt":7,"updatedAt":7}"#
            )
        );
        let read = |text: &str| {
            Consumer::from_stored(consumer.id, consumer.resource, consumer.generation, text)
        };
        assert_eq!(read(&text).unwrap(), consumer);
        let newer = text.replace(r#""status""#, r#""speed":[1.000],"status""#);
        let again = read(&newer).unwrap().replaced_by(consumer.clone());
        assert_eq!(again.generation, Generation::new(2));
        assert!(again.stored().unwrap().contains(r#""speed":[1.000]"#));
        assert!(read("{}").is_err() && read("").is_err());
    }
}
