//! Takes one path segment of an endpoint; gives what it is, a literal or a wildcard. Never looks at
//! a document.

use crate::model::{Invalid, normal};

use super::FIELD;

/// The name that is always available, so no wildcard may take it.
const RESERVED: &str = "revision";

/// One path segment of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment<'a> {
    /// Matches itself.
    Literal(&'a str),
    /// Matches any one segment; holds the name.
    Wildcard(&'a str),
}

impl<'a> Segment<'a> {
    /// What a caller wrote between two slashes; a literal is not in normal form yet.
    pub(super) fn parse(written: &'a str) -> Result<Self, Invalid> {
        let refuse = |reason: &'static str| Err(Invalid::new(FIELD, reason));
        if !written.contains(['{', '}']) {
            return Ok(Self::Literal(written));
        }
        let name = written.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(name) = name.map(str::trim) else {
            return refuse("has a wildcard that does not fill its whole path segment");
        };
        if name.is_empty() {
            return refuse("has a wildcard without a name");
        }
        if name.contains(['{', '}']) {
            return refuse("has a wildcard with braces inside");
        }
        if name == RESERVED {
            return refuse("has a wildcard named revision, which is reserved");
        }
        if name.contains('%') || name.contains(char::is_control) {
            let reason = format!("has a wildcard with a % or control character in it: {name:?}");
            return Err(Invalid::new(FIELD, reason));
        }
        Ok(Self::Wildcard(name))
    }

    /// Reads back a segment of an endpoint's normal form, in which only wildcards have braces.
    fn read(normal: &'a str) -> Self {
        match normal.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Self::Wildcard(name),
            None => Self::Literal(normal),
        }
    }
}

/// The segments of an endpoint in normal form, from left to right.
#[derive(Debug, Clone)]
pub(super) struct Segments<'a>(normal::RawSegments<'a>);

impl<'a> Segments<'a> {
    pub(super) fn of(endpoint: &'a str) -> Self {
        Self(normal::segments(endpoint))
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        self.0.next().map(Segment::read)
    }
}
