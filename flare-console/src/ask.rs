//! Takes a request; gives what a page needs of it: who asks, and the fields of its query and form. The form is
//! read up to a limit, which is what any form of ours may hold.

use askama::Template;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use flare_core::Flare;
use flare_http::auth::Scope;

use crate::console::Shared;
use crate::fields::Fields;
use crate::frame::Frame;
use crate::refusal::{Answer, Refusal};
use crate::show::{Now, done};

/// What a page knows of the request for it.
pub(crate) struct Ask {
    pub(crate) shared: Shared,
    /// The handle, on behalf of who asks: what is done is told in the log as theirs.
    flare: Flare,
    pub(crate) frame: Frame,
    pub(crate) query: Fields,
    pub(crate) form: Fields,
    pub(crate) headers: HeaderMap,
}

impl FromRequest<Shared> for Ask {
    type Rejection = Refusal;

    async fn from_request(request: Request, shared: &Shared) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let query = Fields::read(parts.uri.query().unwrap_or_default().as_bytes());
        let frame = parts.extensions.remove::<Frame>();
        let mut frame = frame.unwrap_or_else(|| {
            Frame::new(parts.uri.path(), parts.uri.query(), &parts.headers, &shared.version)
        });
        frame.done = query.get("done").and_then(done);
        let headers = parts.headers.clone();
        let form = match parts.method {
            Method::POST => form(Request::from_parts(parts, body), shared).await?,
            _ => Fields::default(),
        };
        let caller = frame.viewer.as_ref().and_then(|viewer| viewer.caller.as_ref());
        let flare = caller
            .map_or_else(|| shared.flare.clone(), |caller| shared.flare.acting_as(caller.name()));
        Ok(Self { shared: Shared::clone(shared), flare, frame, query, form, headers })
    }
}

async fn form(request: Request, shared: &Shared) -> Result<Fields, Refusal> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_form = kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
    let body = Bytes::from_request(request, shared).await;
    let body = body.map_err(|refused| Refusal::new(refused.status(), refused.body_text()))?;
    if !is_form && !body.is_empty() {
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Only forms are taken here."));
    }
    Ok(Fields::read(&body))
}

impl Ask {
    pub(crate) fn flare(&self) -> &Flare {
        &self.flare
    }

    /// The time that everything on the page is told from: the stores' own.
    pub(crate) fn now(&self) -> Now {
        Now(self.flare().node().now)
    }

    /// Refuses those who may not do this.
    pub(crate) fn insist(&self, needed: Scope) -> Result<(), Refusal> {
        match &self.frame.viewer {
            Some(viewer) if viewer.may(needed) => Ok(()),
            _ => {
                let scope = self.frame.scope();
                let detail = format!(
                    "Your token allows {scope}, and this needs a token that allows {needed}."
                );
                Err(Refusal::new(StatusCode::FORBIDDEN, detail))
            }
        }
    }

    /// Where REST is, for commands that are shown.
    pub(crate) fn api(&self) -> String {
        let host = || {
            let host = self.headers.get("host").and_then(|host| host.to_str().ok());
            format!("http://{}", host.unwrap_or("localhost:8080"))
        };
        self.shared.api.clone().unwrap_or_else(host)
    }
}

/// A page, written out.
pub(crate) fn page(template: &impl Template) -> Answer {
    page_with(StatusCode::OK, template)
}

/// A page with another status.
pub(crate) fn page_with(status: StatusCode, template: &impl Template) -> Answer {
    Ok((status, Html(template.render()?)).into_response())
}

/// Has the browser read another page after a form was sent; `to` is relative to the page that was asked for.
pub(crate) fn see(to: impl Into<String>) -> Response {
    match axum::http::HeaderValue::try_from(to.into()) {
        Ok(to) => (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The part of a path that names one thing.
pub(crate) struct Named(pub(crate) String);

impl FromRequestParts<Shared> for Named {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        shared: &Shared,
    ) -> Result<Self, Refusal> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, shared).await;
        let path =
            path.map_err(|refused| Refusal::new(refused.status(), "There is no such page."))?;
        Ok(Self(path.0))
    }
}

impl Named {
    /// The id it is; what is not an id is the id of nothing.
    pub(crate) fn id<T: std::str::FromStr>(&self, what: &str) -> Result<T, Refusal> {
        self.0.parse().map_err(|_| Refusal::not_found(what, &self.0))
    }
}

/// The part of a path that names one thing, and what is to be done with it.
pub(crate) struct NamedStep {
    name: String,
    pub(crate) step: String,
}

impl FromRequestParts<Shared> for NamedStep {
    type Rejection = Refusal;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        shared: &Shared,
    ) -> Result<Self, Refusal> {
        let path = axum::extract::Path::<(String, String)>::from_request_parts(parts, shared).await;
        let path =
            path.map_err(|refused| Refusal::new(refused.status(), "There is no such page."))?;
        let (name, step) = path.0;
        Ok(Self { name, step })
    }
}

impl NamedStep {
    /// The id of the thing.
    pub(crate) fn id<T: std::str::FromStr>(&self, what: &str) -> Result<T, Refusal> {
        self.name.parse().map_err(|_| Refusal::not_found(what, &self.name))
    }
}
