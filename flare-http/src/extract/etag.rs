//! Takes a generation or an `If-Match`; gives the entity tag, and whether it is met.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use flare_core::model::Generation;

use crate::problem::Problem;

/// The `ETag` of a generation.
pub(crate) fn etag(generation: Generation) -> [(HeaderName, HeaderValue); 1] {
    let tag = format!("\"{}\"", generation.get());
    // Digits in quotes always make a header.
    [(ETAG, HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\"")))]
}

/// Which states a request wants to change; any, unless it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IfMatch {
    Any,
    OneOf(Vec<String>),
}

impl IfMatch {
    /// The generation to insist on, if `current` is one of those wanted.
    pub(crate) fn insist(&self, current: Generation) -> Result<Option<Generation>, Problem> {
        match self {
            Self::Any => Ok(None),
            Self::OneOf(tags) => {
                let wanted = current.get().to_string();
                let found = tags.contains(&wanted);
                found.then_some(Some(current)).ok_or_else(Problem::outdated)
            }
        }
    }

    /// Reads a list of tags. A weak one is never met, as RFC 9110 has it.
    fn read(value: &str) -> Option<Self> {
        if value.trim() == "*" {
            return Some(Self::Any);
        }
        let mut tags = Vec::new();
        for tag in value.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            let weak = tag.strip_prefix("W/");
            let quoted = weak.unwrap_or(tag).strip_prefix('"')?.strip_suffix('"')?;
            if weak.is_none() {
                tags.push(quoted.to_owned());
            }
        }
        Some(Self::OneOf(tags))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut all = Vec::new();
        for value in parts.headers.get_all(IF_MATCH) {
            match value.to_str().ok().and_then(Self::read) {
                Some(Self::Any) => return Ok(Self::Any),
                Some(Self::OneOf(tags)) => all.extend(tags),
                None => {
                    let reason = "must be * or entity tags in quotes, as in ETag";
                    return Err(Problem::invalid("If-Match", reason));
                }
            }
        }
        let given = parts.headers.contains_key(IF_MATCH);
        Ok(if given { Self::OneOf(all) } else { Self::Any })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_met_by_the_generation_named() {
        let three = Generation::new(3);
        for (value, met) in [
            ("\"3\"", true),
            ("\"2\", \"3\"", true),
            (" * ", true),
            ("\"2\"", false),
            ("\"03\"", false),
            ("W/\"3\"", false),
            ("", false),
        ] {
            let outcome = IfMatch::read(value).unwrap().insist(three);
            assert_eq!(outcome.is_ok(), met, "{value}");
        }
        assert_eq!(IfMatch::read("3"), None);
        assert_eq!(IfMatch::read("\""), None);
        assert_eq!(etag(three)[0].1, "\"3\"");
    }
}
