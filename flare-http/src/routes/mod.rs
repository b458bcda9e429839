//! Takes requests that are checked in form; gives what the handle answers. A file per kind of thing;
//! no rules of its own.

mod answer;
pub(crate) mod backfill;
pub(crate) mod cluster;
pub(crate) mod deliveries;
pub(crate) mod documents;
pub(crate) mod filters;
pub(crate) mod health;
pub(crate) mod node;
pub(crate) mod operations;
pub(crate) mod passive;
pub(crate) mod resources;
pub(crate) mod subscriptions;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use crate::auth::{RequireToken, Tokens};
use crate::layer::edge;
use crate::openapi;
use crate::options::State;
use crate::problem::Problem;

/// Every route, behind its layers.
pub(crate) fn router<S>(state: State, tokens: Option<Tokens>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let subscription = "/resources/{rid}/subscriptions/{id}";
    let below = |name: &str| format!("{subscription}/{name}");
    let mut router = Router::new()
        .route("/", get(node::about))
        .route("/status", get(node::status))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/metrics", get(node::metrics))
        .route("/openapi.json", get(openapi::serve))
        .route("/cluster/health", get(cluster::health))
        .route("/cluster/nodes", get(cluster::nodes))
        .route("/cluster/nodes/{id}/drain", post(cluster::drain))
        .route("/cluster/slots", get(cluster::slots))
        .route("/resources", get(resources::list).post(resources::create))
        .route("/resources/{rid}", get(resources::read).delete(resources::delete))
        .route(
            "/resources/{rid}/subscriptions",
            get(subscriptions::list).post(subscriptions::create),
        )
        .route(
            subscription,
            get(subscriptions::read).put(subscriptions::replace).delete(subscriptions::delete),
        )
        .route(&below("status"), get(operations::status))
        .route(&below("pause"), post(operations::pause))
        .route(&below("resume"), post(operations::resume))
        .route(&below("retry"), post(operations::retry))
        .route(&below("replay"), post(operations::replay))
        .route(&below("dead-letters"), get(operations::dead_letters))
        .route(&below("backfill"), post(backfill::backfill).delete(backfill::cancel_backfill))
        .route(&below("resync"), post(backfill::resync).delete(backfill::cancel_resync))
        .route(&below("demand"), post(passive::demand))
        .route(&below("pull"), post(passive::pull))
        .route(&below("settle"), post(passive::settle))
        .route("/filters/test", post(filters::test))
        .route("/deliveries/{*url}", get(deliveries::list))
        .route(
            "/documents/{*url}",
            get(documents::read).put(documents::put).delete(documents::delete),
        )
        .fallback(async || Problem::not_found("there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("Allow says what there is")
        });
    if let Some(tokens) = tokens {
        router = router.layer(RequireToken::new(tokens));
    }
    router.layer(from_fn_with_state(state.clone(), edge)).with_state(state)
}
