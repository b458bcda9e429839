//! Takes a name; gives connections to the stores that all processes of that name share.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_etcd::{EtcdConfig, EtcdLease};
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Settings;
use flare_core::cluster::ClusterSettings;
use flare_core::http::Guard;
use flare_core::{Flare, FlareBuilder};

/// Where everything is kept.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    namespace: String,
}

impl Stores {
    pub(crate) fn named(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned() }
    }

    /// The database, and what keys begin with.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A Flare on connections of its own, part of the cluster under this name.
    pub(crate) async fn flare(&self, name: &str) -> Result<FlareBuilder, Box<dyn Error>> {
        let lease = EtcdLease::connect(self.etcd()).await?;
        let mongo = MongoBackend::connect(self.mongo()).await?;
        Ok(Flare::builder(mongo)
            .lease(Arc::new(lease))
            .settings(settings())
            .cluster(membership(name))
            // The clients of this example are on this machine, which is refused by default.
            .guard(Guard::default().allow("127.0.0.0/8")?))
    }

    /// Collections and indexes are created where there are none. In production `flare setup` does that,
    /// after somebody has seen what it would do.
    fn mongo(&self) -> MongoConfig {
        let uri = std::env::var("FLARE_MONGODB_URI");
        let uri = uri.unwrap_or_else(|_| "mongodb://127.0.0.1:27017".to_owned());
        MongoConfig::new(uri).database(&self.namespace).create_missing()
    }

    fn etcd(&self) -> EtcdConfig {
        let urls = std::env::var("FLARE_ETCD_ENDPOINTS");
        let urls = urls.unwrap_or_else(|_| "http://127.0.0.1:2379".to_owned());
        EtcdConfig::new(urls.split(',')).prefix(format!("{}/", self.namespace))
    }
}

/// All nodes have to agree on the number of slots. Few of them are easier to follow with the eye.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.slots = Some(48);
    settings.drain_limit = Duration::from_secs(10);
    settings
}

/// Shorter times than a service needs, as somebody is watching: the defaults suit most.
fn membership(name: &str) -> ClusterSettings {
    let mut membership = ClusterSettings::default();
    membership.name = name.to_owned();
    membership.ttl = Duration::from_secs(4);
    membership.call_limit = Duration::from_secs(1);
    membership.settle_after = Duration::from_secs(1);
    membership.move_percent = 10;
    membership.move_every = Duration::from_millis(500);
    membership.hand_over_limit = Duration::from_secs(5);
    membership
}
