//! Takes what an operator wants of outgoing HTTP; gives one value to build the delivery from.
//! Checks nothing: `HttpDelivery::new` does, and names the field.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use secrecy::SecretString;

use super::Guard;

/// The settings of [`HttpDelivery`](super::HttpDelivery).
///
/// ```
/// use std::time::Duration;
/// use flare_core::http::HttpConfig;
///
/// let config = HttpConfig::new()
///     .connect_timeout(Duration::from_secs(3))
///     .proxy("http://user:secret@proxy.internal:3128");
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpConfig {
    pub(super) roots_pem: Option<String>,
    pub(super) identity_pem: Option<SecretString>,
    pub(super) proxy: Option<SecretString>,
    pub(super) guard: Guard,
    pub(super) name_servers: Vec<SocketAddr>,
    pub(super) connect_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) idle_per_host: usize,
    pub(super) excerpt_limit: usize,
    pub(super) drain_limit: usize,
}

impl HttpConfig {
    /// The defaults: public addresses only, the system's root certificates and name servers, no
    /// proxy, 5 s to connect, 1024 idle connections per host for 30 s, excerpts of at most 64 KiB.
    pub fn new() -> Self {
        Self {
            roots_pem: None,
            identity_pem: None,
            proxy: None,
            guard: Guard::default(),
            name_servers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            idle_per_host: 1_024,
            excerpt_limit: 64 * 1024,
            drain_limit: 64 * 1024,
        }
    }

    /// Root certificates to trust beside the system's, as one or more PEM blocks.
    #[must_use]
    pub fn roots_pem(mut self, pem: impl Into<String>) -> Self {
        self.roots_pem = Some(pem.into());
        self
    }

    /// The certificate (with its chain) and private key to show to clients that ask for one, as
    /// PEM blocks in one text.
    #[must_use]
    pub fn identity_pem(mut self, pem: impl Into<SecretString>) -> Self {
        self.identity_pem = Some(pem.into());
        self
    }

    /// An http or https proxy for all requests, as a URL that may carry user and password. The
    /// environment's proxies are ignored with and without it. See [the guard](super) for what it
    /// cannot see behind a proxy.
    #[must_use]
    pub fn proxy(mut self, url: impl Into<SecretString>) -> Self {
        self.proxy = Some(url.into());
        self
    }

    /// A copy of the guard there is.
    pub(crate) fn allowed(&self) -> Guard {
        self.guard.clone()
    }

    /// Which addresses may be dialled.
    #[must_use]
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = guard;
        self
    }

    /// The DNS servers to ask for names, instead of those of the machine (`/etc/resolv.conf`). The
    /// hosts file and the machine's search domains count all the same.
    #[must_use]
    pub fn name_servers(mut self, servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.name_servers = servers.into_iter().collect();
        self
    }

    /// How long name lookup, connecting and securing a connection may take together. A request's
    /// own timeout ends it earlier.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an unused connection is kept.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// How many unused connections are kept per host; with 0 none is used twice.
    #[must_use]
    pub fn idle_per_host(mut self, connections: usize) -> Self {
        self.idle_per_host = connections;
        self
    }

    /// The longest excerpt of an answer's body, whatever a request asks for, unless it needs all of it.
    #[must_use]
    pub fn excerpt_limit(mut self, bytes: usize) -> Self {
        self.excerpt_limit = bytes;
        self
    }

    /// How many bytes behind the excerpt are thrown away, if they are there already, so that the
    /// connection can be used again.
    #[must_use]
    pub fn drain_limit(mut self, bytes: usize) -> Self {
        self.drain_limit = bytes;
        self
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |secret: &Option<SecretString>| secret.as_ref().map(|_| "[hidden]");
        f.debug_struct("HttpConfig")
            .field("roots_pem", &self.roots_pem.as_ref().map(|pem| format!("{} bytes", pem.len())))
            .field("identity_pem", &hidden(&self.identity_pem))
            .field("proxy", &hidden(&self.proxy))
            .field("guard", &self.guard)
            .field("name_servers", &self.name_servers)
            .field("connect_timeout", &self.connect_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("idle_per_host", &self.idle_per_host)
            .field("excerpt_limit", &self.excerpt_limit)
            .field("drain_limit", &self.drain_limit)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_settings_and_no_secrets() {
        let config = HttpConfig::new()
            .identity_pem("-----BEGIN PRIVATE KEY-----\nMIIEvQ")
            .proxy("http://user:hunter2@proxy:3128")
            .roots_pem("abc");
        let shown = format!("{config:?}");
        for secret in ["MIIEvQ", "PRIVATE", "hunter2", "user", "proxy:3128"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("3 bytes") && shown.contains("connect_timeout: 5s"), "{shown}");
    }
}
