//! Takes the configuration and the stores it names; gives Flare on them, and the router in front
//! of it.

use axum::Router;
use flare_core::cluster::ClusterSettings;
use flare_core::http::{Guard, HttpConfig};
use flare_core::{Backend, Error, Flare, Runtime};
use flare_http::Api;
use flare_http::auth::Tokens;
use metrics_exporter_prometheus::PrometheusHandle;
use secrecy::ExposeSecret;

use crate::config::{Config, Delivery, Scope, Token};
use crate::failure::Failure;
use crate::otlp::Telemetry;
use crate::{brokers, version};

/// Flare and the work behind it.
pub(crate) fn flare(
    config: &Config,
    stores: Backend,
    telemetry: Option<&Telemetry>,
) -> Result<(Flare, Runtime), Failure> {
    let failed = |error| Failure::because("cannot put Flare together", error);
    let guard = guard(&config.delivery).map_err(failed)?;
    let connectors = brokers::connectors(config, &guard)?;
    let http = HttpConfig::new().guard(guard);
    let builder = Flare::builder(stores).settings(config.settings.clone()).http(http);
    let builder = builder.cluster(node(config));
    let builder = connectors.into_iter().fold(builder, |builder, it| builder.source(it));
    let builder = if config.cluster.exclusive { builder.exclusive() } else { builder };
    let builder = match telemetry {
        Some(telemetry) => telemetry.within(builder),
        None => builder,
    };
    builder.build().map_err(failed)
}

/// This process's part in the cluster.
fn node(config: &Config) -> ClusterSettings {
    let mut node = config.node.clone();
    if node.name.is_empty() {
        node.name = format!("{}:{}", host(), config.http.server.addr.port());
    }
    node.roles.works = config.works();
    // What fits into a lease follows from how long that is.
    node.call_limit = node.call_limit.min(node.ttl / 4);
    node.hand_over_limit = node.hand_over_limit.max(node.ttl);
    node.sweep_every = node.sweep_every.max(node.ttl);
    node
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
    let api = Api::new(flare.clone())
        .body_limit(usize::try_from(server.body_limit).unwrap_or(usize::MAX))
        .bodies_limit(usize::try_from(server.bodies_limit).unwrap_or(usize::MAX))
        .timeout(server.timeout)
        .default_limit(server.default_limit)
        .version(version::VERSION)
        .commit(version::COMMIT)
        .metrics(move || metrics.render());
    let tokens = &config.http.auth.tokens;
    let holders = (!tokens.is_empty()).then(|| holders(tokens)).transpose()?;
    let pages = pages(config, flare, holders.as_ref());
    let api = match holders {
        None => api,
        Some(holders) => api.auth(holders),
    };
    let router: Router = api.router();
    Ok(match pages {
        None => router,
        // With and without a slash at its end.
        Some(pages) => router.nest_service("/console", pages),
    })
}

/// The pages, as the configuration wants them.
#[cfg(feature = "console")]
fn pages(config: &Config, flare: Flare, holders: Option<&Tokens>) -> Option<Router> {
    let server = &config.http.server;
    let console =
        flare_console::Console::new(flare).timeout(server.timeout).version(version::VERSION);
    let console = match holders {
        None => console,
        Some(holders) => console.auth(holders.clone()),
    };
    config.console.enable.then(|| console.router())
}

/// None are built in.
#[cfg(not(feature = "console"))]
fn pages(_: &Config, _: Flare, _: Option<&Tokens>) -> Option<Router> {
    None
}

fn holders(tokens: &[Token]) -> Result<Tokens, Failure> {
    tokens.iter().try_fold(Tokens::new(), |holders, token| {
        let scope = match token.scope {
            Scope::Read => flare_http::auth::Scope::Read,
            Scope::Write => flare_http::auth::Scope::Write,
            Scope::Admin => flare_http::auth::Scope::Admin,
        };
        let secret = token.token.expose_secret();
        let added = match token.name.as_str() {
            "" => holders.with(secret, scope),
            name => holders.with_named(name, secret, scope),
        };
        added.map_err(|invalid| Failure::new(format!("http.auth.tokens: {}", invalid.reason())))
    })
}
