//! Takes bearer tokens with what each may do; gives a layer that lets only their holders in.
//!
//! Optional: [`Api::auth`](crate::Api::auth) puts it in place, and a host with a scheme of its own
//! leaves it out and wraps the router in its own layer. No token shows in `Debug` or in a log.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use flare_core::model::Invalid;
use futures::future::{Either, Ready, ready};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tower_layer::Layer;
use tower_service::Service;

use crate::problem::Problem;

/// The shortest token that is taken: less can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// What a token allows. Each allows what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Read everything.
    Read,
    /// Put and delete documents; create, change and operate subscriptions.
    Write,
    /// Create and delete resources; operate the cluster.
    Admin,
}

impl Scope {
    /// The scope as configuration and refusals have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// What a request needs, by method and path below the mount point; nothing for health.
    pub fn needed(method: &Method, path: &str) -> Option<Self> {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        match segments.as_slice() {
            ["health", "live" | "ready"] if reads => None,
            _ if reads => Some(Self::Read),
            ["resources"] | ["resources", _] | ["cluster", ..] => Some(Self::Admin),
            _ => Some(Self::Write),
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "admin" => Ok(Self::Admin),
            _ => Err(Invalid::new("", "must be read, write or admin")),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The tokens that are let in.
///
/// ```
/// use flare_http::auth::{Scope, Tokens};
///
/// let tokens = Tokens::new().with("a-token-nobody-guesses", Scope::Read)?;
/// assert_eq!(format!("{tokens:?}"), "Tokens([Read])");
/// assert!(Tokens::new().with("short", Scope::Read).is_err());
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Vec<(SecretString, Scope)>);

impl Tokens {
    /// No tokens: nobody is let in.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same and one more: at least 16 visible ASCII characters.
    pub fn with(mut self, token: impl Into<SecretString>, scope: Scope) -> Result<Self, Invalid> {
        let token = token.into();
        let text = token.expose_secret();
        if text.len() < MIN_TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "must be at least 16 visible ASCII characters";
            return Err(Invalid::new("token", reason));
        }
        self.0.push((token, scope));
        Ok(self)
    }

    /// What the holder of `given` may do. Looks at every token, and at all of each, so that the
    /// time it takes tells nothing but their lengths.
    fn scope_of(&self, given: &str) -> Option<Scope> {
        let mut found = None;
        for (token, scope) in &self.0 {
            if bool::from(token.expose_secret().as_bytes().ct_eq(given.as_bytes())) {
                found = found.max(Some(*scope));
            }
        }
        found
    }

    fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(needed) = Scope::needed(method, path) else { return Ok(()) };
        let unauthorized = |detail: &'static str| {
            Problem::new(StatusCode::UNAUTHORIZED).field("Authorization").detail(detail)
        };
        let Some(given) = bearer(headers) else {
            return Err(unauthorized("must be Bearer and a token"));
        };
        match self.scope_of(given) {
            None => Err(unauthorized("has a token that is not known")),
            Some(scope) if scope < needed => {
                let detail = format!("the token allows {scope}, and this needs {needed}");
                Err(Problem::new(StatusCode::FORBIDDEN).detail(detail))
            }
            Some(_) => Ok(()),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(")?;
        f.debug_list().entries(self.0.iter().map(|(_, scope)| scope)).finish()?;
        f.write_str(")")
    }
}

/// The token of an `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// The layer that lets only holders of a token in.
///
/// It sees paths as the router does, so it goes around the router before that is mounted, as
/// [`Api::auth`](crate::Api::auth) does.
#[derive(Debug, Clone)]
pub struct RequireToken {
    tokens: Arc<Tokens>,
}

impl RequireToken {
    /// Lets the holders of these in.
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens: Arc::new(tokens) }
    }
}

impl<S> Layer<S> for RequireToken {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { tokens: Arc::clone(&self.tokens), inner }
    }
}

/// A service behind [`RequireToken`].
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    tokens: Arc<Tokens>,
    inner: S,
}

impl<S, B> Service<Request<B>> for Guarded<S>
where
    S: Service<Request<B>, Response = Response>,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.tokens.check(request.method(), request.uri().path(), request.headers()) {
            Ok(()) => Either::Left(self.inner.call(request)),
            Err(problem) => Either::Right(ready(Ok(refusal(problem)))),
        }
    }
}

fn refusal(problem: Problem) -> Response {
    let unauthorized = problem.status() == StatusCode::UNAUTHORIZED;
    let mut response = problem.into_response();
    if unauthorized {
        let challenge = HeaderValue::from_static("Bearer realm=\"flare\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_needs() {
        for (method, path, needed) in [
            (Method::GET, "/health/live", None),
            (Method::GET, "/health/ready", None),
            (Method::POST, "/health/ready", Some(Scope::Write)),
            (Method::GET, "/", Some(Scope::Read)),
            (Method::HEAD, "/resources", Some(Scope::Read)),
            (Method::POST, "/resources", Some(Scope::Admin)),
            (Method::DELETE, "/resources/1", Some(Scope::Admin)),
            (Method::POST, "/resources/1/subscriptions", Some(Scope::Write)),
            (Method::PUT, "/documents/http://a/b", Some(Scope::Write)),
            (Method::POST, "/cluster/nodes/1/drain", Some(Scope::Admin)),
            (Method::GET, "/health/live/x", Some(Scope::Read)),
        ] {
            assert_eq!(Scope::needed(&method, path), needed, "{method} {path}");
        }
    }

    #[test]
    fn a_token_given_twice_allows_the_more() {
        let tokens = Tokens::new().with("0123456789abcdef", Scope::Admin).unwrap();
        let tokens = tokens.with("0123456789abcdef", Scope::Read).unwrap();
        assert_eq!(tokens.scope_of("0123456789abcdef"), Some(Scope::Admin));
        assert_eq!(tokens.scope_of("0123456789abcde"), None);
        assert_eq!(tokens.scope_of(""), None);
    }
}
