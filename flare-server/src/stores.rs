//! Takes the configuration; gives the stores it names, connected, and what keeps them in order. The
//! only place that knows which engine is which crate.

use std::sync::Arc;

use flare_backend_memory::{MemoryBackend, MemoryConfig};
use flare_backend_mongo::{
    MongoBackend, MongoConfig, MongoLease, MongoQueue, MongoRepository, MongoUpkeep,
};
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::port::{Part, Purpose, Repository, SystemClock, Upkeep};
use flare_core::upkeep::{Caretaker, QueueUpkeep};
use flare_core::{Backend, Error, ErrorKind};
use secrecy::ExposeSecret;

use crate::config::{Config, LeaseEngine, Mongo, QueueEngine, Reads, Sqs, Writes};
use crate::etcd;
use crate::failure::Failure;

/// All stores, each with the engine the configuration names. They have to be set up.
pub(crate) async fn connect(config: &Config) -> Result<Backend, Failure> {
    if let Some(place) = one_database(config) {
        let connected = MongoBackend::connect(place.config()).await;
        return Ok(connected.map_err(|error| place.refusal(&error))?.into());
    }
    let memory = memory(config);
    let mut stores = Backend::none();
    for part in Part::ALL {
        stores = match Place::of(config, part) {
            None if part == Part::Queue && config.queue.engine == QueueEngine::Sqs => {
                stores.queue = Some(Arc::new(on_sqs(&config.queue.sqs).await?));
                stores
            }
            None if part == Part::Lease && config.lease.engine == LeaseEngine::Etcd => {
                stores.lease = Some(etcd::lease(&config.lease.etcd).await?);
                stores
            }
            None => stores.with(part, &memory),
            Some(place) => {
                let connected = on_mongodb(place.config(), part).await;
                stores.with(part, &connected.map_err(|error| place.refusal(&error))?)
            }
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
    let memory = memory(config);
    let mut kept = Backend::none();
    for part in parts {
        kept = match Place::of(config, *part) {
            None if *part == Part::Queue && config.queue.engine == QueueEngine::Sqs => {
                kept.upkeep.extend(sqs_upkeep(config, purpose).await?);
                kept
            }
            None if *part == Part::Lease && config.lease.engine == LeaseEngine::Etcd => {
                kept.upkeep(etcd::upkeep(&config.lease.etcd).await?)
            }
            None => kept.with(*part, &memory),
            Some(place) => {
                let upkeep = mongo_upkeep(place.config(), *part).await;
                kept.upkeep(upkeep.map_err(|error| place.refusal(&error))?)
            }
        };
    }
    if purpose == Purpose::Cleanup && parts.contains(&Part::Queue) {
        kept.upkeep.extend(left_over_queues(config).await?);
    }
    Ok(kept.caretaker())
}

/// What keeps a part in order that is in MongoDB.
async fn mongo_upkeep(config: MongoConfig, part: Part) -> Result<Arc<dyn Upkeep>, Error> {
    Ok(Arc::new(MongoUpkeep::connect(config, part).await?))
}

/// What keeps queues in order that are on SQS: those the configuration calls for are created, others
/// of ours removed. Which lanes there are is for the repository to say. One that is not set up has no
/// subscriptions; those of one in memory are not to be seen from here, so nothing is removed beside it.
async fn sqs_upkeep(config: &Config, purpose: Purpose) -> Result<Option<Arc<dyn Upkeep>>, Failure> {
    let table = &config.queue.sqs;
    let queue = Arc::new(on_sqs(table).await?);
    let stored: Option<Arc<dyn Repository>> = match Place::of(config, Part::Repository) {
        None => None,
        Some(place) => {
            let connected = MongoRepository::connect(place.config()).await;
            place.if_set_up(connected)?.map(|repository| Arc::new(repository) as _)
        }
    };
    let repository = match stored {
        None if purpose == Purpose::Cleanup => None,
        None => memory(config).repository,
        stored => stored,
    };
    let kept = |repository| QueueUpkeep::new("sqs", queue, repository);
    let reserved = config.cluster.pinned_slots;
    let placed =
        |upkeep: QueueUpkeep| upkeep.placed(table.placement, table.slots).reserving(reserved);
    Ok(repository.map(|repository| Arc::new(placed(kept(repository))) as _))
}

/// Finds queues of lanes that are nobody's. Only where the repository is shared as well: beside
/// one in memory, queues belong to subscriptions that this process cannot see. Nothing is left over
/// before both are set up.
async fn left_over_queues(config: &Config) -> Result<Option<Arc<dyn Upkeep>>, Failure> {
    let places = [Part::Repository, Part::Queue].map(|part| Place::of(config, part));
    let [Some(at_repository), Some(at_queue)] = places else { return Ok(None) };
    let repository = MongoRepository::connect(at_repository.config()).await;
    let Some(repository) = at_repository.if_set_up(repository)? else { return Ok(None) };
    let queue = MongoQueue::connect(at_queue.config()).await;
    let Some(queue) = at_queue.if_set_up(queue)? else { return Ok(None) };
    Ok(Some(Arc::new(QueueUpkeep::new("mongodb", Arc::new(queue), Arc::new(repository)))))
}

/// Where everything is, if all parts are in the same database: repository and queue share connections.
fn one_database(config: &Config) -> Option<Place<'_>> {
    let [repository, queue, lease] = Part::ALL.map(|part| config.mongodb(part));
    let same = repository == queue && queue == lease;
    Place::of(config, Part::Repository).filter(|_| same)
}

async fn on_mongodb(config: MongoConfig, part: Part) -> Result<Backend, Error> {
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

async fn on_sqs(table: &Sqs) -> Result<SqsQueue, Failure> {
    SqsQueue::connect(sqs_config(table)).await.map_err(|error| match error.field() {
        Some(field) if error.kind() == ErrorKind::Invalid => {
            Failure::usage(format!("queue.sqs.{field} {}", error.detail()))
        }
        _ => Failure::new(format!("cannot use SQS as [queue.sqs] says: {error}")),
    })
}

fn sqs_config(table: &Sqs) -> SqsConfig {
    let limit = usize::try_from(table.message_limit).unwrap_or(usize::MAX);
    let mut config = SqsConfig::new()
        .prefix(&table.prefix)
        .fifo(table.fifo)
        .message_limit(limit)
        .timeout(table.timeout);
    // What is left out is the machine's to say.
    if !table.endpoint.is_empty() {
        config = config.endpoint(&table.endpoint);
    }
    if !table.region.is_empty() {
        config = config.region(&table.region);
    }
    if !table.key.is_empty() {
        config = config.credentials(&table.key, table.secret.expose_secret());
    }
    if !table.assume_role.is_empty() {
        config = config.assume_role(&table.assume_role);
    }
    config
}

/// A table about MongoDB, with its name.
struct Place<'a> {
    name: &'static str,
    table: &'a Mongo,
}

impl<'a> Place<'a> {
    fn of(config: &'a Config, part: Part) -> Option<Self> {
        config.mongodb_table(part).map(|(name, table)| Self { name, table })
    }

    fn config(&self) -> MongoConfig {
        mongo_config(self.table)
    }

    fn if_set_up<T>(&self, connected: Result<T, Error>) -> Result<Option<T>, Failure> {
        match connected {
            Ok(store) => Ok(Some(store)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// Says why there is no connection, by the key if one is wrong. What is behind the error it leaves
    /// out: the driver's words are in it already, and would be in it again.
    fn refusal(&self, error: &Error) -> Failure {
        let name = self.name;
        match (error.kind(), error.field()) {
            (ErrorKind::Invalid, Some("uri")) if self.table.uri_has_secrets() => {
                // The parser quotes what it does not understand.
                Failure::usage(format!(
                    "{name}.uri is no MongoDB address (why is not shown, as that may quote a \
                     secret; / : ? # [ ] @ % in user or password have to be percent-encoded)"
                ))
            }
            (ErrorKind::Invalid, Some(field)) => {
                Failure::usage(format!("{name}.{field} {}", error.detail()))
            }
            (ErrorKind::Unavailable | ErrorKind::Timeout, _) => Failure::new(format!(
                "cannot reach MongoDB (is it running? {name}.uri says where): {error}"
            )),
            _ => Failure::new(format!("cannot use MongoDB as [{name}] says: {error}")),
        }
    }
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
