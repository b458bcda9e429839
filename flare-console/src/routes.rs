//! Every page by its path, and what it takes to change something there. In the order of the menu.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use flare_http::auth::Scope;

use crate::access::needs;
use crate::ask::see;
use crate::assets;
use crate::console::Shared;
use crate::edge::edge;
use crate::frame::Frame;
use crate::pages::{
    consumer, consumers, dead_letters, documents, jobs, log, nodes, overview, resource, resources,
    sign_in, slots, subscription, subscription_form, subscription_steps, subscriptions, trials,
};
use crate::refusal::Refusal;

/// The largest form: a document that is put by hand.
const FORM_LIMIT: usize = 1 << 20;

/// A page, and what a token has to allow for it.
type Page = (&'static str, Scope, MethodRouter<Shared>);

/// Every page that has something to do with Flare. Where something is changed the token has to allow what REST wants
/// for the same; where it depends on the step, the page asks for more.
fn pages() -> Vec<Page> {
    let reads = || needs(&Method::GET, "/resources");
    let page = |path, scope, methods| (path, scope, methods);
    let posts = |path| needs(&Method::POST, path);
    let puts = |path| needs(&Method::PUT, path);
    let deletes = |path| needs(&Method::DELETE, path);
    vec![
        page("/overview", reads(), get(overview::show)),
        page("/subscriptions", reads(), get(subscriptions::show)),
        page("/subscriptions/{id}", reads(), get(subscription::show)),
        page("/subscriptions/{id}/dead-letters", reads(), get(dead_letters::show)),
        page(
            "/subscriptions/{id}/edit",
            puts("/resources/r/subscriptions/s"),
            get(subscription_form::edit).post(subscription_form::replace),
        ),
        page(
            "/subscriptions/{id}/{step}",
            deletes("/resources/r/subscriptions/s"),
            get(subscription_steps::confirm).post(subscription_steps::take),
        ),
        page("/resources", reads(), get(resources::list)),
        page("/resources/new", posts("/resources"), get(resources::form).post(resources::create)),
        page("/resources/{id}", reads(), get(resource::show)),
        page(
            "/resources/{id}/delete",
            deletes("/resources/r"),
            get(resource::confirm_delete).post(resource::delete),
        ),
        page(
            "/resources/{id}/subscriptions/new",
            posts("/resources/r/subscriptions"),
            get(subscription_form::new).post(subscription_form::create),
        ),
        page("/documents", reads(), get(documents::show)),
        page("/documents/put", puts("/documents/d"), get(documents::form).post(documents::put)),
        page(
            "/documents/delete",
            deletes("/documents/d"),
            get(documents::confirm_delete).post(documents::delete),
        ),
        page("/consumers", reads(), get(consumers::list)),
        page("/consumers/new", posts("/consumers"), get(consumers::new).post(consumers::create)),
        page("/consumers/{id}", reads(), get(consumer::show)),
        page(
            "/consumers/{id}/edit",
            puts("/consumers/c"),
            get(consumers::edit).post(consumers::replace),
        ),
        page(
            "/consumers/{id}/{step}",
            posts("/consumers/c/pause"),
            get(consumer::confirm).post(consumer::take),
        ),
        page("/nodes", reads(), get(nodes::list)),
        page(
            "/nodes/{id}/drain",
            posts("/cluster/nodes/n/drain"),
            get(nodes::confirm_drain).post(nodes::drain),
        ),
        page("/slots", reads(), get(slots::list)),
        page(
            "/slots/{id}/pin",
            puts("/cluster/slots/7/pin"),
            get(slots::confirm_pin).post(slots::pin),
        ),
        page("/jobs", reads(), get(jobs::list)),
        page("/log", reads(), get(log::list)),
        page("/try", reads(), get(trials::show).post(trials::run)),
    ]
}

/// Every route, behind the edge.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(shared: Shared) -> Router<S> {
    let mut router = Router::new()
        .route("/", get(home))
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/theme", post(sign_in::theme))
        .route("/assets/{name}", get(assets::serve));
    for (path, scope, methods) in pages() {
        let allowed = from_fn(move |request, next| allowed(scope, request, next));
        router = router.route(path, methods.layer(allowed));
    }
    router
        .fallback(not_found)
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED)
        .layer(DefaultBodyLimit::max(FORM_LIMIT))
        .layer(from_fn_with_state(Shared::clone(&shared), edge))
        .with_state(shared)
}

/// Refuses a page to those who may not do what it is for.
async fn allowed(needed: Scope, request: Request, next: Next) -> Response {
    let frame = request.extensions().get::<Frame>();
    let viewer = frame.and_then(|frame| frame.viewer.as_ref());
    match viewer {
        Some(viewer) if viewer.may(needed) => next.run(request).await,
        _ => {
            let scope = frame.map_or("", Frame::scope);
            let detail =
                format!("Your token allows {scope}, and this needs a token that allows {needed}.");
            Refusal::new(StatusCode::FORBIDDEN, detail).into_response()
        }
    }
}

/// Where the console begins: links are relative, so it has to be known where that is.
async fn home(State(_): State<Shared>, request: Request) -> Response {
    let whole = request.extensions().get::<axum::extract::OriginalUri>();
    let path = whole.map_or_else(|| request.uri().path(), |whole| whole.0.path());
    // Without a slash at its end the last part of the path is a name beside which browsers look.
    see(match path.rsplit('/').next() {
        Some("") | None => "overview".to_owned(),
        Some(last) => format!("{last}/overview"),
    })
}

/// What is not there; with a slash at its end the beginning may have been meant.
async fn not_found(state: State<Shared>, request: Request) -> Response {
    match request.uri().path() {
        "" | "/" if request.method() == Method::GET => home(state, request).await,
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}
