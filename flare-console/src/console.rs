//! Takes a Flare handle and what the host wants of its pages; gives a router to mount.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};
use flare_http::auth::Tokens;

use crate::access::Access;
use crate::routes;

/// All pages with their defaults: open to everybody; see [`Console`] for others.
pub fn router<S: Clone + Send + Sync + 'static>(flare: Flare) -> Router<S> {
    Console::new(flare).router()
}

/// Puts the pages together.
///
/// ```
/// use flare_backend_memory::MemoryBackend;
/// use flare_console::Console;
/// use flare_core::Flare;
/// use flare_http::auth::{Scope, Tokens};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (flare, _runtime) = Flare::builder(MemoryBackend::new()).build()?;
/// let tokens = Tokens::new().with("a-token-nobody-guesses", Scope::Admin)?;
/// let console = Console::new(flare).auth(tokens).api("https://flare.example.com");
/// let app: axum::Router = axum::Router::new().nest("/flare/console", console.router());
/// # Ok(())
/// # }
/// ```
#[must_use = "it serves nothing until its router is mounted"]
pub struct Console {
    parts: Parts,
}

/// What every page works with.
pub(crate) struct Parts {
    pub(crate) flare: Flare,
    pub(crate) access: Access,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timeout: Duration,
    pub(crate) version: String,
    /// Where the REST interface is, for the commands that empty pages teach.
    pub(crate) api: Option<String>,
}

/// The same, cheap to clone.
pub(crate) type Shared = Arc<Parts>;

impl Console {
    /// The pages of a Flare: open to everybody, 30 s a request.
    pub fn new(flare: Flare) -> Self {
        let parts = Parts {
            flare,
            access: Access::open(),
            clock: Arc::new(SystemClock::new()),
            timeout: Duration::from_secs(30),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: None,
        };
        Self { parts }
    }

    /// Lets only those in who sign in with a token. A host with a scheme of its own leaves this out and wraps
    /// the router in its own layer.
    pub fn auth(mut self, tokens: Tokens) -> Self {
        self.parts.access = Access::with(tokens);
        self
    }

    /// Gives a request this long.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.parts.timeout = limit;
        self
    }

    /// Shows this version of the host's program, instead of this crate's.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.parts.version = version.into();
        self
    }

    /// Says where the host serves REST, for the commands that empty pages teach: `https://flare.example.com`.
    /// Unless said it is taken to be where the browser found the pages, at `/`.
    pub fn api(mut self, url: impl Into<String>) -> Self {
        self.parts.api = Some(url.into());
        self
    }

    /// Takes the time from there; it should be the clock the Flare has.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.parts.clock = clock;
        self
    }

    /// The router, to be mounted anywhere: `nest("/console", …)` or, at the root, `merge(…)`.
    pub fn router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        routes::router(Arc::new(self.parts))
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("access", &self.parts.access).finish_non_exhaustive()
    }
}
