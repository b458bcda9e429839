//! Takes `[log]`; gives what is written, where to and in which form. Opens nothing.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tracing_subscriber::filter::Targets;

/// `[log]`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// What is written.
    pub level: Level,
    /// Where to.
    pub output: Output,
    /// In which form.
    pub format: Format,
}

/// A level, or a level and exceptions by target: `info,flare_core=debug`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Level(String);

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Level {
    /// The same for the subscriber.
    pub fn targets(&self) -> Targets {
        // It was checked when it was made.
        self.0.parse().unwrap_or_default()
    }
}

impl Default for Level {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl TryFrom<String> for Level {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // By itself the parser would take a level that is misspelt for a target.
        let known = text.split(',').all(|part| {
            let (target, level) = part.split_once('=').unwrap_or(("_", part));
            !target.is_empty() && LEVELS.contains(&level)
        });
        if known && text.parse::<Targets>().is_ok() {
            return Ok(Self(text));
        }
        Err("must be \"off\", \"error\", \"warn\", \"info\", \"debug\" or \"trace\", with \
             exceptions if any behind it: \"info,flare_core=debug\""
            .to_owned())
    }
}

impl From<Level> for String {
    fn from(level: Level) -> Self {
        level.0
    }
}

/// Where lines go.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Output {
    /// Standard error.
    #[default]
    Stderr,
    /// Standard output.
    Stdout,
    /// The end of a file.
    File(PathBuf),
}

impl TryFrom<String> for Output {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "stderr" => Ok(Self::Stderr),
            "stdout" => Ok(Self::Stdout),
            // A bare word is rather a slip than a file.
            path if path.contains('/') => Ok(Self::File(PathBuf::from(path))),
            _ => {
                Err("must be \"stderr\", \"stdout\" or the path of a file, with a / in it"
                    .to_owned())
            }
        }
    }
}

impl From<Output> for String {
    fn from(output: Output) -> Self {
        match output {
            Output::Stderr => "stderr".to_owned(),
            Output::Stdout => "stdout".to_owned(),
            Output::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// A JSON object per line, with the commit.
    Json,
}
