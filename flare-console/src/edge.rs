//! Takes a request as it comes in; gives its answer the headers every answer has, whatever happens inside. Decides
//! who is let in and what is refused, makes a page of every refusal, and is the one place that logs.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use askama::Template;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use flare_http::auth::Caller;
use flare_http::{Problem, observe};
use futures::FutureExt;
use futures::future::{Either, select};
use tracing::{Instrument, Span, error, field, info_span};

use crate::access::{NoViewer, UNKNOWN_TOKEN};
use crate::ask::see;
use crate::console::Shared;
use crate::fields::query;
use crate::frame::Frame;
use crate::origin;
use crate::refusal::Refusal;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Nothing but what this console serves itself: no script or style that stands in a page, no other site.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Runs a request inside its span, within its time, and answers even if it panics.
pub(crate) async fn edge(
    State(shared): State<Shared>,
    mut request: Request,
    next: Next,
) -> Response {
    let id = format!("{:032x}", fastrand::u128(..));
    let path = request.uri().path().to_owned();
    let span = info_span!("console", %id, method = %request.method(), path, caller = field::Empty, status = field::Empty);
    let recorded = span.clone();
    let mut frame = Frame::new(&path, request.uri().query(), request.headers(), &shared.version);
    let work = async {
        let admitted = admit(&shared, &mut frame, &request);
        request.extensions_mut().insert(frame.clone());
        let mut response = match admitted {
            Ok(()) => within(&shared, next.run(request)).await,
            Err(refused) => *refused,
        };
        if let Some(page) = error_page(&response, &frame, &id) {
            response = page;
        }
        recorded.record("status", response.status().as_u16());
        guard(response.headers_mut(), &id);
        response
    };
    work.instrument(span).await
}

/// Lets a request in, or gives what is answered instead.
fn admit(shared: &Shared, frame: &mut Frame, request: &Request) -> Result<(), Box<Response>> {
    let (method, headers) = (request.method(), request.headers());
    let refused = |problem: Problem| Box::new(Refusal(problem).into_response());
    origin::check(method, headers).map_err(refused)?;
    let everybody_s =
        |page: &&str| *page == frame.path || page.ends_with('/') && frame.path.starts_with(*page);
    let open = ["sign-in", "sign-out", "theme", "assets/"].iter().any(everybody_s);
    match shared.access.viewer(headers, request.extensions().get::<Caller>()) {
        Ok(viewer) => {
            if let Some(caller) = &viewer.caller {
                Span::current().record(observe::CALLER, caller.name());
            }
            frame.viewer = Some(viewer);
        }
        Err(_) if open => {}
        Err(why) => {
            // Where to go on after that; what was sent by a form would have to be sent again.
            let to = if *method == Method::GET { frame.full_path.as_str() } else { "" };
            let why = match why {
                // Who has no token yet is shown where to sign in: that is no way in that was refused.
                NoViewer::SignedOut => "",
                NoViewer::Unknown => {
                    shared.flare.note_refused_sign_in(UNKNOWN_TOKEN);
                    "expired"
                }
            };
            let sign_in = query([("to", to), ("why", why)]);
            return Err(Box::new(see(format!("{}sign-in{sign_in}", frame.root))));
        }
    }
    Ok(())
}

/// The answer, unless it takes too long or panics.
async fn within(shared: &Shared, work: impl Future<Output = Response>) -> Response {
    let work = Box::pin(AssertUnwindSafe(work).catch_unwind());
    match select(work, shared.clock.sleep(shared.timeout)).await {
        Either::Left((Ok(response), _)) => response,
        Either::Left((Err(panic), _)) => {
            error!(panic = words(&*panic), "a request panicked");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Either::Right(_) => {
            let limit = shared.timeout;
            let detail =
                format!("There was no answer within {limit:?}. Whether it took effect is unknown.");
            error!("a request took too long");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}

/// A page that says what went wrong.
#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    frame: &'a Frame,
    title: &'a str,
    status: u16,
    detail: &'a str,
    field: Option<&'a str>,
    /// What the log has more under.
    id: Option<&'a str>,
}

/// A page for an answer that is none yet.
fn error_page(response: &Response, frame: &Frame, id: &str) -> Option<Response> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return None;
    }
    let refusal = response.extensions().get::<Refusal>();
    let is_page = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|it| it.as_bytes().starts_with(b"text/html"));
    if refusal.is_none() && is_page {
        return None;
    }
    let problem = refusal.map(|Refusal(problem)| problem);
    if let Some(fault) = problem.and_then(Problem::error) {
        error!(error = ?fault, "a request failed");
    }
    let detail = match (problem.map_or("", Problem::reason), status) {
        ("", StatusCode::NOT_FOUND) => "There is no such page.",
        ("", StatusCode::METHOD_NOT_ALLOWED) => "That cannot be done here.",
        (reason, _) => reason,
    };
    let title = match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::CONFLICT => "Not possible now",
        StatusCode::SERVICE_UNAVAILABLE => "Not available now",
        _ => status.canonical_reason().unwrap_or("Error"),
    };
    let page = ErrorPage {
        frame,
        title,
        status: status.as_u16(),
        detail,
        field: problem.and_then(Problem::field_name),
        id: status.is_server_error().then_some(id),
    };
    // If not even that can be written the bare status has to do.
    let mut page = match page.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(_) => status.into_response(),
    };
    for name in [RETRY_AFTER, axum::http::header::ALLOW] {
        if let Some(value) = response.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
    Some(page)
}

/// The headers that every answer has.
fn guard(headers: &mut HeaderMap, id: &str) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Not less: a form of ours is known by the origin it stands on.
        (REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What a page shows is for the one who asked, and for now.
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
}
