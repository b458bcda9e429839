//! Takes the URL of a document as anybody may spell it; gives its one normal form, by which the
//! document is known. Never fetches it, and never makes one document out of two.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::bucket::Bucket;
use super::{Invalid, normal};

const FIELD: &str = "url";

/// The identity of a document: its URL in RFC 3986 normal form. Cheap to clone.
///
/// The scheme is `http` or `https`; a host and a path are required; user, query (even an empty
/// one) and fragment are refused. Spellings that mean the same are equal:
///
/// ```
/// # use flare_core::model::{DocumentUrl, Invalid};
/// let url = DocumentUrl::parse("HTTP://Example.com:80/%7euser/caf%c3%a9")?;
/// assert_eq!(url.as_str(), "http://example.com/~user/caf%C3%A9");
/// assert_eq!(url, DocumentUrl::parse("http://example.com/~user/caf%C3%A9")?);
/// # Ok::<(), Invalid>(())
/// ```
///
/// Two choices where the RFC leaves one:
/// - `http://host` and `http://host/` mean the same, and neither has a path: both are refused.
/// - Empty and dot segments (`//`, `/./`, `/../`, `%2e%2e`, a trailing `/`) are kept, not resolved.
///   Such a URL can be named, but matches no resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct DocumentUrl(Arc<str>);

impl DocumentUrl {
    /// The longest URL, in bytes, as given and in normal form.
    pub const MAX_BYTES: usize = normal::MAX_BYTES;

    /// The normal form of `text`, or what is wrong with it (field `url`).
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        normal::url(FIELD, text).map(|url| Self(url.into()))
    }

    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Scheme, host and, if it is not the default one, port: `https://example.com:8443`.
    pub fn authority(&self) -> &str {
        normal::split(&self.0).0
    }

    /// The path, with its leading `/`, still percent-encoded.
    pub fn path(&self) -> &str {
        normal::split(&self.0).1
    }

    /// The segments of the path, still percent-encoded: `a`, `b%20c` of `/a/b%20c`.
    pub fn segments(&self) -> impl Iterator<Item = &str> + Clone {
        self.raw_segments()
    }

    /// The bucket this document falls into, on every machine and in every version of Flare.
    pub fn bucket(&self) -> Bucket {
        Bucket::of(&self.0)
    }

    pub(super) fn raw_segments(&self) -> normal::RawSegments<'_> {
        normal::segments(&self.0)
    }
}

impl fmt::Display for DocumentUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for DocumentUrl {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for DocumentUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl TryFrom<String> for DocumentUrl {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text)
    }
}

impl Serialize for DocumentUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
