//! Takes the defaults; gives every key there is, how it is called in the environment, and what
//! somebody may have meant who wrote another.

use std::collections::BTreeMap;

use toml::{Table, Value};

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
}

impl Keys {
    /// Reads them from the defaults, so that no key can be forgotten here.
    pub(super) fn new() -> Result<Self, ConfigError> {
        let table = Table::try_from(Config::default())
            .map_err(|error| ConfigError::whole("defaults", error.to_string()))?;
        let mut keys = Self { defaults: BTreeMap::new(), sections: BTreeMap::new() };
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

    /// The full paths of all keys.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.defaults.keys().map(String::as_str)
    }

    /// All keys with their defaults.
    pub(super) fn defaults(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.defaults.iter().map(|(path, value)| (path.as_str(), value))
    }

    pub(super) fn default_of(&self, path: &str) -> Option<&Value> {
        self.defaults.get(path)
    }

    pub(super) fn is_section(&self, path: &str) -> bool {
        self.sections.contains_key(path)
    }

    /// The key of a variable: `FLARE_HTTP__SERVER__BODY_LIMIT` is `http.server.body-limit`.
    pub(super) fn of_variable(&self, variable: &str) -> Option<&str> {
        self.paths().find(|path| variable_of(path) == variable)
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
        let (section, _) = path.rsplit_once('.').unwrap_or(("", path));
        let beside = self.sections.get(section);
        let near = beside.into_iter().flatten().map(|name| join(section, name));
        let meant = closest(path, near)
            .or_else(|| closest(path, self.paths().map(str::to_owned)))
            .map(|meant| format!("; did you mean {meant}?"));
        let there = match (beside, section) {
            (None, _) => String::new(),
            (Some(names), "") => format!("; the sections are {}", names.join(", ")),
            (Some(names), section) => format!("; [{section}] has {}", names.join(", ")),
        };
        ConfigError::new(path, format!("is no key{}{there}", meant.unwrap_or_default()))
    }

    /// Refuses a variable that is no key, with the one that was meant.
    pub(super) fn unknown_variable(&self, variable: &str) -> ConfigError {
        let names = self.paths().map(variable_of);
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
