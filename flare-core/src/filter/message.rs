//! Takes an expression over a message of a consumer; gives whether it is true of one.

use crate::model::{Filter, Invalid};

#[cfg(not(feature = "filter"))]
use super::absent::not_built_in;
#[cfg(feature = "filter")]
use super::memory::PreparedFilter;

/// An expression that is asked about messages, or none.
#[derive(Debug, Default)]
pub(crate) struct MessageExpression {
    #[cfg(feature = "filter")]
    prepared: Option<PreparedFilter>,
}

impl MessageExpression {
    /// Compiles an expression. A refusal names no field: the caller knows where it stood.
    #[cfg(feature = "filter")]
    pub(crate) fn new(expression: &Filter) -> Result<Self, Invalid> {
        let prepared = PreparedFilter::new(expression)
            .map_err(|invalid| Invalid::new("", invalid.reason().to_owned()))?;
        Ok(Self { prepared: Some(prepared) })
    }

    /// Refuses any expression.
    #[cfg(not(feature = "filter"))]
    pub(crate) fn new(_: &Filter) -> Result<Self, Invalid> {
        Err(Invalid::new("", not_built_in().reason().to_owned()))
    }

    /// Whether it is true of a message, which it knows as `document`; or why that cannot be said.
    #[cfg(feature = "filter")]
    pub(crate) fn is_true_of(&self, message: &[u8]) -> Result<bool, String> {
        let Some(prepared) = &self.prepared else { return Ok(false) };
        let tried = prepared.try_on(message, []).map_err(|invalid| invalid.to_string())?;
        tried.error.map_or(Ok(tried.matches), Err)
    }

    /// There is none to ask.
    #[cfg(not(feature = "filter"))]
    pub(crate) fn is_true_of(&self, _: &[u8]) -> Result<bool, String> {
        Ok(false)
    }
}
