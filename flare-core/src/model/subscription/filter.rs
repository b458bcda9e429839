//! Takes a CEL expression as text; gives it within its size. Does not compile or run it.

use std::sync::Arc;

use crate::model::Invalid;

/// The longest filter, in bytes.
pub const MAX_FILTER_BYTES: usize = 4 * 1024;

/// A CEL expression over `document`, `revision` and `params`: should the client have this document?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Filter(Arc<str>);

impl Filter {
    /// Takes an expression that is not blank and not too long. The refusal has an empty field.
    pub fn new(text: impl Into<String>) -> Result<Self, Invalid> {
        let text: String = text.into();
        if text.trim().is_empty() {
            return Err(Invalid::new("", "must not be empty; leave it out to have every document"));
        }
        if text.len() > MAX_FILTER_BYTES {
            return Err(Invalid::new("", format!("must be at most {MAX_FILTER_BYTES} bytes")));
        }
        Ok(Self(text.into()))
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
