//! `[repository.sqlite]`: where the file is that keeps everything, and how long a call on it may take.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::check::time;
use super::{Config, ConfigError, Engine, LeaseEngine, QueueEngine};

/// `[repository.sqlite]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Sqlite {
    /// The file, from the working directory on; it is made if it is not there.
    pub path: PathBuf,
    /// How long a call may take.
    #[serde(with = "flare_core::model::duration")]
    pub timeout: Duration,
}

impl Default for Sqlite {
    fn default() -> Self {
        Self { path: PathBuf::from("flare.db"), timeout: Duration::from_secs(10) }
    }
}

impl Sqlite {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.path.file_name().is_none() {
            let reason = "must be the path of a file, as \"/var/lib/flare/flare.db\"";
            return Err(ConfigError::new("repository.sqlite.path", reason));
        }
        let (least, most) = (Duration::from_millis(1), Duration::from_hours(1));
        time("repository.sqlite.timeout", self.timeout, least, most)
    }
}

/// Queue and leases can be in the repository's file, and in no other one.
pub(super) fn one_file(config: &Config) -> Result<(), ConfigError> {
    if config.repository.engine == Engine::Sqlite {
        return Ok(());
    }
    let parts = [
        ("queue", config.queue.engine == QueueEngine::Sqlite),
        ("lease", config.lease.engine == LeaseEngine::Sqlite),
    ];
    match parts.into_iter().find(|(_, in_file)| *in_file) {
        None => Ok(()),
        Some((part, _)) => Err(ConfigError::new(
            format!("{part}.engine"),
            "needs repository.engine \"sqlite\": it is kept in the repository's file",
        )),
    }
}
