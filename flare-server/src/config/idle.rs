//! Takes a configuration; gives the first setting in it that could have no effect, for its engine is
//! not in use or its table stands for another one.

use flare_core::port::Part;
use toml::{Table, Value};

use super::mongo::is_inherited;
use super::{Config, ConfigError, Engine, LeaseEngine, QueueEngine};

/// Refuses settings of engines that are not in use.
pub(super) fn idle(config: &Config) -> Result<(), ConfigError> {
    let Config { repository, queue, lease, .. } = config;
    let waking = [Part::Queue, Part::Lease].map(|part| config.mongodb(part));
    let wakes = waking.into_iter().flatten().any(|table| std::ptr::eq(table, &repository.mongodb));

    let mut idle = Vec::new();
    let is = format!("repository.engine is \"{}\"", repository.engine.as_str());
    if repository.engine != Engine::Sqlite {
        idle.push(("repository.sqlite", is.clone()));
    }
    if repository.engine != Engine::Memory {
        idle.push(("repository.memory", is));
    }
    if repository.engine != Engine::MongoDb && !wakes {
        idle.push(("repository.mongodb", "nothing is kept there by any engine".to_owned()));
    }
    let [repository_there, queue_there, lease_there] =
        Part::ALL.map(|part| config.in_postgresql(part));
    if !(repository_there || queue_there || lease_there) {
        idle.push(("repository.postgresql", "nothing is kept there by any engine".to_owned()));
    } else if !(queue_there || lease_there) {
        let reason = "no queue and no leases are kept there".to_owned();
        idle.push(("repository.postgresql.poll-every", reason));
    }
    if !queue_there {
        idle.push(("repository.postgresql.notify", "no queue is kept there".to_owned()));
    }
    if !wakes {
        let reason = "no queue and no leases are kept there".to_owned();
        idle.push(("repository.mongodb.poll-every", reason));
    }
    for (name, part, table) in [
        ("queue.mongodb", Part::Queue, &queue.mongodb),
        ("lease.mongodb", Part::Lease, &lease.mongodb),
    ] {
        if config.mongodb(part).is_none() {
            idle.push((name, format!("{part}.engine is not \"mongodb\"")));
        } else if is_inherited(table) {
            idle.push((name, format!("without {name}.uri all of repository.mongodb is used")));
        }
    }
    if queue.engine != QueueEngine::Sqs {
        idle.push(("queue.sqs", "queue.engine is not \"sqs\"".to_owned()));
    }
    if config.otlp.endpoint.is_empty() {
        idle.push(("otlp", "otlp.endpoint is empty".to_owned()));
    }
    if lease.engine != LeaseEngine::Etcd {
        idle.push(("lease.etcd", "lease.engine is not \"etcd\"".to_owned()));
    }
    let unreadable =
        |error: toml::ser::Error| ConfigError::whole("configuration", error.to_string());
    let said = Value::Table(Table::try_from(config).map_err(unreadable)?);
    let defaults = Value::Table(Table::try_from(Config::default()).map_err(unreadable)?);
    for (path, reason) in idle {
        if let Some(key) = difference(path, at(&said, path), at(&defaults, path)) {
            return Err(ConfigError::new(key, format!("has no effect: {reason}")));
        }
    }
    Ok(())
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// The first key at or below `path` whose value is not the default.
fn difference(path: &str, said: Option<&Value>, default: Option<&Value>) -> Option<String> {
    match said {
        Some(Value::Table(table)) => table.iter().find_map(|(name, said)| {
            let default = default.and_then(|default| default.get(name));
            difference(&format!("{path}.{name}"), Some(said), default)
        }),
        said => (said != default).then(|| path.to_owned()),
    }
}
