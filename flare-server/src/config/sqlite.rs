//! What may be in the file that `[repository.sqlite]` names.

use super::{Config, ConfigError, Engine, LeaseEngine, QueueEngine};

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
