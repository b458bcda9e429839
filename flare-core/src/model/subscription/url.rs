//! Takes a client's URL with placeholders; gives it checked, and a key to compare it by.
//! Never resolves or dials: the address guard acts where the connection is made.

use std::borrow::Cow;
use std::fmt;

use fluent_uri::Uri;
use fluent_uri::component::Host;

use crate::model::{Escape, Invalid, MissingValue, Template};

/// The longest URL template, in bytes.
pub const MAX_URL_BYTES: usize = 2_048;

/// An absolute http or https URL with placeholders in its path or query.
///
/// Placeholders are refused before the path, so that no document can choose where Flare connects.
///
/// ```
/// use flare_core::model::subscription::UrlTemplate;
///
/// let url = UrlTemplate::parse("https://client.example/hook/{id}?rev={revision}")?;
/// assert_eq!(url.render(|_| Some("1/2"))?, "https://client.example/hook/1%2F2?rev=1%2F2");
/// assert!(UrlTemplate::parse("https://{host}/hook").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    template: Template,
    key: String,
}

impl UrlTemplate {
    /// Checks a URL. The refusal has an empty field.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        if text.len() > MAX_URL_BYTES {
            return refuse(format!("must be at most {MAX_URL_BYTES} bytes"));
        }
        let template = Template::parse(text)?;
        check_head(&template)?;
        // `{id}` becomes `%7Bid%7D`, which is valid wherever a placeholder may be and which
        // normalisation leaves alone.
        let sample = template.render_names(|name| {
            let mut value = String::from("%7B");
            Escape::Url.push(&mut value, name);
            value + "%7D"
        });
        let uri = match Uri::parse(sample.as_str()) {
            Ok(uri) => uri,
            Err(error) => return refuse(format!("must be an absolute http or https URL: {error}")),
        };
        check(&uri)?;
        Ok(Self { key: key(&uri), template })
    }

    /// The URL as it was written.
    pub fn as_str(&self) -> &str {
        self.template.as_str()
    }

    /// The URL as a template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The URL in RFC 3986 normal form with `%7Bname%7D` for placeholders: two URLs that are
    /// written differently and mean the same have the same key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A [key](Self::key) as people write it: `{id}`, not `%7Bid%7D`.
    pub fn show_key(key: &str) -> String {
        key.replace("%7B", "{").replace("%7D", "}")
    }

    /// Fills in the placeholders, percent-encoded.
    pub fn render<'v>(
        &self,
        lookup: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, MissingValue> {
        self.template.render(Escape::Url, lookup)
    }
}

/// No placeholder may come before the path or query begins.
fn check_head(template: &Template) -> Result<(), Invalid> {
    let (head, has_placeholders) = template.head();
    let after_scheme = head.split_once("://").map(|(_, rest)| rest);
    match (after_scheme, has_placeholders) {
        (Some(rest), true) if !rest.contains(['/', '?', '#']) => {
            refuse("must not have a placeholder before its path: documents may not choose the host")
        }
        (None, true) if head.is_empty() => {
            refuse("must not begin with a placeholder: documents may not choose the host")
        }
        (None, _) => refuse("must be an absolute http or https URL"),
        (Some(_), _) => Ok(()),
    }
}

fn check(uri: &Uri<&str>) -> Result<(), Invalid> {
    let scheme = uri.scheme().as_str();
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return refuse("must be an http or https URL");
    }
    let Some(authority) = uri.authority() else { return refuse("must have a host") };
    if authority.has_userinfo() {
        return refuse("must not have a user or password: send credentials as a header");
    }
    match authority.host_parsed() {
        Host::Ipv4 { .. } | Host::Ipv6 { .. } => {}
        Host::RegName(name) => check_name(name.as_str())?,
        _ => return refuse("must have a host name or an IPv4 or IPv6 address"),
    }
    if !matches!(authority.port_to_u16(), Ok(None | Some(1..))) {
        return refuse("must have a port from 1 to 65535, or none");
    }
    if uri.has_fragment() {
        return refuse("must not have a fragment (#): it would never be sent");
    }
    Ok(())
}

/// What every resolver and URL parser takes for the same name, and none for an odd IPv4 address.
fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return refuse("must have a host");
    }
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
        return refuse("must have a host of letters, digits, '-', '.' and '_'; others as punycode");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.split('.').any(str::is_empty) {
        return refuse("must have a host without empty labels");
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let numeric = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if numeric(last) || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return refuse("must write an IPv4 address as four decimal numbers");
    }
    Ok(())
}

fn key(uri: &Uri<&str>) -> String {
    let normal = uri.normalize();
    let text = normal.as_str();
    if !normal.path().is_empty() {
        return text.to_owned();
    }
    // An empty path is sent as `/`.
    match text.split_once('?') {
        Some((before, query)) => format!("{before}/?{query}"),
        None => format!("{text}/"),
    }
}

fn refuse<T>(reason: impl Into<Cow<'static, str>>) -> Result<T, Invalid> {
    Err(Invalid::new("", reason))
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UrlTemplate").field(&self.as_str()).finish()
    }
}

impl fmt::Display for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
