//! Takes `[repository.postgresql]`; gives the parts that are there, connected, and what keeps them in order.

use std::sync::Arc;

use flare_backend_postgres::{
    PostgresBackend, PostgresConfig, PostgresLease, PostgresQueue, PostgresRepository,
    PostgresUpkeep,
};
use flare_core::port::{Part, Upkeep};
use flare_core::{Backend, Error, ErrorKind};

use crate::config::Config;
use crate::failure::Failure;

fn config(config: &Config) -> PostgresConfig {
    let most = usize::try_from(config.http.server.body_limit).unwrap_or(usize::MAX);
    config.repository.postgresql.clone().max_content(most)
}

/// All parts, which share their connections.
pub(crate) async fn connect(configured: &Config) -> Result<Backend, Failure> {
    let connected = PostgresBackend::connect(config(configured)).await;
    Ok(connected.map_err(|error| refusal(&error))?.into())
}

/// One part alone.
pub(crate) async fn part(configured: &Config, part: Part) -> Result<Backend, Failure> {
    let mut stores = Backend::none();
    let config = config(configured);
    match part {
        Part::Repository => {
            stores.repository = Some(Arc::new(given(PostgresRepository::connect(config).await)?))
        }
        Part::Queue => stores.queue = Some(Arc::new(given(PostgresQueue::connect(config).await)?)),
        _ => stores.lease = Some(Arc::new(given(PostgresLease::connect(config).await)?)),
    }
    Ok(stores)
}

/// What keeps a part in order.
pub(crate) async fn upkeep(configured: &Config, part: Part) -> Result<Arc<dyn Upkeep>, Failure> {
    Ok(Arc::new(given(PostgresUpkeep::connect(config(configured), part).await)?))
}

/// The queue, if it is set up.
pub(crate) async fn queue_if_there(
    configured: &Config,
) -> Result<Option<Arc<PostgresQueue>>, Failure> {
    if_set_up(PostgresQueue::connect(config(configured)).await)
}

/// The repository, if it is set up.
pub(crate) async fn repository_if_there(
    configured: &Config,
) -> Result<Option<Arc<PostgresRepository>>, Failure> {
    if_set_up(PostgresRepository::connect(config(configured)).await)
}

fn if_set_up<T>(connected: Result<T, Error>) -> Result<Option<Arc<T>>, Failure> {
    match connected {
        Ok(store) => Ok(Some(Arc::new(store))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refusal(&error)),
    }
}

fn given<T>(connected: Result<T, Error>) -> Result<T, Failure> {
    connected.map_err(|error| refusal(&error))
}

/// Says why there is no connection, by the key if one is wrong.
fn refusal(error: &Error) -> Failure {
    match (error.kind(), error.field()) {
        (ErrorKind::Invalid, Some(field)) => {
            Failure::setting("repository.postgresql", field, error.detail())
        }
        (ErrorKind::Unavailable | ErrorKind::Timeout, _) => Failure::new(format!(
            "cannot reach PostgreSQL (is it running? repository.postgresql.uri says where): {error}"
        )),
        _ => {
            Failure::new(format!("cannot use PostgreSQL as [repository.postgresql] says: {error}"))
        }
    }
}
