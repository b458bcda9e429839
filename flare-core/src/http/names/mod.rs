//! Takes a host's name; gives its addresses: from the hosts file, from memory, or from a name
//! server, asked on sockets that block no thread. Takes no thread for blocking calls.
//!
//! A name is looked up by one at a time, for all that want it. Names that a server is silent about
//! cannot keep others waiting: see [`lookups`].

mod ask;
mod lookups;
mod memory;
mod order;
mod permits;
mod servers;
mod system;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use async_trait::async_trait;

use self::lookups::Lookups;
use self::system::System;
use super::{HttpConfig, Resolver};
use crate::port::Clock;

/// The resolver of a delivery that is given no other.
pub(super) struct Names {
    system: Arc<System>,
    lookups: Arc<Lookups>,
}

impl Names {
    /// Reads what the machine says about names; asks no server.
    pub(super) fn new(config: &HttpConfig, clock: Arc<dyn Clock>) -> Self {
        Self::reading(system::HOSTS, config, clock)
    }

    /// As [`new`](Self::new), with another hosts file.
    fn reading(hosts: &str, config: &HttpConfig, clock: Arc<dyn Clock>) -> Self {
        // A look-up ends before the connection's time does, so that its own reason is told.
        let patience = config.connect_timeout / 5 * 4;
        let servers = config.name_servers.clone();
        let system = Arc::new(System::read(hosts.into(), servers, patience, Arc::clone(&clock)));
        let ask = Arc::clone(&system) as Arc<dyn ask::Ask>;
        Self { system, lookups: Lookups::new(ask, clock, patience) }
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let host = host.to_ascii_lowercase();
        let bare = host.strip_suffix('.').unwrap_or(&host);
        if let Some(addresses) = self.system.host(bare) {
            return Ok(addresses);
        }
        if is_localhost(bare) {
            return Ok(vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()]);
        }
        self.lookups.find(&host).await.map_err(io::Error::other)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

/// `localhost` and everything below it: no name server is to be asked (RFC 6761).
pub(super) fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    last.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::port::SystemClock;

    #[tokio::test]
    async fn what_the_hosts_file_says_is_asked_of_nobody_and_read_again_once_it_changes() {
        let path = std::env::temp_dir().join(format!("flare-hosts-{}", std::process::id()));
        fs::write(&path, "10.1.2.3 Billing  billing.internal # ours\n").unwrap();
        // No server listens there: whatever is asked fails.
        let config = HttpConfig::new().name_servers(["127.0.0.1:1".parse().unwrap()]);
        let clock = Arc::new(SystemClock::new());
        let names = Names::reading(path.to_str().unwrap(), &config, clock);
        let billing: IpAddr = [10, 1, 2, 3].into();
        for name in ["billing", "BILLING.internal", "billing.internal."] {
            assert_eq!(names.resolve(name).await.unwrap(), [billing], "{name}");
        }
        fs::write(&path, "10.1.2.4 billing and-more\n").unwrap();
        names.system.forget_when_it_was_checked();
        assert_eq!(names.resolve("billing").await.unwrap(), [IpAddr::from([10, 1, 2, 4])]);
        fs::remove_file(&path).unwrap();
    }

    #[tokio::test]
    async fn this_machine_s_own_name_needs_no_hosts_file() {
        let config = HttpConfig::new().name_servers(["127.0.0.1:1".parse().unwrap()]);
        let names = Names::reading("/nowhere", &config, Arc::new(SystemClock::new()));
        for name in ["localhost", "LOCALHOST.", "a.localhost"] {
            let found = names.resolve(name).await.unwrap();
            assert_eq!(found, [IpAddr::from(Ipv6Addr::LOCALHOST), Ipv4Addr::LOCALHOST.into()]);
        }
    }
}
