//! Takes the configuration; gives the stores it names, connected, and what keeps them in order. The
//! only place that knows which engine is which crate.

use std::sync::Arc;

use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_backend_mongo::{MongoBackend, MongoConfig, MongoLease, MongoQueue, MongoRepository};
use flare_core::port::{Part, Purpose, SystemClock, Upkeep};
use flare_core::upkeep::{Caretaker, QueueUpkeep};
use flare_core::{Backend, Error, ErrorKind};
use secrecy::ExposeSecret;

use crate::config::{Config, Mongo, Reads, Writes};
use crate::failure::Failure;

/// All stores, each with the engine the configuration names. They have to be set up.
pub(crate) async fn connect(config: &Config) -> Result<Backend, Failure> {
    connected(config).await.map_err(|error| Failure::because("cannot connect to the stores", error))
}

async fn connected(config: &Config) -> Result<Backend, Error> {
    if let Some(table) = one_database(config) {
        return Ok(MongoBackend::connect(mongo_config(table)).await?.into());
    }
    let memory = memory(config);
    let mut stores = Backend::none();
    for part in Part::ALL {
        stores = match config.mongodb(part) {
            None => stores.with(part, &memory),
            Some(table) => stores.with(part, &on_mongodb(table, part).await?),
        };
    }
    Ok(stores)
}

/// What keeps these parts in order. Stores need not be set up, as setting them up begins here.
pub(crate) async fn caretaker(
    config: &Config,
    purpose: Purpose,
    parts: &[Part],
) -> Result<Caretaker, Failure> {
    let kept = kept(config, purpose, parts).await;
    let kept = kept.map_err(|error| Failure::because("cannot connect to the stores", error))?;
    Ok(kept.caretaker())
}

async fn kept(config: &Config, purpose: Purpose, parts: &[Part]) -> Result<Backend, Error> {
    let memory = memory(config);
    let mut kept = Backend::none();
    for part in parts {
        kept = match config.mongodb(*part) {
            None => kept.with(*part, &memory),
            Some(table) => kept.upkeep(mongo_upkeep(mongo_config(table), *part).await?),
        };
    }
    if purpose == Purpose::Cleanup && parts.contains(&Part::Queue) {
        kept.upkeep.extend(left_over_queues(config).await?);
    }
    Ok(kept)
}

/// What keeps a part in order that is in MongoDB.
async fn mongo_upkeep(_config: MongoConfig, part: Part) -> Result<Arc<dyn Upkeep>, Error> {
    let detail = format!("the {part} cannot be kept in order by this version yet");
    Err(Error::new(ErrorKind::Unsupported, "upkeep").backend("mongodb").detail(detail))
}

/// Queues of lanes that are nobody's, which shared stores alone can know: those of a queue that is
/// shared by a repository that is not may be another process's. None before all is set up.
async fn left_over_queues(config: &Config) -> Result<Option<Arc<dyn Upkeep>>, Error> {
    let shared = [Part::Repository, Part::Queue].map(|part| config.mongodb(part));
    let [Some(repository), Some(queue)] = shared else { return Ok(None) };
    let connected = async {
        let repository = MongoRepository::connect(mongo_config(repository)).await?;
        let queue = MongoQueue::connect(mongo_config(queue)).await?;
        Ok::<_, Error>(QueueUpkeep::new("mongodb", Arc::new(queue), Arc::new(repository)))
    };
    match connected.await {
        Ok(upkeep) => Ok(Some(Arc::new(upkeep))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where everything is, if all parts are in the same database: one pool of connections is enough.
fn one_database(config: &Config) -> Option<&Mongo> {
    let [repository, queue, lease] = Part::ALL.map(|part| config.mongodb(part));
    repository.filter(|_| repository == queue && queue == lease)
}

async fn on_mongodb(table: &Mongo, part: Part) -> Result<Backend, Error> {
    let config = mongo_config(table);
    let mut stores = Backend::none();
    match part {
        Part::Repository => {
            stores.repository = Some(Arc::new(MongoRepository::connect(config).await?));
        }
        Part::Queue => stores.queue = Some(Arc::new(MongoQueue::connect(config).await?)),
        _ => stores.lease = Some(Arc::new(MongoLease::connect(config).await?)),
    }
    Ok(stores)
}

fn mongo_config(table: &Mongo) -> MongoConfig {
    let mut config = MongoConfig::new(table.uri.expose_secret())
        .timeout(table.timeout)
        .poll_every(table.poll_every)
        .writes(match table.writes {
            Writes::Majority => flare_backend_mongo::Writes::Majority,
            Writes::Members(members) => flare_backend_mongo::Writes::Members(members),
        })
        .reads(match table.reads {
            Reads::Majority => flare_backend_mongo::Reads::Majority,
            Reads::Local => flare_backend_mongo::Reads::Local,
            Reads::Linearizable => flare_backend_mongo::Reads::Linearizable,
        });
    // What is left out is the URI's to say.
    if !table.database.is_empty() {
        config = config.database(&table.database);
    }
    if !table.username.is_empty() {
        config = config.credentials(&table.username, table.password.expose_secret());
    }
    if !table.replica_set.is_empty() {
        config = config.replica_set(&table.replica_set);
    }
    if table.pool_limit > 0 {
        config = config.pool_limit(table.pool_limit);
    }
    config
}

/// All parts in this process's memory; those that are elsewhere stay empty, and cost nothing.
fn memory(config: &Config) -> Backend {
    let most = usize::try_from(config.http.server.body_limit).unwrap_or(usize::MAX);
    let limits =
        MemoryConfig::default().max_bytes(config.repository.memory.max_bytes).max_content(most);
    MemoryBackend::with_config(limits, Arc::new(SystemClock::new())).into()
}
