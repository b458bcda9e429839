//! Takes the settings of a machine's resolver; gives answers of its name servers, and says in words
//! what is wrong with them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, select};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError, NoRecords};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};

use super::ask::{Ask, FoundName, Unresolved};
use super::order;
use crate::port::Clock;

/// How long addresses of one family are held back for those of the other: some servers never answer
/// for one of them.
const OTHER_FAMILY: Duration = Duration::from_millis(200);

/// The name servers to ask.
pub(super) struct Servers {
    /// Why there are none, if so.
    resolver: Result<TokioResolver, String>,
    /// Their addresses, for people.
    whom: String,
    ndots: usize,
    search: Vec<Name>,
    clock: Arc<dyn Clock>,
}

impl Servers {
    /// The servers named, else the machine's own; a name that may be short is completed by the
    /// machine's rules in either case. Without any each lookup is told the reason.
    pub(super) fn new(
        named: &[SocketAddr],
        machine: Result<(ResolverConfig, ResolverOpts), NetError>,
        patience: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let missing = machine.as_ref().err().map(|error| {
            format!("it is not in the hosts file, and there is no name server to ask: {error}")
        });
        let (config, mut options) = machine.unwrap_or_default();
        let (domain, mut search, mut servers) = config.into_parts();
        // As the C library: the machine's own domain counts where no other is named.
        if search.is_empty() {
            search.extend(domain);
        }
        if !named.is_empty() {
            servers = named.iter().map(|address| server(*address)).collect();
        }
        let whom = addresses(&servers);
        // Twice within the patience, so that a second server is asked if the first is silent; one at
        // a time, because each question to each server needs a socket.
        options.timeout = options.timeout.min(patience / 2);
        options.attempts = 1;
        options.num_concurrent_reqs = 1;
        options.use_hosts_file = ResolveHosts::Never;
        // What is known is kept by `memory`, failures too.
        options.cache_size = 0;
        let ndots = options.ndots;
        let resolver = match missing {
            Some(reason) if servers.is_empty() => Err(reason),
            _ => build(ResolverConfig::from_name_servers(servers), options),
        };
        Self { resolver, whom, ndots, search, clock }
    }

    /// Asks for both families of one name.
    async fn both(&self, resolver: &TokioResolver, name: Name) -> Result<FoundName, Unresolved> {
        let v4 = Box::pin(resolver.lookup(name.clone(), RecordType::A));
        let v6 = Box::pin(resolver.lookup(name, RecordType::AAAA));
        let (first, other) = select(v4, v6).await.factor_first();
        let first = self.understand(first);
        let second = match first {
            Err(_) => Some(other.await),
            Ok(_) => match select(other, self.clock.sleep(OTHER_FAMILY)).await {
                Either::Left((second, _)) => Some(second),
                Either::Right(((), _)) => None,
            },
        };
        let Some(second) = second else { return first };
        merge(first, self.understand(second))
    }

    fn understand(&self, answer: Result<Lookup, NetError>) -> Result<FoundName, Unresolved> {
        let lookup = answer.map_err(|error| self.explain(&error))?;
        let lifetime = lookup.answers().iter().map(|record| record.ttl).min().unwrap_or(0);
        let found = lookup.answers().iter().filter_map(|record| record.data.ip_addr());
        let addresses: Vec<IpAddr> = found.collect();
        if addresses.is_empty() {
            return Err(Unresolved { why: NO_ADDRESS.to_owned(), lifetime: Some(Duration::ZERO) });
        }
        Ok(FoundName { addresses, lifetime: Duration::from_secs(lifetime.into()) })
    }

    /// What an error of the resolver means.
    fn explain(&self, error: &NetError) -> Unresolved {
        let whom = &self.whom;
        match error {
            NetError::Dns(DnsError::NoRecordsFound(NoRecords {
                response_code,
                negative_ttl,
                ..
            })) => {
                let why = match response_code {
                    ResponseCode::NXDomain => NO_SUCH_NAME,
                    _ => NO_ADDRESS,
                };
                let lifetime = Duration::from_secs(negative_ttl.unwrap_or(0).into());
                Unresolved { why: why.to_owned(), lifetime: Some(lifetime) }
            }
            NetError::Dns(DnsError::ResponseCode(code)) => {
                Unresolved::now(format!("the name server {whom} answered \"{code}\""))
            }
            NetError::Timeout | NetError::NoConnections | NetError::Busy => {
                Unresolved::now(format!("the name server {whom} did not answer"))
            }
            other => Unresolved::now(format!("the name server {whom} could not be asked: {other}")),
        }
    }
}

const NO_SUCH_NAME: &str = "there is no such name";
const NO_ADDRESS: &str = "the name has no address";

#[async_trait]
impl Ask for Servers {
    async fn ask(&self, host: &str) -> Result<FoundName, Unresolved> {
        let resolver = match &self.resolver {
            Ok(resolver) => resolver,
            Err(reason) => return Err(Unresolved::now(reason.clone())),
        };
        let mut failed = None;
        for name in candidates(host, self.ndots, &self.search)? {
            match self.both(resolver, name).await {
                Ok(FoundName { addresses, lifetime }) => {
                    let addresses = order::ordered(addresses, order::has_route);
                    return Ok(FoundName { addresses, lifetime });
                }
                Err(unresolved) => failed = Some(weightier(failed, unresolved)),
            }
        }
        Err(failed.unwrap_or_else(|| Unresolved::now(NO_SUCH_NAME)))
    }
}

/// The names to ask for, in order: a name with enough dots as it is first, one with fewer completed
/// first, as the C library does.
fn candidates(host: &str, ndots: usize, search: &[Name]) -> Result<Vec<Name>, Unresolved> {
    // As it is: the names of services in a container's network may have underscores.
    let name = Name::from_ascii(host)
        .map_err(|error| Unresolved::now(format!("it is no name for a name server: {error}")))?;
    if name.is_fqdn() {
        return Ok(vec![name]);
    }
    let dots = host.matches('.').count();
    // One that gets too long is no name.
    let completed = search.iter().filter_map(|domain| name.clone().append_domain(domain).ok());
    let mut names: Vec<Name> = completed.collect();
    let mut whole = name.clone();
    whole.set_fqdn(true);
    let place = if dots >= ndots { 0 } else { names.len() };
    names.insert(place, whole);
    Ok(names)
}

/// Both families of a name.
fn merge(
    first: Result<FoundName, Unresolved>,
    second: Result<FoundName, Unresolved>,
) -> Result<FoundName, Unresolved> {
    match (first, second) {
        (Ok(mut first), Ok(second)) => {
            first.addresses.extend(second.addresses);
            first.lifetime = first.lifetime.min(second.lifetime);
            Ok(first)
        }
        (Ok(found), Err(_)) | (Err(_), Ok(found)) => Ok(found),
        (Err(first), Err(second)) => Err(weightier(Some(first), second)),
    }
}

/// Of two reasons the one that says more about what to do: a server that fails before a name that
/// is not there, which may only be what it looks like.
fn weightier(first: Option<Unresolved>, second: Unresolved) -> Unresolved {
    match first {
        Some(first) if first.lifetime.is_none() || second.lifetime.is_some() => first,
        _ => second,
    }
}

fn build(config: ResolverConfig, options: ResolverOpts) -> Result<TokioResolver, String> {
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    builder.build().map_err(|error| format!("no name server can be asked: {error}"))
}

/// A server that is asked by datagrams, and over a connection for long answers.
fn server(address: SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    for connection in &mut server.connections {
        connection.port = address.port();
    }
    server
}

fn addresses(servers: &[NameServerConfig]) -> String {
    let address = |server: &NameServerConfig| match server.connections.first() {
        Some(connection) if connection.port != 53 => {
            SocketAddr::new(server.ip, connection.port).to_string()
        }
        _ => server.ip.to_string(),
    };
    servers.iter().map(address).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Vec<Name> {
        texts.iter().map(|text| Name::from_ascii(text).unwrap()).collect()
    }

    #[test]
    fn short_names_are_completed_as_the_c_library_does() {
        let search = names(&["a.test.", "b.test."]);
        for (host, ndots, expected) in [
            ("web", 1, &["web.a.test.", "web.b.test.", "web."][..]),
            ("web.shop", 1, &["web.shop.", "web.shop.a.test.", "web.shop.b.test."]),
            ("web.shop", 5, &["web.shop.a.test.", "web.shop.b.test.", "web.shop."]),
            ("web.shop.", 5, &["web.shop."]),
            ("my_service", 0, &["my_service.", "my_service.a.test.", "my_service.b.test."]),
            (
                "xn--bcher-kva.example",
                1,
                &[
                    "xn--bcher-kva.example.",
                    "xn--bcher-kva.example.a.test.",
                    "xn--bcher-kva.example.b.test.",
                ],
            ),
        ] {
            assert_eq!(candidates(host, ndots, &search).unwrap(), names(expected), "{host}");
        }
        let long = format!("{}.example", "x".repeat(64));
        assert!(candidates(&long, 1, &search).unwrap_err().why.contains("no name"));
    }

    #[test]
    fn a_server_that_fails_outweighs_a_name_that_is_not_there() {
        let failed = || Unresolved::now("failed");
        let unknown = |seconds| Unresolved {
            why: "unknown".to_owned(),
            lifetime: Some(Duration::from_secs(seconds)),
        };
        assert_eq!(weightier(Some(unknown(1)), failed()), failed());
        assert_eq!(weightier(Some(failed()), unknown(1)), failed());
        assert_eq!(weightier(Some(unknown(1)), unknown(2)), unknown(1));
        assert_eq!(weightier(None, unknown(1)), unknown(1));
    }
}
