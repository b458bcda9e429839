//! `[cluster]`: how this process shares the work with others on the same stores, and what of the rest of
//! the configuration that needs.

use serde::{Deserialize, Serialize};

use super::check::number;
use super::{Config, ConfigError, Engine, LeaseEngine, QueueEngine};

/// The longest name of a node.
const LONGEST_NAME: usize = 255;

/// `[cluster]`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Cluster {
    /// Always: every server is a node of the cluster of its stores. Files of before may say so.
    pub enable: bool,
    /// Whether no other process ever works on these stores.
    pub exclusive: bool,
    /// What the node is called; empty for the machine's name and the port it listens on.
    pub name: String,
    /// What it may be used for.
    pub roles: Vec<Role>,
    /// Its part of the slots, in relation to the others' weights.
    pub weight: u32,
    /// Whether it gives slots away by itself while it has too much to do.
    pub shed_load: bool,
    /// Slots beside those that lanes are hashed onto, each for one subscription at a time.
    pub pinned_slots: u32,
}

impl Default for Cluster {
    fn default() -> Self {
        Self {
            enable: true,
            exclusive: false,
            name: String::new(),
            roles: vec![Role::Lead, Role::Work, Role::Ingest],
            weight: 100,
            shed_load: true,
            pinned_slots: 0,
        }
    }
}

/// What a node of a cluster may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// To decide who works what, if it is elected.
    Lead,
    /// To work slots.
    Work,
    /// To take documents.
    Ingest,
}

impl Config {
    /// Whether changes are spread and delivered here.
    pub fn works(&self) -> bool {
        self.worker.enable && self.cluster.roles.contains(&Role::Work)
    }
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let Config { cluster, repository, queue, lease, worker, .. } = config;
    let refuse = |key: &str, reason: &str| Err(ConfigError::new(format!("cluster.{key}"), reason));
    if cluster.name.len() > LONGEST_NAME || cluster.name.contains(char::is_control) {
        return refuse("name", "must be at most 255 bytes without control characters");
    }
    if cluster.roles.is_empty() {
        return refuse("roles", "must have at least one of \"lead\", \"work\", \"ingest\"");
    }
    number("cluster.weight", cluster.weight, 0, 1_000_000)?;
    number("cluster.pinned-slots", cluster.pinned_slots, 0, 1_024)?;
    if !cluster.enable {
        return refuse("enable", "is always true: servers on the same stores share the work");
    }
    // Each of these would run, and not deliver some of what it was given, or deliver it twice.
    let memory = (repository.engine == Engine::Memory, lease.engine == LeaseEngine::Memory);
    let shared = |part: &str| {
        let reason = format!(
            "is \"memory\" and the repository is not: other servers on it could not agree with this \
             one. Leave {part}.engine out, or say cluster.exclusive = true if there is never another"
        );
        Err(ConfigError::new(format!("{part}.engine"), reason))
    };
    match memory {
        (true, false) => {
            return Err(ConfigError::new(
                "lease.engine",
                "needs a repository that is not \"memory\": nodes share what all of them see",
            ));
        }
        (false, true) if !cluster.exclusive => return shared("lease"),
        (false, _) if !cluster.exclusive && queue.engine == QueueEngine::Memory => {
            return shared("queue");
        }
        _ => {}
    }
    if !worker.enable && cluster.roles == [Role::Work] {
        return refuse("roles", "leave nothing to do, as worker.enable is false");
    }
    Ok(())
}
