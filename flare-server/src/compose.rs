//! Takes the configuration and the stores it names; gives Flare on them, and the router in front
//! of it.

use std::time::Duration;

use axum::Router;
use flare_core::cluster::{ClusterSettings, Roles};
use flare_core::http::{Guard, HttpConfig};
use flare_core::pipeline::Settings;
use flare_core::{Backend, Error, Flare, Runtime};
use flare_http::Api;
use flare_http::auth::Tokens;
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::ExposeSecret;

use crate::config::{Config, Delivery, LeaseEngine, QueueEngine, Role, Scope, Token};
use crate::failure::Failure;
use crate::version;

/// Flare and the work behind it.
pub(crate) fn flare(config: &Config, stores: Backend) -> Result<(Flare, Runtime), Failure> {
    let http = guard(&config.delivery).map(|guard| HttpConfig::new().guard(guard));
    let built = http.and_then(|http| {
        let builder = Flare::builder(stores).settings(settings(config)).http(http);
        let builder = builder.cluster(cluster(config));
        if config.cluster.exclusive { builder.exclusive().build() } else { builder.build() }
    });
    built.map_err(|error| Failure::because("cannot put Flare together", error))
}

fn settings(config: &Config) -> Settings {
    let mut settings = Settings::default();
    settings.timeout = config.delivery.timeout;
    settings.concurrency = config.delivery.concurrency;
    settings.max_ttl = config.delivery.max_ttl;
    settings.in_flight_limit = config.delivery.in_flight_limit as usize;
    settings.content_limit = usize::try_from(config.delivery.content_limit).unwrap_or(usize::MAX);
    settings.hold_limit = config.delivery.hold_limit;
    settings.suspend_after = config.delivery.suspend_after;
    settings.tombstone_retention = config.repository.tombstone_retention;
    settings.dead_letter_retention = config.repository.dead_letter_retention;
    settings.drain_limit = config.worker.drain_timeout;
    settings.pinned_slots = config.cluster.pinned_slots;
    if config.queue.engine == QueueEngine::Sqs {
        settings.slots = Some(config.queue.sqs.slots);
        settings.placement = config.queue.sqs.placement;
    }
    settings
}

/// How long a node that died keeps its work from others.
fn lease_ttl(config: &Config) -> Duration {
    match config.lease.engine {
        LeaseEngine::Etcd => config.lease.etcd.ttl,
        LeaseEngine::Sqlite | LeaseEngine::Memory | LeaseEngine::MongoDb => {
            ClusterSettings::default().ttl
        }
    }
}

/// This process's part in the cluster.
fn cluster(config: &Config) -> ClusterSettings {
    let has = |role| config.cluster.roles.contains(&role);
    let mut settings = ClusterSettings::default();
    settings.name = match config.cluster.name.as_str() {
        "" => format!("{}:{}", host(), config.http.server.addr.port()),
        name => name.to_owned(),
    };
    settings.roles = Roles::ALL;
    settings.roles.leads = has(Role::Lead);
    settings.roles.works = config.works();
    settings.roles.ingests = has(Role::Ingest);
    settings.weight = config.cluster.weight;
    settings.shed_load = config.cluster.shed_load;
    settings.ttl = lease_ttl(config);
    // What fits into a lease follows from how long that is.
    settings.call_limit = settings.call_limit.min(settings.ttl / 4);
    settings.hand_over_limit = settings.hand_over_limit.max(settings.ttl);
    settings.sweep_every = settings.sweep_every.max(settings.ttl);
    settings
}

/// The name of this machine.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn guard(delivery: &Delivery) -> Result<Guard, Error> {
    let networks = &delivery.guard;
    let refused = |invalid| Error::invalid("guard", invalid);
    let closed = Guard::default().named("delivery.guard.allow", "delivery.guard.deny");
    let allowed = networks.allow.iter().try_fold(closed, |guard, text| guard.allow(text));
    networks
        .deny
        .iter()
        .try_fold(allowed.map_err(refused)?, |guard, text| guard.deny(text).map_err(refused))
}

/// The REST interface, as the configuration wants it.
pub(crate) fn router(
    config: &Config,
    flare: Flare,
    metrics: PrometheusHandle,
) -> Result<Router, Failure> {
    let server = &config.http.server;
    let api = Api::new(flare)
        .body_limit(usize::try_from(server.body_limit).unwrap_or(usize::MAX))
        .bodies_limit(usize::try_from(server.bodies_limit).unwrap_or(usize::MAX))
        .timeout(server.timeout)
        .default_limit(server.default_limit)
        .version(version::VERSION)
        .commit(version::COMMIT)
        .metrics(move || metrics.render());
    let tokens = &config.http.auth.tokens;
    let api = if tokens.is_empty() { api } else { api.auth(holders(tokens)?) };
    Ok(api.router())
}

fn holders(tokens: &[Token]) -> Result<Tokens, Failure> {
    tokens.iter().try_fold(Tokens::new(), |holders, token| {
        let scope = match token.scope {
            Scope::Read => flare_http::auth::Scope::Read,
            Scope::Write => flare_http::auth::Scope::Write,
            Scope::Admin => flare_http::auth::Scope::Admin,
        };
        let added = holders.with(token.token.expose_secret(), scope);
        added.map_err(|invalid| Failure::new(format!("http.auth.tokens: {}", invalid.reason())))
    })
}
