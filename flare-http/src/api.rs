//! Takes a Flare handle and what the host wants of its REST interface; gives a router to mount.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};

use crate::auth::Tokens;
use crate::options::{Metrics, Options, State};
use crate::routes;

/// The whole REST interface with its defaults; see [`Api`] for others.
///
/// It can be mounted under any prefix of a router with any state.
pub fn router<S: Clone + Send + Sync + 'static>(flare: Flare) -> Router<S> {
    Api::new(flare).router()
}

/// Puts the REST interface together.
///
/// ```
/// use std::time::Duration;
/// use flare_backend_memory::MemoryBackend;
/// use flare_core::Flare;
/// use flare_http::{Api, auth::{Scope, Tokens}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (flare, _runtime) = Flare::builder(MemoryBackend::new()).build()?;
/// let tokens = Tokens::new().with("a-token-nobody-guesses", Scope::Write)?;
/// let api = Api::new(flare).auth(tokens).body_limit(1 << 20).timeout(Duration::from_secs(5));
/// let app: axum::Router = axum::Router::new().nest("/flare", api.router());
/// # Ok(())
/// # }
/// ```
#[must_use = "it serves nothing until its router is mounted"]
pub struct Api {
    flare: Flare,
    options: Options,
    tokens: Option<Tokens>,
}

impl Api {
    /// The interface of a Flare: open to everybody, bodies up to 16 MiB and 64 MiB of
    /// all requests together, 30 s a request.
    pub fn new(flare: Flare) -> Self {
        Self { flare, options: Options::default(), tokens: None }
    }

    /// Refuses bodies above this many bytes, while they are read.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.options.body_limit = bytes;
        self
    }

    /// Keeps no more bytes of bodies in memory than this, of all requests together (but always as many
    /// as two of the largest have); one more is answered 429 with `Retry-After`.
    pub fn bodies_limit(mut self, bytes: usize) -> Self {
        self.options.bodies_limit = bytes;
        self
    }

    /// Gives a request this long, from its headers to its answer.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.timeout = limit;
        self
    }

    /// Lists this many items where a request does not say (at least 1, at most 1,000).
    pub fn default_limit(mut self, items: u32) -> Self {
        self.options.default_limit = items.clamp(1, crate::extract::MAX_LIMIT);
        self
    }

    /// Lets only holders of a token in; health stays open. A host with a scheme of its own leaves
    /// this out and wraps the router in its own layer.
    pub fn auth(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Serves this text at `/metrics`; without it there is no such route.
    pub fn metrics(mut self, text: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.options.metrics = Some(Metrics(Arc::new(text)));
        self
    }

    /// Shows this version of the host's program, instead of this crate's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.options.version = version.into();
        self
    }

    /// Shows the commit the host's program was built from.
    pub fn commit(mut self, commit: impl Into<String>) -> Self {
        self.options.commit = Some(commit.into());
        self
    }

    /// Takes the time from there; it should be the clock the Flare has.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.options.clock = clock;
        self
    }

    /// The router, to be mounted anywhere.
    pub fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        routes::router(State::new(self.flare, self.options), self.tokens)
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("options", &self.options)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            body_limit: 16 << 20,
            bodies_limit: 64 << 20,
            timeout: Duration::from_secs(30),
            default_limit: 30,
            metrics: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: None,
            clock: Arc::new(SystemClock::new()),
        }
    }
}
