//! Takes what a notification's body should hold; gives it checked. Builds no body.

use serde::Serialize;

use crate::model::Invalid;
use crate::model::json::Json;

/// What the body of a notification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContentOptions {
    pub(crate) document: bool,
    pub(crate) envelope: bool,
}

impl Default for ContentOptions {
    fn default() -> Self {
        Self { document: true, envelope: true }
    }
}

impl ContentOptions {
    /// Whether the document is sent, not just that it changed.
    pub fn document(&self) -> bool {
        self.document
    }

    /// Whether the body is an envelope with id, action and revision, not the bare document.
    pub fn envelope(&self) -> bool {
        self.envelope
    }

    /// Whether the document is sent, and whether in an envelope; one of them must be.
    pub fn new(document: bool, envelope: bool) -> Result<Self, Invalid> {
        let options = Self { document, envelope };
        options.check()?;
        Ok(options)
    }

    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.envelope || self.document {
            return Ok(());
        }
        Err(Invalid::new(
            "document",
            "must not be false without the envelope: nothing would be sent",
        ))
    }

    pub(crate) fn read(json: Json<'_>) -> Result<Self, Invalid> {
        let mut fields = json.fields()?;
        let content = Self {
            document: fields.read("document", Json::bool)?.unwrap_or(true),
            envelope: fields.read("envelope", Json::bool)?.unwrap_or(true),
        };
        fields.finish(&["document", "envelope"])?;
        Ok(content)
    }
}
