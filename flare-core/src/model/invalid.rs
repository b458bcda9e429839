//! Takes what a rule found wrong; gives the refusal every constructor of the model returns.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

/// A refused value: which field is wrong, and why.
///
/// `field` is a path as the caller wrote it (`endpoint.url`, `delivery.retry.numRetries`,
/// `delivery.success[2]`), `reason` one sentence for a person, without the field's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    field: Cow<'static, str>,
    reason: Cow<'static, str>,
}

impl Invalid {
    /// A refusal of `field` because of `reason`.
    pub fn new(field: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// The path of the field that was refused.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Why it was refused.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The same refusal seen from one level up: `url` within `endpoint` is `endpoint.url`.
    #[must_use]
    pub fn within(self, parent: &str) -> Self {
        let field = match self.field.as_ref() {
            "" => parent.to_owned(),
            field if field.starts_with('[') => format!("{parent}{field}"),
            field => format!("{parent}.{field}"),
        };
        Self { field: field.into(), reason: self.reason }
    }
}

/// The number, if it is in `range`, which the refusal names.
pub(crate) fn in_range(value: u32, range: &RangeInclusive<u32>) -> Result<u32, Invalid> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (low, high) = (range.start(), range.end());
    Err(Invalid::new("", format!("must be an integer from {low} to {high}")))
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The whole input is wrong: there is no field to name.
        if self.field.is_empty() {
            return f.write_str(&self.reason);
        }
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Invalid {}

impl From<std::convert::Infallible> for Invalid {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
