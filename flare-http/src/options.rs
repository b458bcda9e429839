//! Takes a handle and the host's options; gives what every route works with, cheap to clone.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_core::Flare;
use flare_core::port::Clock;

use crate::auth::Caller;
use crate::extract::Bodies;
use crate::openapi::openapi;

/// What a host may choose.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) body_limit: usize,
    pub(crate) bodies_limit: usize,
    pub(crate) timeout: Duration,
    pub(crate) default_limit: u32,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) version: String,
    pub(crate) commit: Option<String>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// Where the text of `/metrics` comes from.
#[derive(Clone)]
pub(crate) struct Metrics(pub(crate) Arc<dyn Fn() -> String + Send + Sync>);

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// What every route works with.
#[derive(Clone)]
pub(crate) struct State {
    inner: Arc<Inner>,
    /// The handle of who asks, where a request says who that is.
    acting: Option<Flare>,
}

struct Inner {
    flare: Flare,
    options: Options,
    bodies: Arc<Bodies>,
    /// Written once: it is the same for everybody.
    openapi: Bytes,
}

impl State {
    pub(crate) fn new(flare: Flare, options: Options) -> Self {
        // Names, texts and numbers: they cannot fail to be written.
        let openapi = serde_json::to_vec(&openapi()).unwrap_or_default().into();
        let bodies = Arc::new(Bodies::new(options.bodies_limit, options.body_limit));
        Self { inner: Arc::new(Inner { flare, options, bodies, openapi }), acting: None }
    }

    /// The same for a request of that caller.
    pub(crate) fn acting_as(&self, caller: &Caller) -> Self {
        let acting = Some(self.inner.flare.acting_as(caller.name()));
        Self { acting, ..self.clone() }
    }

    pub(crate) fn flare(&self) -> &Flare {
        self.acting.as_ref().unwrap_or(&self.inner.flare)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.inner.options
    }

    /// The memory that bodies of all requests share.
    pub(crate) fn bodies(&self) -> &Arc<Bodies> {
        &self.inner.bodies
    }

    pub(crate) fn openapi(&self) -> Bytes {
        self.inner.openapi.clone()
    }
}
