//! What is asked about names, and what comes back: the seam between looking up fairly and the
//! servers that know.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;

/// A source of names. May take for ever: the lookup that asks ends it.
#[async_trait]
pub(super) trait Ask: Send + Sync + 'static {
    /// The addresses of a name, which may have a trailing dot.
    async fn ask(&self, host: &str) -> Result<FoundName, Unresolved>;
}

/// The addresses of a name, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundName {
    pub(super) addresses: Vec<IpAddr>,
    /// How long they are good, as the server says.
    pub(super) lifetime: Duration,
}

/// Why a name has no addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unresolved {
    /// The reason, for people.
    pub(super) why: String,
    /// How long there will be none, if a server said so; else it may work the next time.
    pub(super) lifetime: Option<Duration>,
}

impl Unresolved {
    /// A reason that may be gone at once.
    pub(super) fn now(why: impl Into<String>) -> Self {
        Self { why: why.into(), lifetime: None }
    }
}
