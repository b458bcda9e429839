//! Takes requests that are checked in form; gives what the handle answers. A file per kind of thing;
//! no rules of its own.

mod answer;
pub(crate) mod backfill;
pub(crate) mod cluster;
pub(crate) mod consumers;
pub(crate) mod deliveries;
pub(crate) mod documents;
pub(crate) mod filters;
pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod node;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod passive;
pub(crate) mod pins;
pub(crate) mod producers;
#[cfg(feature = "profile")]
pub(crate) mod profile;
pub(crate) mod pulling;
pub(crate) mod resources;
pub(crate) mod subscriptions;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post, put};

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
        .route("/cluster/slots/{slot}/pin", put(pins::pin_slot).delete(pins::unpin_slot))
        .route("/jobs", get(log::jobs))
        .route("/log", get(log::log))
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
        .route(&below("pin"), put(pins::pin_subscription).delete(pins::unpin_subscription))
        .route(&below("demand"), post(passive::demand))
        .route(&below("pull"), post(passive::pull))
        .route(&below("settle"), post(passive::settle))
        .route("/subscriptions", get(overview::list))
        .route("/filters/test", post(filters::test))
        .route("/consumers", get(consumers::list).post(consumers::create))
        .route("/consumers/test", post(consumers::test))
        .route(
            "/consumers/{id}",
            get(consumers::read).put(consumers::replace).delete(consumers::delete),
        )
        .route("/consumers/{id}/status", get(pulling::status))
        .route("/consumers/{id}/pause", post(pulling::pause))
        .route("/consumers/{id}/resume", post(pulling::resume))
        .route("/consumers/{id}/rejects", get(pulling::rejects))
        .route("/consumers/{id}/rejects/retry", post(pulling::retry))
        .route("/consumers/{cid}/producers", get(producers::list).post(producers::create))
        .route(
            "/consumers/{cid}/producers/{id}",
            get(producers::read).put(producers::replace).delete(producers::delete),
        )
        .route("/deliveries/{*url}", get(deliveries::list))
        .route(
            "/documents/{*url}",
            get(documents::read).put(documents::put).delete(documents::delete),
        )
        .fallback(async || Problem::not_found("there is no such route"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED).detail("Allow says what there is")
        });
    #[cfg(feature = "profile")]
    {
        router = router.route("/debug/profile", get(profile::profile));
    }
    if let Some(tokens) = tokens {
        router = router.layer(RequireToken::new(tokens).telling(state.flare().clone()));
    }
    router.layer(from_fn_with_state(state.clone(), edge)).with_state(state)
}
