//! Takes the defaults; gives every key there is, how it is called in the environment, and what
//! an operator may have meant who wrote another.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::connections::{self, BrokerConnection, is_name};
use super::{Config, ConfigError};

/// Less alike than this, and a suggestion would puzzle rather than help.
const ALIKE: f64 = 0.6;

/// Keys that are empty unless something is said, and then mean what the repository's engine is.
pub(super) const INHERITED: [&str; 2] = ["queue.engine", "lease.engine"];

/// Every key with its default, and every section.
#[derive(Debug)]
pub(super) struct Keys {
    defaults: BTreeMap<String, Value>,
    sections: BTreeMap<String, Vec<String>>,
    /// What each connection has: operators name those, so their paths are not known before.
    of_connection: Table,
}

impl Keys {
    /// Reads them from the defaults, so that no key can be forgotten here.
    pub(super) fn new() -> Result<Self, ConfigError> {
        let unreadable =
            |error: toml::ser::Error| ConfigError::whole("defaults", error.to_string());
        let table = Table::try_from(Config::default()).map_err(unreadable)?;
        let of_connection = Table::try_from(BrokerConnection::default()).map_err(unreadable)?;
        let (defaults, sections) = (BTreeMap::new(), BTreeMap::new());
        let mut keys = Self { defaults, sections, of_connection };
        keys.add("", &table);
        for path in INHERITED {
            keys.defaults.insert(path.to_owned(), Value::String(String::new()));
        }
        Ok(keys)
    }

    fn add(&mut self, section: &str, table: &Table) {
        self.sections.insert(section.to_owned(), table.keys().cloned().collect());
        for (name, value) in table {
            let path = join(section, name);
            match value {
                Value::Table(inner) => self.add(&path, inner),
                value => drop(self.defaults.insert(path, value.clone())),
            }
        }
    }

    /// The full paths of all keys, but for those of connections.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.defaults.keys().map(String::as_str)
    }

    /// All keys with their defaults.
    pub(super) fn defaults(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.defaults.iter().map(|(path, value)| (path.as_str(), value))
    }

    pub(super) fn default_of(&self, path: &str) -> Option<&Value> {
        match in_connection(path) {
            Some((name, key)) => self.of_connection.get(key).filter(|_| is_name(name)),
            None => self.defaults.get(path),
        }
    }

    pub(super) fn is_section(&self, path: &str) -> bool {
        self.sections.contains_key(path) || is_connection(path)
    }

    /// All keys of a connection with their defaults; none of a section that is no connection.
    pub(super) fn of_section(&self, section: &str) -> impl Iterator<Item = (String, &Value)> {
        let keys = self.of_connection.iter().filter(move |_| is_connection(section));
        keys.map(move |(key, value)| (join(section, key), value))
    }

    /// The key of a variable: `FLARE_HTTP__SERVER__BODY_LIMIT` is `http.server.body-limit`.
    pub(super) fn of_variable(&self, variable: &str) -> Option<String> {
        self.near(variable).into_iter().find(|path| variable_of(path) == variable)
    }

    /// The keys that a variable may mean: all there are, and those of the connection that it names.
    fn near(&self, variable: &str) -> Vec<String> {
        let below = variable_of(&join(connections::SECTION, ""));
        let named = variable.strip_prefix(&below).and_then(|rest| rest.split_once("__"));
        let section = named.map(|(name, _)| name.to_lowercase().replace('_', "-"));
        let section = section.map(|name| join(connections::SECTION, &name)).unwrap_or_default();
        let of_connection = self.of_section(&section).map(|(path, _)| path);
        self.paths().map(str::to_owned).chain(of_connection).collect()
    }

    /// Whether a variable that is no key was meant to be one: it has a section's name, or the
    /// form that only keys have.
    pub(super) fn claims(&self, variable: &str) -> bool {
        let Some(rest) = variable.strip_prefix(PREFIX) else { return false };
        if rest.starts_with("TEST_") || rest.starts_with("HISTOR") {
            return false;
        }
        let first = rest.split('_').next().unwrap_or(rest);
        rest.contains("__") || self.is_section(&first.to_lowercase())
    }

    /// Refuses a path that is no key, with what is there.
    pub(super) fn unknown(&self, path: &str) -> ConfigError {
        if let Some((name, _)) = in_connection(path).filter(|(name, _)| !is_name(name)) {
            return ConfigError::new(join(connections::SECTION, name), connections::NAMES);
        }
        let (section, _) = path.rsplit_once('.').unwrap_or(("", path));
        let beside = match is_connection(section) {
            true => Some(self.of_connection.keys().cloned().collect()),
            false => self.sections.get(section).cloned(),
        };
        let near = beside.iter().flatten().map(|name| join(section, name));
        let meant = closest(path, near)
            .or_else(|| closest(path, self.paths().map(str::to_owned)))
            .map(|meant| format!("; did you mean {meant}?"));
        let there = match (&beside, section) {
            (None, _) => String::new(),
            (Some(names), "") => format!("; the sections are {}", names.join(", ")),
            (Some(names), section) => format!("; [{section}] has {}", names.join(", ")),
        };
        ConfigError::new(path, format!("is no key{}{there}", meant.unwrap_or_default()))
    }

    /// Refuses a variable that is no key, with the one that was meant.
    pub(super) fn unknown_variable(&self, variable: &str) -> ConfigError {
        let names = self.near(variable).into_iter().map(|path| variable_of(&path));
        let meant = closest(variable, names).map(|meant| format!("; did you mean {meant}?"));
        let meant = meant.unwrap_or_else(|| {
            "; a variable is FLARE_ and the key, with __ for . and _ for -: `flare config` shows \
             every key"
                .to_owned()
        });
        ConfigError::whole(
            format!("environment variable {variable}"),
            format!("names no key{meant}"),
        )
    }
}

const PREFIX: &str = "FLARE_";

/// The variable of a key.
pub(super) fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "__").replace('-', "_").to_uppercase())
}

pub(super) fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// The connection and the key in it that a path is about; the key is empty for the connection itself.
fn in_connection(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(connections::SECTION)?.strip_prefix('.')?;
    Some(rest.split_once('.').unwrap_or((rest, "")))
}

/// Whether a path is that of a connection as a whole.
pub(super) fn is_connection(path: &str) -> bool {
    in_connection(path).is_some_and(|(name, key)| is_name(name) && key.is_empty())
}

fn closest(word: &str, others: impl Iterator<Item = String>) -> Option<String> {
    let last = |text: &str| text.rsplit('.').next().unwrap_or(text).to_owned();
    let scored = others.map(|other| {
        // Within a section only the last part differs, and would drown in what is equal.
        let alike = strsim::normalized_damerau_levenshtein(&last(word), &last(&other));
        (alike, other)
    });
    let best = scored.filter(|(alike, _)| *alike >= ALIKE);
    best.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, other)| other)
}
