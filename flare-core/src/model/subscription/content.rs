//! Takes what a notification's body should hold; gives it checked. Builds no body.

use crate::model::Invalid;

/// What the body of a notification is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    /// The same in an envelope, for a client that is told many things at once.
    pub(crate) const fn enveloped(mut self) -> Self {
        self.envelope = true;
        self
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
}
