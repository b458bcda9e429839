//! Takes a host's name; gives the addresses to dial, those alone that the guard lets pass. The same
//! lookup is judged and dialled, so there is no moment between the two.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{Guard, Refusal, attempt_scope};
use crate::port::Clock;

/// Looks names up, where a host brings a way of its own.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync + 'static {
    /// All addresses of a name, best first; it may have a trailing dot.
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The C library's resolver (`getaddrinfo`) with all it is configured for, on tokio's threads for
/// blocking calls: a name that no server answers for holds one of them for as long as that takes.
/// It remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// A resolver behind the guard, as reqwest wants it.
pub(super) struct GuardedResolver {
    resolver: Arc<dyn Resolver>,
    guard: Option<Arc<Guard>>,
    clock: Arc<dyn Clock>,
}

impl GuardedResolver {
    pub(super) fn new(
        resolver: Arc<dyn Resolver>,
        guard: Option<Guard>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { resolver, guard: guard.map(Arc::new), clock }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.resolver);
        let (guard, clock) = (self.guard.clone(), Arc::clone(&self.clock));
        Box::pin(async move {
            let host = name.as_str();
            let asked = clock.monotonic();
            let found = resolver.resolve(host).await;
            attempt_scope::looked_up(clock.monotonic().saturating_sub(asked));
            let found =
                found.map_err(|error| NotFound { host: host.to_owned(), source: Some(error) })?;
            let passed = pass(guard.as_deref(), host, found)?;
            // The port is filled in from the URL.
            let passed = passed.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(passed) as Addrs)
        })
    }
}

/// The addresses that pass; if none does, the reason why the first did not.
fn pass(
    guard: Option<&Guard>,
    host: &str,
    found: Vec<IpAddr>,
) -> Result<Vec<IpAddr>, Box<dyn StdError + Send + Sync>> {
    let mut refused = None;
    let mut passed = Vec::with_capacity(found.len());
    for address in found {
        match guard.map_or(Ok(()), |guard| guard.check(address)) {
            Ok(()) => passed.push(address),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    match (passed.is_empty(), refused) {
        (false, _) => Ok(passed),
        (true, Some(refusal)) => Err(Box::new(Forbidden { host: host.to_owned(), refusal })),
        (true, None) => Err(Box::new(NotFound { host: host.to_owned(), source: None })),
    }
}

/// A name all of whose addresses the guard refuses.
#[derive(Debug)]
pub(super) struct Forbidden {
    pub(super) host: String,
    pub(super) refusal: Refusal,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} resolves to {}: {}", self.host, self.refusal.address(), self.refusal)
    }
}

impl StdError for Forbidden {}

/// A name that could not be resolved.
#[derive(Debug)]
pub(super) struct NotFound {
    pub(super) host: String,
    pub(super) source: Option<io::Error>,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Some(_) => write!(f, "{} does not resolve", self.host),
            None => write!(f, "{} has no address", self.host),
        }
    }
}

impl StdError for NotFound {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn only_what_passes_is_left_in_order() {
        let found = addresses(&["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1", "8.8.4.4"]);
        let passed = pass(Some(&Guard::default()), "name", found.clone()).unwrap();
        assert_eq!(passed, addresses(&["8.8.8.8", "2606:4700::1", "8.8.4.4"]));
        assert_eq!(pass(None, "proxy", found.clone()).unwrap(), found);
    }

    #[test]
    fn if_nothing_passes_the_first_refusal_is_told() {
        let found = addresses(&["10.0.0.1", "127.0.0.1"]);
        let error = pass(Some(&Guard::default()), "db.internal", found).unwrap_err();
        let message = error.to_string();
        assert!(error.is::<Forbidden>());
        assert!(message.starts_with("db.internal resolves to 10.0.0.1: 10.0.0.1 is a private"));
        assert!(message.contains("Guard::allow"), "{message}");
    }

    #[test]
    fn a_name_without_addresses_is_not_found() {
        let error = pass(Some(&Guard::default()), "missing", Vec::new()).unwrap_err();
        assert!(error.is::<NotFound>());
        assert_eq!(error.to_string(), "missing has no address");
    }
}
