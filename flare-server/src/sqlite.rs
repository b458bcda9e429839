//! Takes `[repository.sqlite]`; gives the stores in that file, what keeps it in order, or why it cannot be
//! used, by the key that says where it is.

use std::path::Path;
use std::sync::Arc;

use flare_backend_sqlite::{SqliteBackend, SqliteConfig, SqliteUpkeep};
use flare_core::port::{Part, Upkeep};
use flare_core::{Error, ErrorKind};
use tracing::info;

use crate::config::Config;
use crate::failure::Failure;

/// Opens the file, or makes it.
pub(crate) async fn open(config: &Config) -> Result<SqliteBackend, Failure> {
    let opening = file(config);
    // A file of an older version is brought to this one's shape, which may take a while.
    let opened = tokio::task::spawn_blocking(move || SqliteBackend::with_config(&opening)).await;
    let opened = opened.map_err(|error| Failure::because("cannot open the file", error))?;
    opened.map_err(|error| refusal(&config.repository.sqlite.path, &error))
}

/// Opens the file if it is there: whoever only looks makes none.
pub(crate) async fn open_if_there(config: &Config) -> Result<Option<SqliteBackend>, Failure> {
    match config.repository.sqlite.path.exists() {
        true => open(config).await.map(Some),
        false => Ok(None),
    }
}

/// What keeps a part of the file in order, which need not be there yet.
pub(crate) fn upkeep(config: &Config, part: Part) -> Arc<dyn Upkeep> {
    Arc::new(SqliteUpkeep::new(&file(config), part))
}

/// Says where everything is, for whoever never said so.
pub(crate) fn tell(config: &Config) {
    let path = &config.repository.sqlite.path;
    let shown = path.canonicalize().unwrap_or_else(|_| path.clone());
    info!("everything is kept in {} (repository.sqlite.path)", shown.display());
}

/// How the configuration wants the file opened.
pub(crate) fn file(config: &Config) -> SqliteConfig {
    let most = usize::try_from(config.http.server.body_limit).unwrap_or(usize::MAX);
    config.repository.sqlite.clone().max_content(most)
}

/// Says why the file cannot be used, and what to set instead. What is behind the error it leaves out: the
/// system's words are in it already.
pub(crate) fn refusal(path: &Path, error: &Error) -> Failure {
    let said = match error.kind() {
        ErrorKind::Denied | ErrorKind::NotFound => format!(
            "cannot keep anything in {}: {}. Set repository.sqlite.path to a file in a directory that this \
             user may write, or repository.engine=memory to keep nothing",
            path.display(),
            error.detail()
        ),
        ErrorKind::Invalid => {
            return Failure::usage(format!("repository.sqlite.path: {}", error.detail()));
        }
        _ => format!("cannot use the file that repository.sqlite.path names: {error}"),
    };
    Failure::new(said)
}
