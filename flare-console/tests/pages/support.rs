//! Takes what a test wants of the console; gives one on stores in memory, asked without a network.

use axum::Router;
use axum::body::{Body, to_bytes};
use flare_backend_memory::MemoryBackend;
use flare_console::Console;
use flare_core::Flare;
use flare_core::model::{NewResource, Resource};
use flare_http::auth::{Scope, Tokens};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use http::{Method, Request, StatusCode};
use tower_service::Service;

pub(crate) const READ: &str = "a-token-that-may-look";
pub(crate) const WRITE: &str = "a-token-that-may-write";
pub(crate) const ADMIN: &str = "a-token-that-may-do-everything";

/// The pages of a Flare that takes everything and delivers nothing, as its runtime does not run.
pub(crate) struct Pages {
    pub(crate) flare: Flare,
    router: Router,
    token: Option<&'static str>,
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) text: String,
    pub(crate) location: Option<String>,
    pub(crate) cookie: Option<String>,
}

pub(crate) fn flare() -> Flare {
    let (flare, runtime) = Flare::builder(MemoryBackend::new()).build().unwrap();
    runtime.unused();
    flare
}

impl Pages {
    /// Open to everybody, below `/console`.
    pub(crate) fn open() -> Self {
        let flare = flare();
        let router = Router::new().nest("/console", Console::new(flare.clone()).router());
        Self { flare, router, token: None }
    }

    /// For the holders of three tokens; asked with this one.
    pub(crate) fn with_token(token: Option<&'static str>) -> Self {
        let flare = flare();
        let tokens = [
            ("looker", READ, Scope::Read),
            ("writer", WRITE, Scope::Write),
            ("ann", ADMIN, Scope::Admin),
        ];
        let tokens = tokens.into_iter().fold(Tokens::new(), |tokens, (name, token, scope)| {
            tokens.with_named(name, token, scope).unwrap()
        });
        let console = Console::new(flare.clone()).auth(tokens);
        Self { flare, router: Router::new().nest("/console", console.router()), token }
    }

    /// Mounted as a host likes.
    pub(crate) fn of(flare: Flare, router: Router) -> Self {
        Self { flare, router, token: None }
    }

    pub(crate) fn as_holder(&self, token: &'static str) -> Self {
        Self { flare: self.flare.clone(), router: self.router.clone(), token: Some(token) }
    }

    pub(crate) async fn users(&self) -> Resource {
        let users = NewResource::new("http://api.example.com/users/{id}").change_field("rev");
        self.flare.create_resource(users).await.unwrap()
    }

    /// A page below `/console`, or elsewhere with a leading slash.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[], "").await
    }

    /// A form that is sent from a page of ours.
    pub(crate) async fn post(&self, path: &str, form: &str) -> Answer {
        self.ask(Method::POST, path, &[(ORIGIN.as_str(), "http://flare.example")], form).await
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        form: &str,
    ) -> Answer {
        let uri = if path.starts_with('/') { path.to_owned() } else { format!("/console/{path}") };
        let mut request =
            Request::builder().method(&method).uri(uri).header("host", "flare.example");
        if let Some(token) = self.token {
            request = request.header(COOKIE, format!("flare-token={token}"));
        }
        if method == Method::POST {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(form.to_owned())).unwrap();
        let response = self.router.clone().call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let header = |name| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let policy = header(CONTENT_SECURITY_POLICY).unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!(header("x-content-type-options".parse().unwrap()).as_deref(), Some("nosniff"));
        let bytes = to_bytes(body, 1 << 20).await.unwrap();
        Answer {
            status: parts.status,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            location: header(LOCATION),
            cookie: header(SET_COOKIE),
        }
    }
}

impl Answer {
    /// Where the browser is sent, which it has to be.
    pub(crate) fn sent_to(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.text);
        self.location.as_deref().unwrap()
    }

    /// What is shown with this status.
    pub(crate) fn shown(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        &self.text
    }
}
