//! `[cluster]`: how this process shares the work with others on the same stores, and what of the rest of
//! the configuration that needs.

use serde::{Deserialize, Serialize};

use super::check::number;
use super::{Config, ConfigError, Engine, LeaseEngine, QueueEngine};

/// The longest name of a node.
const LONGEST_NAME: usize = 255;

/// `[cluster]`, beside what [`ClusterSettings`](flare_core::cluster::ClusterSettings) say of the node.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cluster {
    /// Always: every server is a node of the cluster of its stores. Files of before may say so.
    pub enable: bool,
    /// Whether no other process ever works on these stores.
    pub exclusive: bool,
}

impl Default for Cluster {
    fn default() -> Self {
        Self { enable: true, exclusive: false }
    }
}

impl Config {
    /// Whether changes are spread and delivered here.
    pub fn works(&self) -> bool {
        self.worker.enable && self.node.roles.works
    }
}

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    let Config { cluster, node, settings, repository, queue, lease, worker, .. } = config;
    let refuse = |key: &str, reason: &str| Err(ConfigError::new(format!("cluster.{key}"), reason));
    if node.name.len() > LONGEST_NAME || node.name.contains(char::is_control) {
        return refuse("name", "must be at most 255 bytes without control characters");
    }
    number("cluster.weight", node.weight, 0, 1_000_000)?;
    number("cluster.pinned-slots", settings.pinned_slots, 0, 1_024)?;
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
    if !worker.enable && node.roles.works && !(node.roles.leads || node.roles.ingests) {
        return refuse("roles", "leave nothing to do, as worker.enable is false");
    }
    Ok(())
}
