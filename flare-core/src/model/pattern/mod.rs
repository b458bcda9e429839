//! Takes an endpoint as a person writes it; gives its normal form, the wildcard values of a
//! document's URL, and the order between endpoints that match the same one. Never stores: see
//! [`EndpointIndex`] for many endpoints.

mod index;
mod node;
mod params;
mod segment;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::{DocumentUrl, Escape, Invalid, normal};
pub use index::{EndpointConflict, EndpointIndex};
pub use params::Params;
use segment::{Segment, Segments};

const FIELD: &str = "endpoint";

/// The endpoint of a resource: a URL with wildcards in its path. Cheap to clone.
///
/// ```
/// # use flare_core::model::{DocumentUrl, Endpoint, Invalid};
/// let endpoint = Endpoint::parse(" HTTPS://Example.com:443/users/{ id }/ ")?;
/// assert_eq!(endpoint.as_str(), "https://example.com/users/{id}");
///
/// let url = DocumentUrl::parse("https://example.com/users/caf%C3%A9")?;
/// let params = endpoint.matches(&url).expect("a match");
/// assert_eq!(params.get("id"), Some("café"));
/// # Ok::<(), Invalid>(())
/// ```
///
/// - `%7Bid%7D` is `{id}`, so an endpoint has no literal braces.
/// - A wildcard stands for one whole segment that is neither empty nor a dot segment, and whose
///   escapes decode to UTF-8: anything else could not be handed on as text without loss.
/// - A name may hold any character but braces, `/`, `?`, `#`, `%` and control characters.
/// - Equality is that of the text: `/a/{x}` and `/a/{y}` differ, but [conflict](Self::conflict_key).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Endpoint(Arc<str>);

impl Endpoint {
    /// The longest endpoint, in bytes, as given (without outer space) and in normal form.
    pub const MAX_BYTES: usize = normal::MAX_BYTES;

    /// The normal form of `text`, or what is wrong with it (field `endpoint`).
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let refuse = |reason: &'static str| Err(Invalid::new(FIELD, reason));
        let text = text.trim();
        normal::within_limit(FIELD, text)?;
        let text = with_braces(text);
        match text.find(['?', '#']).and_then(|at| text.get(at..)) {
            Some(rest) if rest.starts_with('?') => return refuse(normal::HAS_QUERY),
            Some(_) => return refuse(normal::HAS_FRAGMENT),
            None => {}
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return refuse(normal::NOT_ABSOLUTE);
        };
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if scheme.contains(['{', '}']) || host.contains(['{', '}']) {
            return refuse("has a wildcard before its path: the host must be plain");
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments =
            path.split('/').skip(1).map(Segment::parse).collect::<Result<Vec<_>, _>>()?;

        // Without its wildcards an endpoint is a URL like any other.
        let mut plain = format!("{scheme}://{host}");
        for segment in &segments {
            plain.push('/');
            plain.push_str(match segment {
                Segment::Literal(written) => written,
                Segment::Wildcard(_) => "*",
            });
        }
        let plain = normal::url(FIELD, &plain)?;
        check_names(&segments)?;

        let mut endpoint = normal::split(&plain).0.to_owned();
        for (segment, literal) in segments.iter().zip(normal::segments(&plain)) {
            endpoint.push('/');
            match segment {
                Segment::Wildcard(name) => endpoint.extend(["{", name, "}"]),
                Segment::Literal(_) if normal::is_plain(literal) => endpoint.push_str(literal),
                Segment::Literal(_) => return refuse("has an empty or dot segment in its path"),
            }
        }
        normal::within_limit(FIELD, &endpoint)?;
        Ok(Self(endpoint.into()))
    }

    /// The whole endpoint, wildcards in braces.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Scheme, host and, if it is not the default one, port: `https://example.com:8443`.
    pub fn authority(&self) -> &str {
        normal::split(&self.0).0
    }

    /// The names of the wildcards, from left to right.
    pub fn wildcards(&self) -> impl Iterator<Item = &str> {
        self.segments().filter_map(|segment| match segment {
            Segment::Wildcard(name) => Some(name),
            Segment::Literal(_) => None,
        })
    }

    /// The endpoint with each wildcard replaced by `*`: two endpoints conflict iff these are equal.
    ///
    /// A literal `*` counts as a wildcard here: `/a/*/{id}` and `/a/{x}/{id}` conflict, though only
    /// the second would match `/a/b/1`. Who needs both writes the literal as `%2A`.
    ///
    /// ```
    /// # use flare_core::model::{Endpoint, Invalid};
    /// let endpoint = Endpoint::parse("http://h:80/shops/{shop}/items/{item}")?;
    /// assert_eq!(endpoint.conflict_key(), "http://h/shops/*/items/*");
    /// # Ok::<(), Invalid>(())
    /// ```
    pub fn conflict_key(&self) -> String {
        let mut key = self.authority().to_owned();
        for segment in self.segments() {
            key.push('/');
            key.push_str(match segment {
                Segment::Literal(literal) => literal,
                Segment::Wildcard(_) => "*",
            });
        }
        key
    }

    /// What the wildcards stand for if this endpoint matches `url`.
    pub fn matches(&self, url: &DocumentUrl) -> Option<Params> {
        if self.authority() != url.authority() {
            return None;
        }
        let mut params = Params::default();
        let mut given = url.raw_segments();
        for segment in self.segments() {
            let given = given.next()?;
            match segment {
                Segment::Literal(literal) if literal == given => {}
                Segment::Literal(_) => return None,
                Segment::Wildcard(name) => {
                    params.push(name, normal::wildcard_value(given)?.into_owned());
                }
            }
        }
        given.next().is_none().then_some(params)
    }

    /// Which of two endpoints that match the same document goes first (is `Less`): the one with a
    /// literal where, from left to right, they first differ in kind.
    pub fn cmp_specificity(&self, other: &Self) -> Ordering {
        let is_wildcard = |segment| matches!(segment, Segment::Wildcard(_));
        self.segments().map(is_wildcard).cmp(other.segments().map(is_wildcard))
    }

    /// The URL with these values for its wildcards, from left to right.
    pub(crate) fn fill<V: AsRef<str>>(
        &self,
        values: impl IntoIterator<Item = V>,
    ) -> Result<String, Invalid> {
        let refuse = |reason: String| Err(Invalid::new("values", reason));
        let wildcards = self.wildcards().count();
        let mut values = values.into_iter();
        let mut url = self.authority().to_owned();
        for segment in self.segments() {
            url.push('/');
            match segment {
                Segment::Literal(literal) => url.push_str(literal),
                Segment::Wildcard(name) => {
                    let Some(value) = values.next() else {
                        return refuse(format!("must be {wildcards}, one for each of {self}"));
                    };
                    let value = value.as_ref();
                    if matches!(value, "" | "." | "..") {
                        return refuse(format!(
                            "has {value:?} for {{{name}}}, which no URL can hold"
                        ));
                    }
                    Escape::Url.push(&mut url, value);
                }
            }
        }
        match values.next() {
            Some(_) => refuse(format!("must be {wildcards}, one for each of {self}")),
            None => Ok(url),
        }
    }

    /// Refuses what is a wildcard elsewhere, and would be taken to the letter here.
    pub(crate) fn check_habits(&self) -> Result<(), Invalid> {
        let habit = self.segments().find_map(|segment| match segment {
            Segment::Literal(literal) => habit(literal).map(|name| (literal.to_owned(), name)),
            Segment::Wildcard(name) => {
                let plain = name.trim_start_matches('*').trim_end_matches("...");
                (plain != name).then(|| (format!("{{{name}}}"), plain.to_owned()))
            }
        });
        match habit {
            Some((written, name)) => {
                let name = if name.is_empty() { "id" } else { &name };
                let reason = format!("has {written}: write {{{name}}}, which matches one segment");
                Err(Invalid::new(FIELD, reason))
            }
            None => Ok(()),
        }
    }

    fn segments(&self) -> Segments<'_> {
        Segments::of(&self.0)
    }
}

/// `%7B` and `%7D`, in any case, as the braces they stand for.
fn with_braces(text: &str) -> String {
    text.replace("%7B", "{").replace("%7b", "{").replace("%7D", "}").replace("%7d", "}")
}

/// The name of a wildcard as other libraries write it: `:id`, `*`, `*rest`, `<id>`.
fn habit(literal: &str) -> Option<String> {
    let angled = literal.strip_prefix("%3C").and_then(|rest| rest.strip_suffix("%3E"));
    let name = literal.strip_prefix([':', '*']).or(angled)?;
    Some(name.to_owned())
}

fn check_names(segments: &[Segment<'_>]) -> Result<(), Invalid> {
    let mut names: Vec<&str> = segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Wildcard(name) => Some(*name),
            Segment::Literal(_) => None,
        })
        .collect();
    if names.is_empty() {
        let meant = segments.iter().find_map(|segment| match segment {
            Segment::Literal(written) => habit(written).map(|name| (written, name)),
            Segment::Wildcard(_) => None,
        });
        let hint = match meant {
            Some((written, name)) if !name.is_empty() => format!(": {{{name}}}, not {written}"),
            _ => ", such as {id}".to_owned(),
        };
        let reason = format!("must have at least one wildcard in its path{hint}");
        return Err(Invalid::new(FIELD, reason));
    }
    names.sort_unstable();
    match names.array_windows().find(|[one, next]| one == next) {
        Some([name, _]) => {
            Err(Invalid::new(FIELD, format!("has more than one wildcard named {name:?}")))
        }
        None => Ok(()),
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Endpoint {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = Invalid;

    fn try_from(text: String) -> Result<Self, Invalid> {
        Self::parse(&text)
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod index_tests;
#[cfg(test)]
mod tests;
