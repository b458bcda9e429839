//! Takes header names with lists of value templates; gives them checked, in the order given.
//! Never sets the headers Flare itself owns, and never shows values in `Debug`, nor credentials to
//! readers of a subscription.

use std::fmt;

use crate::model::{Invalid, Template};

/// The most header lines of one request.
pub const MAX_HEADERS: usize = 64;
/// The most bytes of all names and values of one request's headers, before interpolation.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Headers the connection is made of, and those Flare sets itself.
const OWNED: [&str; 15] = [
    "connection",
    "content-length",
    "expect",
    "flare-action",
    "flare-revision",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What is shown in the place of a credential. Sent back, it keeps the value there is.
pub const MASK: &str = "********";

/// Names, and ends of names, whose values are credentials; `-` stands for `_` too.
const CREDENTIALS: [&str; 9] = [
    "authorization",
    "cookie",
    "key",
    "token",
    "secret",
    "password",
    "credential",
    "credentials",
    "auth",
];

/// Header names, each with the templates of its values.
///
/// `Debug` shows the names only: values are where clients put their tokens. [`shown`](Self::shown) has
/// [`MASK`] for each value of a name that looks like a credential's (`Authorization`, `Cookie`,
/// `X-Api-Key`, `…-Token`, `…-Secret` and the like).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    entries: Vec<(String, Vec<Template>)>,
}

impl Headers {
    /// Takes names, each with its values; a name is given once, in whatever case.
    pub(crate) fn new<N, V>(entries: impl IntoIterator<Item = (N, V)>) -> Result<Self, Invalid>
    where
        N: Into<String>,
        V: IntoIterator,
        V::Item: AsRef<str>,
    {
        let mut headers = Self::default();
        for (name, values) in entries {
            let name = name.into();
            // Before comparing every name with every other.
            if headers.entries.len() == MAX_HEADERS {
                return Err(too_many());
            }
            if headers.get(&name).is_some() {
                return Err(Invalid::new(name, "is given twice, in different case"));
            }
            let values = checked_values(&name, values).map_err(|invalid| invalid.within(&name))?;
            headers.entries.push((name, values));
        }
        headers.check_sizes()?;
        Ok(headers)
    }

    /// The names as given, each with its values, in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[Template])> {
        self.entries.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// As a reader may see them: [`MASK`] in the place of each value that is a credential.
    pub fn shown(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.iter().map(|(name, values)| {
            let hidden = is_credential(name);
            (name, values.iter().map(|it| if hidden { MASK } else { it.as_str() }).collect())
        })
    }

    /// The values of a header, by its name in any case.
    pub fn get(&self, name: &str) -> Option<&[Template]> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, values)| values)
    }

    /// Whether there is no header at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The same with each masked value replaced by the one that `old` has in its place, if any.
    pub(crate) fn unmasked(mut self, old: Option<&Self>) -> Self {
        for (name, values) in &mut self.entries {
            let Some(old) = old.and_then(|old| old.get(name)) else { continue };
            if is_credential(name) {
                for (value, old) in values.iter_mut().zip(old) {
                    if is_mask(value) {
                        *value = old.clone();
                    }
                }
            }
        }
        self
    }

    /// The first value that is a mask where a credential is to be, by its name and place.
    pub(crate) fn masked(&self) -> Option<String> {
        self.iter().filter(|(name, _)| is_credential(name)).find_map(|(name, values)| {
            values.iter().position(is_mask).map(|at| format!("{name}[{at}]"))
        })
    }

    /// Adds a value to a header, which may be there already.
    pub(crate) fn append(&mut self, name: &str, value: &str) -> Result<(), Invalid> {
        check_name(name).map_err(|invalid| invalid.within(name))?;
        let at = self.entries.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        let index = at.and_then(|at| self.entries.get(at)).map_or(0, |(_, values)| values.len());
        let value = check_value(value)
            .map_err(|invalid| invalid.within(&format!("[{index}]")).within(name))?;
        match at.and_then(|at| self.entries.get_mut(at)) {
            Some((_, values)) => values.push(value),
            None => self.entries.push((name.to_owned(), vec![value])),
        }
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), Invalid> {
        let lines: usize = self.entries.iter().map(|(_, values)| values.len()).sum();
        let bytes: usize = self
            .entries
            .iter()
            .flat_map(|(name, values)| values.iter().map(|v| name.len() + v.as_str().len()))
            .sum();
        if lines > MAX_HEADERS {
            return Err(too_many());
        }
        if bytes > MAX_HEADER_BYTES {
            return Err(Invalid::new("", format!("must be at most {MAX_HEADER_BYTES} bytes")));
        }
        Ok(())
    }
}

fn too_many() -> Invalid {
    Invalid::new("", format!("must have at most {MAX_HEADERS} values"))
}

fn checked_values<V>(name: &str, values: V) -> Result<Vec<Template>, Invalid>
where
    V: IntoIterator,
    V::Item: AsRef<str>,
{
    check_name(name)?;
    let checked = values.into_iter().enumerate().map(|(i, value)| {
        check_value(value.as_ref()).map_err(|invalid| invalid.within(&format!("[{i}]")))
    });
    let values = checked.collect::<Result<Vec<_>, _>>()?;
    if values.is_empty() {
        return Err(Invalid::new("", "must have at least one value; leave the header out instead"));
    }
    Ok(values)
}

fn check_name(name: &str) -> Result<(), Invalid> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(Invalid::new("", "is not a header name: letters, digits and !#$%&'*+-.^_`|~"));
    }
    let name = name.to_ascii_lowercase();
    if OWNED.contains(&name.as_str()) || name.starts_with("webhook-") {
        return Err(Invalid::new("", "is a header that Flare sets itself"));
    }
    Ok(())
}

fn check_value(text: &str) -> Result<Template, Invalid> {
    let template = Template::parse(text)?;
    let sendable = |c: char| c.is_ascii_graphic() || c == ' ' || c == '\t';
    if template.literals().any(|literal| !literal.chars().all(sendable)) {
        return Err(Invalid::new("", "must be visible ASCII, spaces and tabs"));
    }
    Ok(template)
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.entries.iter().map(|(name, _)| name)).finish()
    }
}

/// Whether the values of a header are something to prove oneself with, by its name in any case.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let last = name.rsplit('-').next().unwrap_or(&name);
    CREDENTIALS.contains(&last) || last == "apikey"
}

fn is_mask(value: &Template) -> bool {
    value.as_str() == MASK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "X-Authorization",
            "Cookie",
            "Set-Cookie",
            "X-Api-Key",
            "x_api_key",
            "apikey",
            "Ocp-Apim-Subscription-Key",
            "PRIVATE-TOKEN",
            "token",
            "X-Client-Secret",
            "X-Password",
            "X-Auth",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["Content-Type", "X-Tenant", "Keyboard", "X-Keys-Version", "Accept", "Tokens"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
