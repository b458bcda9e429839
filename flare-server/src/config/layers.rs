//! Takes what a file, the environment and flags say, lowest first; gives the [`Config`] they make
//! together. Never reads the process's environment by itself: the caller hands it in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_path_to_error::{Deserializer, Track};
use toml::{Table, Value};

use super::check::check;
use super::error::reason;
use super::homes::{self, put};
use super::keys::{INHERITED, Keys, is_connection, join, variable_of};
use super::{Config, ConfigError, Engine};

/// What was said so far, and by whom.
///
/// ```
/// use flare_server::config::Layers;
///
/// let config = Layers::new()?
///     .text("flare.toml", "[http.server]\nbody-limit = \"64KiB\"")?
///     .environment([("FLARE_HTTP__SERVER__BODY_LIMIT".to_owned(), "2MiB".to_owned())])?
///     .flag("--addr", "http.server.addr", "127.0.0.1:9090")?
///     .finish()?;
/// assert_eq!(config.http.server.body_limit, 2 << 20);
/// assert_eq!(config.http.server.addr.port(), 9090);
///
/// let refused = Layers::new()?.text("flare.toml", "[http.server]\nbody-limt = 1").unwrap_err();
/// assert_eq!(refused.key(), "http.server.body-limt");
/// assert!(refused.to_string().contains("did you mean http.server.body-limit?"));
/// # Ok::<(), flare_server::config::ConfigError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Layers {
    keys: Keys,
    said: BTreeMap<String, (Value, String)>,
}

impl Layers {
    /// Nothing but the defaults.
    pub fn new() -> Result<Self, ConfigError> {
        Ok(Self { keys: Keys::new()?, said: BTreeMap::new() })
    }

    /// Adds a file.
    pub fn file(self, path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            let help = match error.kind() {
                io::ErrorKind::NotFound => {
                    "there is no such file; leave out -c to run on the defaults, or start from \
                     flare.sample.toml"
                        .to_owned()
                }
                io::ErrorKind::PermissionDenied => {
                    "this user may not read it; check its owner and mode".to_owned()
                }
                io::ErrorKind::InvalidData => "is not UTF-8 text".to_owned(),
                _ => format!("cannot be read: {error}"),
            };
            ConfigError::whole(&name, help)
        })?;
        self.text(&name, &text)
    }

    /// Adds a file's text; `name` is for messages.
    pub fn text(mut self, name: &str, text: &str) -> Result<Self, ConfigError> {
        let table = text.parse::<Table>().map_err(|error| {
            // Its own Display would show the line, and a secret may stand there.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            ConfigError::whole(format!("{name}, line {line}"), error.message())
        })?;
        self.add(name, "", table)?;
        Ok(self)
    }

    fn add(&mut self, origin: &str, section: &str, table: Table) -> Result<(), ConfigError> {
        for (name, value) in table {
            let path = join(section, &name);
            match value {
                Value::Table(inner) if self.keys.is_section(&path) => {
                    self.name(&path, origin);
                    self.add(origin, &path, inner)?;
                }
                value if self.keys.is_section(&path) => {
                    let reason = format!("is a section and takes no value: [{path}]");
                    // Of a connection it may be meant for its uri, which is a secret.
                    let shown = (!is_connection(&path)).then_some(&value);
                    return Err(ConfigError::new(&path, reason).from(origin, shown));
                }
                value if self.keys.default_of(&path).is_some() => {
                    self.said.insert(path, (value, origin.to_owned()));
                }
                // Its value is not shown: it may be meant for a key that is a secret.
                _ => return Err(self.keys.unknown(&path).from(origin, None)),
            }
        }
        Ok(())
    }

    /// Has a connection there as soon as it is named, so that it is refused for what it lacks and not left out.
    fn name(&mut self, section: &str, origin: &str) {
        for (path, value) in self.keys.of_section(section) {
            self.said.entry(path).or_insert_with(|| (value.clone(), origin.to_owned()));
        }
    }

    /// Adds the environment, or what of it is ours.
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        for (variable, text) in variables {
            if let Some(path) = self.keys.of_variable(&variable) {
                self.say(&path, &text, format!("environment variable {variable}"))?;
            } else if self.keys.claims(&variable) {
                return Err(self.keys.unknown_variable(&variable));
            }
        }
        Ok(self)
    }

    /// Adds a flag that sets a key.
    pub fn flag(mut self, flag: &str, path: &str, text: &str) -> Result<Self, ConfigError> {
        if self.keys.default_of(path).is_none() {
            return Err(self.keys.unknown(path).from(flag, None));
        }
        self.say(path, text, flag.to_owned())?;
        Ok(self)
    }

    fn say(&mut self, path: &str, text: &str, origin: String) -> Result<(), ConfigError> {
        let value = match self.keys.default_of(path) {
            Some(Value::Integer(_)) => text.parse().map(Value::Integer).ok(),
            Some(Value::Boolean(_)) => text.parse().map(Value::Boolean).ok(),
            Some(Value::Array(_)) => Some(list(path, text).map_err(|e| e.from(&origin, None))?),
            _ => None,
        };
        if let Some((section, _)) = path.rsplit_once('.') {
            self.name(section, &origin);
        }
        // What does not look like the default stays text, and is refused with what is allowed.
        let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
        self.said.insert(path.to_owned(), (value, origin));
        Ok(())
    }

    /// Reads and checks what all of them say together.
    pub fn finish(self) -> Result<Config, ConfigError> {
        // On top of the defaults, for a table may have other ones than its kind has elsewhere.
        let mut table = Table::new();
        let said = self.said.iter().map(|(path, (value, _))| (path.as_str(), value));
        for (path, value) in self.keys.defaults().chain(said) {
            put(&mut table, path, value.clone());
        }
        // One that is wrong is refused as what it was said as, and not as what it is inherited by.
        let engine = self.value_of("repository.engine").cloned();
        let engine = engine.and_then(|value| value.try_into().ok()).unwrap_or(Engine::default());
        for path in INHERITED {
            if self.value_of(path).and_then(Value::as_str) == Some("") {
                put(&mut table, path, Value::String(engine.as_str().to_owned()));
            }
        }
        let mut track = Track::new();
        let table = Value::Table(homes::settled(table));
        let read = Config::deserialize(Deserializer::new(table, &mut track));
        let config = read.map_err(|error: toml::de::Error| {
            let key = homes::key_of(&track.path().to_string());
            self.explain(ConfigError::new(key, reason(error.message())))
        })?;
        check(&config).map_err(|error| self.explain(error))?;
        Ok(config)
    }

    /// What was said last, or the default.
    fn value_of(&self, path: &str) -> Option<&Value> {
        self.said.get(path).map(|(value, _)| value).or_else(|| self.keys.default_of(path))
    }

    /// Adds who said it.
    fn explain(&self, error: ConfigError) -> ConfigError {
        // `http.auth.tokens[0].scopes` was said as `http.auth.tokens`.
        let path = error.key().split('[').next().unwrap_or_default();
        match self.said.get(path) {
            Some((value, origin)) => error.from(origin, Some(value)),
            None => error,
        }
    }

    /// Every key and the variable that sets it, but for those of connections.
    pub fn variables(&self) -> impl Iterator<Item = (&str, String)> {
        self.keys.paths().map(|path| (path, variable_of(path)))
    }
}

/// A list as TOML writes it, or its texts with commas between them.
fn list(path: &str, text: &str) -> Result<Value, ConfigError> {
    if text.trim_start().starts_with('[') {
        let table = format!("list = {text}").parse::<Table>();
        let value = table.ok().and_then(|mut table| table.remove("list"));
        return value.ok_or_else(|| {
            ConfigError::new(path, "must be a list as TOML writes it, or texts with commas between")
        });
    }
    let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
    Ok(texts.map(Value::from).collect::<Vec<_>>().into())
}
