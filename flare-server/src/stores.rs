//! Takes the configuration; gives the stores it names, connected, and what keeps them in order. The
//! only place that knows which engine is which crate.

use std::sync::Arc;

use flare_backend_memory::MemoryBackend;
use flare_backend_mongo::{
    MongoBackend, MongoConfig, MongoLease, MongoQueue, MongoRepository, MongoUpkeep,
};
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::port::{Part, Purpose, Queue, Repository, SystemClock, Upkeep};
use flare_core::upkeep::{Caretaker, QueueUpkeep};
use flare_core::{Backend, Error, ErrorKind};

use crate::config::{Config, Engine, LeaseEngine, QueueEngine};
use crate::failure::Failure;
use crate::{etcd, postgres, sqlite};

/// All stores, each with the engine the configuration names. They have to be set up.
pub(crate) async fn connect(config: &Config) -> Result<Backend, Failure> {
    if let Some(place) = one_database(config) {
        let connected = MongoBackend::connect(place.config()).await;
        return Ok(connected.map_err(|error| place.refusal(&error))?.into());
    }
    if Part::ALL.iter().all(|part| config.in_postgresql(*part)) {
        return postgres::connect(config).await;
    }
    let memory = memory(config);
    let file = match config.repository.engine {
        Engine::Sqlite => sqlite::open(config).await?.into(),
        Engine::Memory | Engine::MongoDb | Engine::PostgreSql => Backend::none(),
    };
    let mut stores = Backend::none();
    for part in Part::ALL {
        stores = match Home::of(config, part) {
            Home::File => stores.with(part, &file),
            Home::Memory => stores.with(part, &memory),
            Home::PostgreSql => stores.with(part, &postgres::part(config, part).await?),
            Home::MongoDb(place) => {
                let connected = on_mongodb(place.config(), part).await;
                stores.with(part, &connected.map_err(|error| place.refusal(&error))?)
            }
            Home::Sqs => {
                stores.queue = Some(Arc::new(on_sqs(&config.queue.sqs).await?));
                stores
            }
            Home::Etcd => {
                stores.lease = Some(etcd::lease(&config.lease.etcd).await?);
                stores
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
        kept = match Home::of(config, *part) {
            Home::File => kept.upkeep(sqlite::upkeep(config, *part)),
            Home::Memory => kept.with(*part, &memory),
            Home::PostgreSql => kept.upkeep(postgres::upkeep(config, *part).await?),
            Home::MongoDb(place) => {
                let upkeep = mongo_upkeep(place.config(), *part).await;
                kept.upkeep(upkeep.map_err(|error| place.refusal(&error))?)
            }
            Home::Sqs => {
                kept.upkeep.extend(sqs_upkeep(config, purpose).await?);
                kept
            }
            Home::Etcd => kept.upkeep(etcd::upkeep(&config.lease.etcd).await?),
        };
    }
    if purpose == Purpose::Cleanup && parts.contains(&Part::Queue) {
        kept.upkeep.extend(left_over_queues(config).await?);
    }
    Ok(kept.caretaker())
}

/// What keeps the repository in order.
pub(crate) async fn repository_upkeep(config: &Config) -> Result<Arc<dyn Upkeep>, Failure> {
    match Home::of(config, Part::Repository) {
        Home::File => Ok(sqlite::upkeep(config, Part::Repository)),
        Home::PostgreSql => postgres::upkeep(config, Part::Repository).await,
        Home::MongoDb(place) => {
            let upkeep = mongo_upkeep(place.config(), Part::Repository).await;
            upkeep.map_err(|error| place.refusal(&error))
        }
        Home::Memory | Home::Sqs | Home::Etcd => {
            let mut upkeep = memory(config).upkeep.into_iter();
            let upkeep = upkeep.find(|upkeep| upkeep.part() == Part::Repository);
            upkeep.ok_or_else(|| Failure::new("memory has no upkeep"))
        }
    }
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
    let repository = match stored_repository(config).await? {
        None if purpose == Purpose::Cleanup => None,
        None => memory(config).repository,
        stored => stored,
    };
    let kept = |repository| QueueUpkeep::new("sqs", queue, repository);
    let reserved = config.settings.pinned_slots;
    let placed = |upkeep: QueueUpkeep| {
        upkeep.placed(config.settings.placement, table.slots).reserving(reserved)
    };
    Ok(repository.map(|repository| Arc::new(placed(kept(repository))) as _))
}

/// Finds queues of lanes that are nobody's. Only where the repository is shared as well: beside
/// one in memory, queues belong to subscriptions that this process cannot see. Nothing is left over
/// before both are set up.
async fn left_over_queues(config: &Config) -> Result<Option<Arc<dyn Upkeep>>, Failure> {
    let (name, queue): (_, Arc<dyn Queue>) = match Home::of(config, Part::Queue) {
        Home::File => match sqlite::open_if_there(config).await? {
            Some(file) => ("sqlite", file.queue()),
            None => return Ok(None),
        },
        Home::MongoDb(place) => {
            match place.if_set_up(MongoQueue::connect(place.config()).await)? {
                Some(queue) => ("mongodb", Arc::new(queue)),
                None => return Ok(None),
            }
        }
        Home::PostgreSql => match postgres::queue_if_there(config).await? {
            Some(queue) => ("postgresql", queue),
            None => return Ok(None),
        },
        Home::Memory | Home::Sqs | Home::Etcd => return Ok(None),
    };
    let repository = stored_repository(config).await?;
    Ok(repository.map(|repository| Arc::new(QueueUpkeep::new(name, queue, repository)) as _))
}

/// The repository, if it is one that outlives the process and is set up.
async fn stored_repository(config: &Config) -> Result<Option<Arc<dyn Repository>>, Failure> {
    Ok(match Home::of(config, Part::Repository) {
        Home::File => sqlite::open_if_there(config).await?.map(|file| file.repository() as _),
        Home::MongoDb(place) => {
            let connected = MongoRepository::connect(place.config()).await;
            place.if_set_up(connected)?.map(|repository| Arc::new(repository) as _)
        }
        Home::PostgreSql => postgres::repository_if_there(config).await?.map(|it| it as _),
        Home::Memory | Home::Sqs | Home::Etcd => None,
    })
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

async fn on_sqs(table: &SqsConfig) -> Result<SqsQueue, Failure> {
    SqsQueue::connect(table.clone()).await.map_err(|error| match error.field() {
        Some(field) if error.kind() == ErrorKind::Invalid => {
            Failure::setting("queue.sqs", field, error.detail())
        }
        _ => Failure::new(format!("cannot use SQS as [queue.sqs] says: {error}")),
    })
}

/// What keeps a part.
enum Home<'a> {
    /// The repository's own file.
    File,
    Memory,
    MongoDb(Place<'a>),
    PostgreSql,
    Sqs,
    Etcd,
}

impl<'a> Home<'a> {
    fn of(config: &'a Config, part: Part) -> Self {
        if let Some(place) = Place::of(config, part) {
            return Self::MongoDb(place);
        }
        if config.in_postgresql(part) {
            return Self::PostgreSql;
        }
        let in_file = match part {
            Part::Queue if config.queue.engine == QueueEngine::Sqs => return Self::Sqs,
            Part::Lease if config.lease.engine == LeaseEngine::Etcd => return Self::Etcd,
            Part::Queue => config.queue.engine == QueueEngine::Sqlite,
            Part::Lease => config.lease.engine == LeaseEngine::Sqlite,
            _ => config.repository.engine == Engine::Sqlite,
        };
        if in_file { Self::File } else { Self::Memory }
    }
}

/// A table about MongoDB, with its name.
struct Place<'a> {
    name: &'static str,
    table: &'a MongoConfig,
}

impl<'a> Place<'a> {
    fn of(config: &'a Config, part: Part) -> Option<Self> {
        config.mongodb_table(part).map(|(name, table)| Self { name, table })
    }

    fn config(&self) -> MongoConfig {
        self.table.clone()
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
            (ErrorKind::Invalid, Some(field)) => Failure::setting(name, field, error.detail()),
            (ErrorKind::Unavailable | ErrorKind::Timeout, _) => Failure::new(format!(
                "cannot reach MongoDB (is it running? {name}.uri says where): {error}"
            )),
            _ => Failure::new(format!("cannot use MongoDB as [{name}] says: {error}")),
        }
    }
}

/// All parts in this process's memory; those that are elsewhere stay empty, and cost nothing.
fn memory(config: &Config) -> Backend {
    let most = usize::try_from(config.http.server.body_limit).unwrap_or(usize::MAX);
    let limits = config.repository.memory.clone().max_content(most);
    MemoryBackend::with_config(limits, Arc::new(SystemClock::new())).into()
}
