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
use flare_core::Flare;
use flare_core::model::Invalid;
use futures::future::{Either, Ready, ready};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::observe;
use crate::problem::Problem;

/// The shortest token that is taken: less can be guessed.
const MIN_TOKEN_BYTES: usize = 16;
/// The longest name: it is in lines of the log.
const MAX_NAME_CHARS: usize = 64;

/// What a token allows. Each allows what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Read everything.
    Read,
    /// Put and delete documents; create, change and operate subscriptions; pause and resume consumers, and try their
    /// rejects again.
    Write,
    /// Create and delete resources; create, change and delete consumers, which take messages out of brokers with
    /// Flare's own credentials; operate the cluster; look into the process.
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
            ["debug", ..] => Some(Self::Admin),
            _ if reads => Some(Self::Read),
            // Nothing is stored.
            ["consumers", "test"] => Some(Self::Write),
            ["resources" | "consumers"] | ["resources" | "consumers", _] | ["cluster", ..] => {
                Some(Self::Admin)
            }
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

/// Who a request is from, as the layer says that let it in. Routes that change something tell the log of what was
/// done, and the request's span has it.
///
/// [`RequireToken`] inserts the name of the token into the request's extensions; so may a layer of the host's own,
/// around the router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller(Arc<str>);

impl Caller {
    /// One of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The tokens that are let in, each with a name. Several may hold at once, also of one name: a new one is handed
/// out before the one before it is taken away.
///
/// ```
/// use flare_http::auth::{Scope, Tokens};
///
/// let tokens = Tokens::new()
///     .with_named("dashboard", "a-token-nobody-guesses", Scope::Read)?
///     .with("another-nobody-guesses", Scope::Admin)?;
/// assert_eq!(format!("{tokens:?}"), r#"Tokens({"dashboard": Read, "token-2": Admin})"#);
/// assert!(Tokens::new().with("short", Scope::Read).is_err());
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone)]
struct Token {
    caller: Caller,
    secret: SecretString,
    scope: Scope,
}

/// Why a request is not let in.
enum Refusal {
    /// It says nothing of who it is from, or something that is not true.
    SignIn(&'static str, &'static str),
    /// Its token does not allow that.
    Forbidden(String),
}

impl Tokens {
    /// No tokens: nobody is let in.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same and one more: at least 16 visible ASCII characters. It is called by its place: `token-1`, `token-2` …
    pub fn with(self, token: impl Into<SecretString>, scope: Scope) -> Result<Self, Invalid> {
        let name = format!("token-{}", self.0.len() + 1);
        self.with_named(name, token, scope)
    }

    /// The same and one more, of that name: at most 64 characters, none of them a control character. A name is no
    /// secret: it is shown in logs, and in the log of what was done.
    pub fn with_named(
        mut self,
        name: impl Into<String>,
        token: impl Into<SecretString>,
        scope: Scope,
    ) -> Result<Self, Invalid> {
        let (name, secret) = (name.into(), token.into());
        check_name(&name)?;
        let text = secret.expose_secret();
        if text.len() < MIN_TOKEN_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "must be at least 16 visible ASCII characters";
            return Err(Invalid::new("token", reason));
        }
        self.0.push(Token { caller: Caller::new(name), secret, scope });
        Ok(self)
    }

    /// What the holder of `given` may do, for a host's own way of asking who it is; nothing, if it is none of
    /// them.
    pub fn scope_of(&self, given: &str) -> Option<Scope> {
        self.holder(given).map(|token| token.scope)
    }

    /// Who holds `given`, for the same: the name that the log of what was done should say
    /// ([`Flare::acting_as`]).
    pub fn caller_of(&self, given: &str) -> Option<&Caller> {
        self.holder(given).map(|token| &token.caller)
    }

    /// Who holds `given`, and what they may do. Looks at every token, and at all of each, so that the
    /// time it takes tells nothing but their lengths.
    fn holder(&self, given: &str) -> Option<&Token> {
        let mut found: Option<&Token> = None;
        for token in &self.0 {
            if bool::from(token.secret.expose_secret().as_bytes().ct_eq(given.as_bytes()))
                && found.is_none_or(|before| before.scope < token.scope)
            {
                found = Some(token);
            }
        }
        found
    }

    /// Who a request is from, if it needs to say.
    fn check(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Option<&Caller>, Refusal> {
        let Some(needed) = Scope::needed(method, path) else { return Ok(None) };
        let Some(given) = bearer(headers) else {
            return Err(Refusal::SignIn("no-token", "must be Bearer and a token"));
        };
        match self.holder(given) {
            None => Err(Refusal::SignIn("unknown-token", "has a token that is not known")),
            Some(Token { scope, .. }) if *scope < needed => {
                let detail = format!("the token allows {scope}, and this needs {needed}");
                Err(Refusal::Forbidden(detail))
            }
            Some(Token { caller, .. }) => Ok(Some(caller)),
        }
    }
}

/// What a token may be called.
fn check_name(name: &str) -> Result<(), Invalid> {
    let length = name.chars().count();
    match (1..=MAX_NAME_CHARS).contains(&length) && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Invalid::new("name", "must be 1 to 64 characters that can be shown")),
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(")?;
        let shown = self.0.iter().map(|token| (token.caller.name(), token.scope));
        f.debug_map().entries(shown).finish()?;
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
    flare: Option<Flare>,
}

impl RequireToken {
    /// Lets the holders of these in.
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens: Arc::new(tokens), flare: None }
    }

    /// The same; the log of what was done is told of those that are refused.
    #[must_use]
    pub fn telling(mut self, flare: Flare) -> Self {
        self.flare = Some(flare);
        self
    }
}

impl<S> Layer<S> for RequireToken {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { tokens: Arc::clone(&self.tokens), flare: self.flare.clone(), inner }
    }
}

/// A service behind [`RequireToken`].
#[derive(Debug, Clone)]
pub struct Guarded<S> {
    tokens: Arc<Tokens>,
    flare: Option<Flare>,
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

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let (method, path) = (request.method(), request.uri().path());
        match self.tokens.check(method, path, request.headers()) {
            Ok(caller) => {
                if let Some(caller) = caller.cloned() {
                    Span::current().record(observe::CALLER, caller.name());
                    request.extensions_mut().insert(caller);
                }
                Either::Left(self.inner.call(request))
            }
            Err(Refusal::SignIn(what, detail)) => {
                if let Some(flare) = &self.flare {
                    flare.note_refused_sign_in(what);
                }
                let problem = Problem::new(StatusCode::UNAUTHORIZED).field("Authorization");
                let mut response = problem.detail(detail).into_response();
                let challenge = HeaderValue::from_static("Bearer realm=\"flare\"");
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                Either::Right(ready(Ok(response)))
            }
            Err(Refusal::Forbidden(detail)) => {
                let problem = Problem::new(StatusCode::FORBIDDEN).detail(detail);
                Either::Right(ready(Ok(problem.into_response())))
            }
        }
    }
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
            (Method::POST, "/consumers", Some(Scope::Admin)),
            (Method::PUT, "/consumers/1", Some(Scope::Admin)),
            (Method::DELETE, "/consumers/1", Some(Scope::Admin)),
            (Method::GET, "/consumers/1", Some(Scope::Read)),
            (Method::POST, "/consumers/test", Some(Scope::Write)),
            (Method::POST, "/consumers/1/pause", Some(Scope::Write)),
            (Method::POST, "/consumers/1/producers", Some(Scope::Write)),
            (Method::POST, "/consumers/1/rejects/retry", Some(Scope::Write)),
            (Method::GET, "/consumers/1/rejects", Some(Scope::Read)),
            (Method::PUT, "/documents/http://a/b", Some(Scope::Write)),
            (Method::POST, "/cluster/nodes/1/drain", Some(Scope::Admin)),
            (Method::GET, "/health/live/x", Some(Scope::Read)),
            (Method::GET, "/debug/profile", Some(Scope::Admin)),
            (Method::PUT, "/cluster/slots/1/pin", Some(Scope::Admin)),
            (Method::PUT, "/resources/1/subscriptions/2/pin", Some(Scope::Write)),
            (Method::GET, "/log", Some(Scope::Read)),
        ] {
            assert_eq!(Scope::needed(&method, path), needed, "{method} {path}");
        }
    }

    #[test]
    fn a_token_given_twice_allows_the_more() {
        let tokens = Tokens::new().with("0123456789abcdef", Scope::Admin).unwrap();
        let tokens = tokens.with("0123456789abcdef", Scope::Read).unwrap();
        let scope = |given| tokens.holder(given).map(|token| token.scope);
        assert_eq!(scope("0123456789abcdef"), Some(Scope::Admin));
        assert_eq!(tokens.caller_of("0123456789abcdef"), Some(&Caller::new("token-1")));
        assert_eq!(scope("0123456789abcde"), None);
        assert_eq!(scope(""), None);
    }

    #[test]
    fn names_are_short_and_can_be_shown() {
        let named = |name: &str| Tokens::new().with_named(name, "0123456789abcdef", Scope::Read);
        for name in ["ops", "Ann's laptop", "é", &"x".repeat(64)] {
            assert!(named(name).is_ok(), "{name}");
        }
        for name in ["", "two\nlines", &"x".repeat(65)] {
            assert_eq!(named(name).unwrap_err().field(), "name", "{name:?}");
        }
    }
}
