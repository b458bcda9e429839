//! Takes a message and how messages become documents; gives what is to be put or deleted, or why nothing is.
//! Decides without asking a store, a clock or a broker.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::pointer::MessagePointer;
use super::preset::{MappingPreset, Unwrapped};
use super::{RejectReason, Rejection};
use crate::model::{
    Content, DocumentUrl, Endpoint, Escape, Filter, Invalid, Resource, Revision, Template,
};

/// The most documents that one message may be split into.
pub const MAX_SPLIT: usize = 10_000;

/// How the messages of a consumer become documents of its resource: its `document`.
///
/// ```
/// use flare_core::model::consumer::{Mapping, MappingInput};
///
/// let users: MappingInput = serde_json::from_str(r#"{
///     "url": "http://api.example.com/users/{/user/id}",
///     "content": "/user",
///     "delete": {"pointer": "/op", "equals": "d"},
///     "revision": "/ts"
/// }"#)?;
/// let users = Mapping::new(users)?;
/// assert_eq!(users.pointers().count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "MappingInput", try_from = "MappingInput")]
pub struct Mapping {
    preset: Option<MappingPreset>,
    url: Template,
    /// What the placeholders of `url` point to, in their order.
    parts: Vec<MessagePointer>,
    content: Option<MessagePointer>,
    delete: Option<DeleteRule>,
    revision: Option<MessagePointer>,
    split: Option<MessagePointer>,
}

/// Which messages say that a document is gone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DeleteRule {
    /// Those with this value at a place.
    Equals(MessagePointer, Value),
    /// Those that a CEL expression over `document`, the message, is true of.
    Expression(Filter),
}

/// What a caller says of how messages become documents, as it stands in JSON.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MappingInput {
    /// How messages are wrapped: `sns`, `eventbridge` or `debezium`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The document's URL, with JSON Pointers into the message as placeholders.
    pub url: String,
    /// Where the document is in the message; all of it unless said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Which messages say that the document is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteInput>,
    /// Where the revision is as of which a document is gone; the newest stored unless said. Brokers may give
    /// out a message again after later ones were stored: a deletion that names no revision then deletes what came
    /// later, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Where in the message there is an array whose elements are each mapped as a message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
}

/// Which messages say that a document is gone, as it stands in JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DeleteInput {
    /// A CEL expression.
    Expression(String),
    /// A value at a place.
    Equals {
        /// The place, a JSON Pointer.
        pointer: String,
        /// The value: a string, a number, a boolean.
        equals: Value,
    },
}

/// What a message, or one part of it, says of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedDocument {
    /// Which document.
    pub url: DocumentUrl,
    /// What becomes of it.
    pub change: MappedChange,
}

/// What a message says of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappedChange {
    /// This is its content now, byte for byte as it stands in the message.
    Put(Bytes),
    /// It is gone, as of this revision if the mapping says where one is.
    Delete(Option<Revision>),
}

/// Asks an expression about a message: whether it is true, or why that cannot be said.
pub type JudgeExpression<'a> = &'a dyn Fn(&Filter, &[u8]) -> Result<bool, String>;

impl Mapping {
    /// Checks what a caller says. A refusal names the field: `url`, `delete.pointer` …
    pub fn new(input: MappingInput) -> Result<Self, Invalid> {
        let preset = input.preset.as_deref().map(MappingPreset::parse).transpose();
        let preset = preset.map_err(|invalid| invalid.within("preset"))?;
        let (url, parts) = url_template(&input.url).map_err(|invalid| invalid.within("url"))?;
        let pointer = |field: &'static str, pointer: Option<String>| {
            let pointer = pointer.as_deref().map(MessagePointer::parse).transpose();
            pointer.map_err(|invalid| invalid.within(field))
        };
        let content = pointer("content", input.content)?;
        let delete = input.delete.map(DeleteRule::new).transpose();
        let delete = delete.map_err(|invalid| invalid.within("delete"))?;
        let revision = pointer("revision", input.revision)?;
        let split = pointer("split", input.split)?;
        if preset == Some(MappingPreset::Debezium) {
            let said = [
                ("content", content.is_some(), "the row after the change is the document"),
                ("delete", delete.is_some(), "op says which rows are gone"),
                ("split", split.is_some(), "a message is about one row"),
            ];
            if let Some((field, _, why)) = said.into_iter().find(|(_, said, _)| *said) {
                return Err(Invalid::new(field, format!("cannot be said with debezium: {why}")));
            }
        } else if revision.is_some() && delete.is_none() {
            return Err(Invalid::new("revision", "is of deletions: say which with delete"));
        }
        Ok(Self { preset, url, parts, content, delete, revision, split })
    }

    /// Refuses a mapping whose URLs cannot be those of documents of `endpoint`.
    pub fn check_for(&self, endpoint: &Endpoint) -> Result<(), Invalid> {
        let refuse = || {
            let reason = format!("cannot be the URL of a document of {}", endpoint.as_str());
            Err(Invalid::new("url", reason))
        };
        // A letter no URL has by itself stands for what a message says.
        let sample = self.url.render_names(|_| "%00".to_owned());
        let Ok(sample) = DocumentUrl::parse(&sample) else { return refuse() };
        if sample.authority() != endpoint.authority() {
            return refuse();
        }
        let path = &endpoint.as_str()[endpoint.authority().len()..];
        let mut wanted = path.split('/').skip(1);
        for given in sample.segments() {
            match wanted.next() {
                Some(segment) if segment.starts_with('{') && !given.is_empty() => {}
                Some(segment) if segment == given || given.contains("%00") => {}
                _ => return refuse(),
            }
        }
        if wanted.next().is_some() { refuse() } else { Ok(()) }
    }

    /// What the caller said.
    pub fn input(&self) -> MappingInput {
        let said = |pointer: &Option<MessagePointer>| pointer.as_ref().map(ToString::to_string);
        MappingInput {
            preset: self.preset.map(|preset| preset.as_str().to_owned()),
            url: self.url.as_str().to_owned(),
            content: said(&self.content),
            delete: self.delete.as_ref().map(DeleteRule::input),
            revision: said(&self.revision),
            split: said(&self.split),
        }
    }

    /// The places of a message that the URL is made of.
    pub fn pointers(&self) -> impl Iterator<Item = &MessagePointer> {
        self.parts.iter()
    }

    /// The expression that says what is deleted, for it has to be checked by those who can run it.
    pub fn expression(&self) -> Option<&Filter> {
        match &self.delete {
            Some(DeleteRule::Expression(filter)) => Some(filter),
            _ => None,
        }
    }

    /// What a message says of documents of `resource`: one answer for each document in it, and none where it
    /// concerns no document. A part that cannot become a document says nothing of the others.
    pub fn map(
        &self,
        resource: &Resource,
        message: &[u8],
        judge: JudgeExpression<'_>,
    ) -> Vec<Result<MappedDocument, Rejection>> {
        self.each(message, |part, gone| {
            let gone = gone.map_or_else(|| self.is_gone(part, judge), Ok)?;
            self.document(resource, part, gone)
        })
    }

    /// Which documents a message is about, whatever resource they belong to.
    pub fn urls(&self, message: &[u8]) -> Vec<Result<DocumentUrl, Rejection>> {
        self.each(message, |part, _| self.document_url(part))
    }

    /// Looks at each part of a message that is to become a document: its JSON, and whether the preset says that
    /// the document is gone.
    fn each<T>(
        &self,
        message: &[u8],
        look: impl Fn(&str, Option<bool>) -> Result<T, Rejection>,
    ) -> Vec<Result<T, Rejection>> {
        match self.try_each(message, look) {
            Ok(parts) => parts,
            Err(rejection) => vec![Err(rejection)],
        }
    }

    fn try_each<T>(
        &self,
        message: &[u8],
        look: impl Fn(&str, Option<bool>) -> Result<T, Rejection>,
    ) -> Result<Vec<Result<T, Rejection>>, Rejection> {
        let text = std::str::from_utf8(message)
            .map_err(|error| Rejection::not_json(format!("is not well-formed JSON: {error}")))?;
        let whole = match self.preset.map(|preset| preset.unwrap(text)).transpose()? {
            None => Cow::Borrowed(text),
            Some(Unwrapped::Message(inner)) => inner,
            Some(Unwrapped::Nothing) => return Ok(Vec::new()),
            Some(Unwrapped::Row(row, gone)) => return Ok(vec![look(row, Some(gone))]),
        };
        let Some(split) = &self.split else { return Ok(vec![look(&whole, None)]) };
        let parts: Vec<&RawValue> = serde_json::from_str(split.required(&whole)?)
            .map_err(|_| split.reject(RejectReason::Missing, "must be an array"))?;
        if parts.len() > MAX_SPLIT {
            let detail = format!("has {} elements, at most {MAX_SPLIT} may be", parts.len());
            return Err(split.reject(RejectReason::TooMany, detail));
        }
        let part = |(at, part): (usize, &&RawValue)| {
            look(part.get(), None).map_err(|rejection| rejection.below(&format!("{split}/{at}")))
        };
        Ok(parts.iter().enumerate().map(part).collect())
    }

    fn is_gone(&self, message: &str, judge: JudgeExpression<'_>) -> Result<bool, Rejection> {
        match &self.delete {
            None => Ok(false),
            Some(DeleteRule::Equals(pointer, value)) => {
                let found = pointer.find(message)?;
                let found = found.and_then(|json| serde_json::from_str::<Value>(json).ok());
                Ok(found.as_ref() == Some(value))
            }
            Some(DeleteRule::Expression(filter)) => judge(filter, message.as_bytes())
                .map_err(|error| Rejection::new(RejectReason::Expression, "", error)),
        }
    }

    fn document(
        &self,
        resource: &Resource,
        message: &str,
        gone: bool,
    ) -> Result<MappedDocument, Rejection> {
        let url = self.document_url(message)?;
        if resource.endpoint.matches(&url).is_none() {
            let detail = format!("its URL is none of a document of {}", resource.endpoint.as_str());
            return Err(Rejection::new(RejectReason::OtherResource, "", detail));
        }
        let change = if gone {
            let revision = self.revision.as_ref().map(|pointer| {
                let json = pointer.required(message)?;
                let read = resource.change.format().read(json).map(Revision::new);
                let wrong = |invalid: Invalid| {
                    pointer.reject(RejectReason::NoRevision, invalid.reason().to_owned())
                };
                read.map_err(wrong)
            });
            MappedChange::Delete(revision.transpose()?)
        } else {
            let (json, place) = match &self.content {
                None => (message, ""),
                Some(pointer) => (pointer.required(message)?, pointer.as_str()),
            };
            let content = Bytes::copy_from_slice(json.as_bytes());
            let (_, content) = Content::parse(&resource.change, content).map_err(|invalid| {
                // The rule names the field as the resource does.
                Rejection::new(RejectReason::NoRevision, place, invalid.to_string())
            })?;
            MappedChange::Put(content.bytes().clone())
        };
        Ok(MappedDocument { url, change })
    }

    fn document_url(&self, message: &str) -> Result<DocumentUrl, Rejection> {
        let mut values = Vec::with_capacity(self.parts.len());
        for pointer in &self.parts {
            values.push((pointer.as_str(), pointer.scalar(message)?));
        }
        let value = |name: &str| {
            let found = values.iter().find(|(pointer, _)| *pointer == name);
            found.map(|(_, value)| value.as_ref())
        };
        let other = |detail: String| Rejection::new(RejectReason::OtherResource, "", detail);
        let url = self.url.render(Escape::Url, value).map_err(|error| other(error.to_string()))?;
        DocumentUrl::parse(&url).map_err(|invalid| other(invalid.to_string()))
    }
}

impl DeleteRule {
    fn new(input: DeleteInput) -> Result<Self, Invalid> {
        match input {
            DeleteInput::Expression(text) => {
                Filter::new(text).map(Self::Expression).map_err(|_| {
                    Invalid::new(
                        "",
                        format!("must be an expression of 1 to {} bytes", MAX_EXPRESSION),
                    )
                })
            }
            DeleteInput::Equals { pointer, equals } => {
                let pointer =
                    MessagePointer::parse(&pointer).map_err(|invalid| invalid.within("pointer"))?;
                if matches!(equals, Value::Null | Value::Array(_) | Value::Object(_)) {
                    return Err(Invalid::new("equals", "must be a string, number or boolean"));
                }
                Ok(Self::Equals(pointer, equals))
            }
        }
    }

    fn input(&self) -> DeleteInput {
        match self {
            Self::Equals(pointer, equals) => {
                DeleteInput::Equals { pointer: pointer.to_string(), equals: equals.clone() }
            }
            Self::Expression(filter) => DeleteInput::Expression(filter.as_str().to_owned()),
        }
    }
}

const MAX_EXPRESSION: usize = crate::model::subscription::MAX_FILTER_BYTES;

fn url_template(text: &str) -> Result<(Template, Vec<MessagePointer>), Invalid> {
    let refuse = |reason| Err(Invalid::new("", reason));
    if text.is_empty() {
        return refuse("is required");
    }
    if text.len() > DocumentUrl::MAX_BYTES {
        return refuse("is longer than a document's URL may be");
    }
    let template = Template::parse(text)?;
    let mut parts = Vec::new();
    for name in template.names() {
        let pointer = MessagePointer::parse(name)
            .map_err(|invalid| Invalid::new("", format!("{{{name}}} {}", invalid.reason())))?;
        if !parts.contains(&pointer) {
            parts.push(pointer);
        }
    }
    if parts.is_empty() {
        return refuse(
            "has no placeholder such as {/user/id}: every message would be the same document",
        );
    }
    let (head, _) = template.head();
    let authority = head.split_once("://").map(|(_, rest)| rest);
    if !authority.is_some_and(|rest| rest.contains('/')) {
        return refuse(
            "must begin with http:// or https:// and a host; placeholders are for the path",
        );
    }
    let sample = template.render_names(|_| "x".to_owned());
    DocumentUrl::parse(&sample).map_err(|invalid| Invalid::new("", invalid.reason().to_owned()))?;
    Ok((template, parts))
}

impl From<Mapping> for MappingInput {
    fn from(mapping: Mapping) -> Self {
        mapping.input()
    }
}

impl TryFrom<MappingInput> for Mapping {
    type Error = Invalid;

    fn try_from(input: MappingInput) -> Result<Self, Invalid> {
        Self::new(input)
    }
}

#[cfg(test)]
#[path = "mapping_tests.rs"]
mod tests;
