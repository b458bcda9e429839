//! Takes what is wrong with a configuration; gives one sentence that names the key, what is allowed
//! and where the value came from. Never quotes a secret.

use std::fmt;

use flare_core::model::Invalid;
use toml::Value;

/// Why a configuration was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    key: String,
    reason: String,
    origin: Option<String>,
}

impl ConfigError {
    /// The key's value is wrong; the reason goes on from the key: `must be …`.
    pub(super) fn new(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into(), origin: None }
    }

    /// A library refuses a setting of this table: in Rust it has underscores, and others beside it stand in
    /// backquotes.
    pub(super) fn in_table(table: &str, invalid: &Invalid) -> Self {
        let key = |field: &str| format!("{table}.{}", field.replace('_', "-"));
        let named = invalid.reason().split('`').enumerate();
        let reason: String =
            named.map(|(at, text)| if at % 2 == 0 { text.to_owned() } else { key(text) }).collect();
        Self::new(key(invalid.field()), reason)
    }

    /// Something is wrong with a file or a variable as a whole.
    pub(super) fn whole(what: impl fmt::Display, reason: impl Into<String>) -> Self {
        Self { key: String::new(), reason: format!("{what}: {}", reason.into()), origin: None }
    }

    /// Adds where the value came from and, unless it may be a secret, what it is.
    pub(super) fn from(mut self, origin: &str, value: Option<&Value>) -> Self {
        let shown = value.filter(|value| !value.is_array() && !value.is_table());
        self.origin = Some(match shown {
            Some(value) if !is_secret(&self.key) => format!("{origin} says {value}"),
            _ => format!("it comes from {origin}"),
        });
        self
    }

    /// The full path of the key that is wrong: `http.server.body-limit`. Empty if it is not about
    /// a key.
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.reason)?;
        match &self.origin {
            Some(origin) => write!(f, " ({origin})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// Whether a key's value is a secret, or has one in it.
fn is_secret(key: &str) -> bool {
    key.starts_with("http.auth")
        || key.starts_with("otlp.")
        || [".uri", ".password", ".secret"].iter().any(|name| key.ends_with(name))
}

/// Serde's words, which are for programmers and may quote the value, as a reason.
pub(super) fn reason(message: &str) -> String {
    if message.starts_with("must") {
        return message.to_owned();
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("needs {}", field.replace('`', "\""));
    }
    let Some((found, expected)) = message.split_once(", expected ") else {
        return format!("cannot be read: {message}");
    };
    let unknown = found.strip_prefix("unknown field ");
    let expected = match expected.trim() {
        "u32" | "u64" | "usize" => "a whole number",
        "a boolean" => "true or false",
        "a string" => "a text in quotes",
        "a sequence" => "a list in brackets",
        other => other.strip_prefix("one of ").unwrap_or(other),
    };
    let expected = expected.replace('`', "\"");
    match unknown {
        // The path names the field already.
        Some(_) => format!("is no key; there is {expected}"),
        None => format!("must be {expected}"),
    }
}
