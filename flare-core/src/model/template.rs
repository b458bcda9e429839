//! Takes a string with `{name}` placeholders and, later, their values; gives the filled-in string.
//! Knows nothing of resources: which names exist is for the caller to check. Never panics.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Invalid;

/// A string with `{name}` placeholders, taken apart once.
///
/// A name is anything but braces, trimmed, and not empty: the rule of a resource's wildcards.
/// A literal brace is written twice: `{{` or `}}`. So JSON-like text needs its braces doubled;
/// `{"a":1}` asks for a value named `"a":1`, which the check against the resource then refuses.
///
/// ```
/// use flare_core::model::{Escape, Template};
///
/// let template = Template::parse("/hook/{id}?v={revision}&s={{}}")?;
/// assert_eq!(template.names().collect::<Vec<_>>(), ["id", "revision"]);
/// let values = |name: &str| if name == "id" { Some("a/b") } else { Some("7") };
/// assert_eq!(template.render(Escape::Url, values)?, "/hook/a%2Fb?v=7&s={}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<TemplatePart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Placeholder(String),
}

/// How a value is written where it enters a template. The literal text is never escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Escape {
    /// As it is: for data.
    None,
    /// Percent-encoded, except RFC 3986's unreserved characters: for any part of a URL. No
    /// encoding can stop `.` or `..` from being a dot segment; a document's URL never yields them.
    Url,
    /// As it is when made of visible ASCII only. Otherwise every byte that is not visible ASCII is
    /// percent-encoded, and so is every `%`, so that decoding such a value gives it back exactly.
    Header,
}

/// A template was rendered without a value for one of its placeholders.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no value for {{{name}}}")]
pub struct MissingValue {
    name: String,
}

impl MissingValue {
    /// The placeholder's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Template {
    /// Takes a template apart. The refusal has an empty field, for the caller to put
    /// [`within`](Invalid::within) its own.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Ok(Self { text: text.to_owned(), parts: split(text)? })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the placeholders in order, repeated as often as they occur.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Placeholder(name) => Some(name.as_str()),
            TemplatePart::Literal(_) => None,
        })
    }

    /// The text before the first placeholder, and whether there is one.
    pub(crate) fn head(&self) -> (&str, bool) {
        let head = match self.parts.first() {
            Some(TemplatePart::Literal(text)) => text,
            _ => "",
        };
        (head, self.names().next().is_some())
    }

    /// The literal texts between the placeholders, unescaped.
    pub(crate) fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Literal(text) => Some(text.as_str()),
            TemplatePart::Placeholder(_) => None,
        })
    }

    /// Fills in the placeholders with what `lookup` gives for their names.
    pub fn render<'v>(
        &self,
        escape: Escape,
        lookup: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, MissingValue> {
        let mut out = String::with_capacity(self.text.len() + 16);
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => out.push_str(text),
                TemplatePart::Placeholder(name) => match lookup(name) {
                    Some(value) => escape.push(&mut out, value),
                    None => return Err(MissingValue { name: name.clone() }),
                },
            }
        }
        Ok(out)
    }

    /// As [`render`](Self::render), with every value made from its name: nothing can be missing.
    pub(crate) fn render_names(&self, value: impl Fn(&str) -> String) -> String {
        let texts = self.parts.iter().map(|part| match part {
            TemplatePart::Literal(text) => text.clone(),
            TemplatePart::Placeholder(name) => value(name),
        });
        texts.collect()
    }
}

impl Escape {
    /// Appends `value` the way this mode writes it.
    pub(crate) fn push(self, out: &mut String, value: &str) {
        let keep: fn(u8) -> bool = match self {
            Self::None => return out.push_str(value),
            Self::Header if value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return out.push_str(value);
            }
            Self::Header => |byte| byte.is_ascii_graphic() && byte != b'%',
            Self::Url => |byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        };
        for byte in value.bytes() {
            if keep(byte) {
                out.push(char::from(byte));
            } else {
                out.push('%');
                out.push(hex(byte >> 4));
                out.push(hex(byte & 0xF));
            }
        }
    }
}

fn hex(nibble: u8) -> char {
    char::from(if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 })
}

fn split(text: &str) -> Result<Vec<TemplatePart>, Invalid> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        literal.push_str(before);
        if let Some(after) = from.strip_prefix("{{") {
            literal.push('{');
            rest = after;
        } else if let Some(after) = from.strip_prefix("}}") {
            literal.push('}');
            rest = after;
        } else if let Some(after) = from.strip_prefix('{') {
            let (name, after) = placeholder(after)?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(TemplatePart::Placeholder(name.to_owned()));
            rest = after;
        } else {
            return Err(Invalid::new("", "has a } without a { before it; write }} for a brace"));
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    Ok(parts)
}

/// Reads `name}` and gives the name and what follows.
fn placeholder(text: &str) -> Result<(&str, &str), Invalid> {
    let refuse = |reason| Err(Invalid::new("", reason));
    match text.find(['{', '}']) {
        Some(at) if text[at..].starts_with('}') => match text[..at].trim() {
            "" => refuse("has a placeholder without a name; write {{ and }} for braces"),
            name => Ok((name, &text[at + 1..])),
        },
        Some(_) => refuse("has a { within a placeholder; write {{ for a brace"),
        None => refuse("has a { that is never closed; write {{ for a brace"),
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.text).finish()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|invalid| de::Error::custom(invalid.reason()))
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
