//! How messages become documents, as it is read; a message that this is tried on, and what would become of it.

use flare_core::TriedDocument;
use flare_core::model::Invalid;
use flare_core::model::consumer::{DeleteInput, MappingInput, Rejection};
use flare_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::json::{RawJson, read};
use super::revision::RevisionView;

/// A mapping, and a message it is tried on.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(example = json!({
    "document": {
        "url": "http://api.example.com/users/{/user/id}",
        "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"},
        "revision": "/ts"
    },
    "message": {"op": "u", "ts": 12, "user": {"id": "ada", "rev": 12}}
}))]
pub(crate) struct MappingTest {
    /// How messages become documents.
    pub(crate) document: NewMapping,
    /// The message, as a broker would give it.
    #[schema(value_type = Object)]
    pub(crate) message: RawJson,
}

/// How a consumer's messages become documents.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Mapping)]
pub(crate) struct NewMapping {
    /// How messages are wrapped.
    #[schema(nullable = false)]
    preset: Option<String>,
    /// The document's URL; placeholders are JSON Pointers into the message.
    url: String,
    /// Where the document is, a JSON Pointer; the whole message unless said.
    #[schema(nullable = false)]
    content: Option<String>,
    /// Which messages say that the document is gone: `{"pointer", "equals"}`, or a CEL expression.
    #[schema(value_type = Option<DeleteWhen>, nullable = false)]
    delete: Option<RawJson>,
    /// Where a deletion's revision is, a JSON Pointer; the newest stored unless said.
    #[schema(nullable = false)]
    revision: Option<String>,
    /// Where there is an array whose elements are each mapped as a message, a JSON Pointer.
    #[schema(nullable = false)]
    split: Option<String>,
}

/// Which messages say that a document is gone.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "describes JSON for the OpenAPI document")]
pub(crate) enum DeleteWhen {
    /// A CEL expression over `document`, the message.
    Expression(String),
    /// A value at a place.
    Equals(DeleteEquals),
}

/// A value at a place of a message.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteEquals {
    /// The place, a JSON Pointer.
    pointer: String,
    /// A string, a number or a boolean.
    #[schema(value_type = serde_json::Value)]
    equals: RawJson,
}

impl TryFrom<NewMapping> for MappingInput {
    type Error = Invalid;

    fn try_from(new: NewMapping) -> Result<Self, Invalid> {
        let mut input = Self::default();
        input.preset = new.preset;
        input.url = new.url;
        input.content = new.content;
        input.delete = new.delete.map(delete).transpose()?.flatten();
        input.revision = new.revision;
        input.split = new.split;
        Ok(input)
    }
}

/// A string is an expression, an object a value at a place; null is not given.
fn delete(json: RawJson) -> Result<Option<DeleteInput>, Invalid> {
    let within = |invalid: Invalid| invalid.within("delete");
    match json.as_bytes().trim_ascii_start().first() {
        Some(b'"') => Ok(Some(DeleteInput::Expression(read(json.as_bytes()).map_err(within)?))),
        Some(b'{') => {
            let DeleteEquals { pointer, equals } = read(json.as_bytes()).map_err(within)?;
            let wrong = |_| Invalid::new("delete.equals", "must be a string, number or boolean");
            let equals = serde_json::from_slice(equals.as_bytes()).map_err(wrong)?;
            Ok(Some(DeleteInput::Equals { pointer, equals }))
        }
        Some(b'n') => Ok(None),
        _ => Err(Invalid::new(
            "delete",
            "must be an expression, or an object with pointer and equals",
        )),
    }
}

/// What a message would become.
#[derive(Serialize, ToSchema)]
pub(crate) struct MappingTested {
    /// What would be put.
    put: Vec<MappedPut>,
    /// What would be deleted.
    deleted: Vec<MappedDelete>,
    /// What would be rejected.
    rejects: Vec<RejectionView>,
}

/// A document that would be put.
#[derive(Serialize, ToSchema)]
pub(crate) struct MappedPut {
    url: String,
    /// The resource it belongs to.
    resource: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revision: Option<RevisionView>,
    /// The document itself, byte for byte as it stands in the message.
    #[schema(value_type = Object)]
    content: Box<RawValue>,
}

/// A document that would be deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct MappedDelete {
    url: String,
    /// The resource it belongs to.
    resource: String,
    /// As of which revision; the newest stored unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    revision: Option<RevisionView>,
}

/// Why a message, or a part of it, would become no document.
#[derive(Serialize, ToSchema)]
#[schema(as = Rejection)]
pub(crate) struct RejectionView {
    reason: &'static str,
    /// Where in the message, a JSON Pointer; nowhere in particular unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pointer: Option<String>,
    detail: String,
}

impl MappingTested {
    pub(crate) fn new(tried: Vec<Result<TriedDocument, Rejection>>) -> Result<Self, Error> {
        let mut tested = Self { put: Vec::new(), deleted: Vec::new(), rejects: Vec::new() };
        for tried in tried {
            match tried {
                Ok(document) => tested.add(document)?,
                Err(Rejection { reason, pointer, detail, .. }) => {
                    let pointer = Some(pointer).filter(|pointer| !pointer.is_empty());
                    tested.rejects.push(RejectionView { reason: reason.as_str(), pointer, detail });
                }
            }
        }
        Ok(tested)
    }

    fn add(&mut self, document: TriedDocument) -> Result<(), Error> {
        let (url, resource) = (document.url.to_string(), document.resource.to_string());
        let revision = document.revision.map(RevisionView);
        match document.content {
            Some(content) => {
                let content = serde_json::from_slice(&content).map_err(|source| {
                    Error::new(ErrorKind::Internal, "test_mapping").with_source(source)
                })?;
                self.put.push(MappedPut { url, resource, revision, content });
            }
            None => self.deleted.push(MappedDelete { url, resource, revision }),
        }
        Ok(())
    }
}
