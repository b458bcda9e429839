//! Takes what a TLS client remembers of servers; gives it, and notices by being asked that a connection is there and
//! begins to be secured. The HTTP client has no other seam between the two.

use std::fmt;
use std::sync::Arc;

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

use super::attempt_scope;
use crate::port::Clock;

/// Sessions that are remembered, of as many servers as rustls remembers by itself.
const SESSIONS: usize = 256;

/// What is remembered of servers, in memory.
pub(super) struct WatchedSessions {
    sessions: ClientSessionMemoryCache,
    clock: Arc<dyn Clock>,
}

impl WatchedSessions {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { sessions: ClientSessionMemoryCache::new(SESSIONS), clock }
    }
}

impl fmt::Debug for WatchedSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedSessions").finish_non_exhaustive()
    }
}

impl ClientSessionStore for WatchedSessions {
    fn set_kx_hint(&self, server: ServerName<'static>, group: NamedGroup) {
        self.sessions.set_kx_hint(server, group);
    }

    fn kx_hint(&self, server: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions.kx_hint(server)
    }

    fn set_tls12_session(&self, server: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions.set_tls12_session(server, value);
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions.tls12_session(server)
    }

    fn remove_tls12_session(&self, server: &ServerName<'static>) {
        self.sessions.remove_tls12_session(server);
    }

    fn insert_tls13_ticket(&self, server: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.sessions.insert_tls13_ticket(server, value);
    }

    /// The first thing a handshake asks for, before anything is said to the server.
    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        attempt_scope::securing(self.clock.monotonic());
        self.sessions.take_tls13_ticket(server)
    }
}
