//! Takes the files in which a machine says how names are looked up; gives what they say now. They
//! are read again once they have changed, which is looked at every few seconds at most: both are
//! small and local, so that takes no thread for blocking calls.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hickory_resolver::system_conf::read_system_conf;
use tracing::{info, warn};

use super::ask::{Ask, FoundName, Unresolved};
use super::servers::Servers;
use crate::port::Clock;
use crate::tools::lock;

/// Where a machine keeps names of its own.
pub(super) const HOSTS: &str =
    if cfg!(windows) { r"C:\Windows\System32\drivers\etc\hosts" } else { "/etc/hosts" };
/// Where it says whom to ask. Elsewhere than on Unix there is none: it is asked once, at the start.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How often is looked whether the files have changed.
const CHECKED: Duration = Duration::from_secs(5);

/// What the machine says about names.
pub(super) struct System {
    hosts_file: PathBuf,
    named: Vec<SocketAddr>,
    patience: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<SystemState>,
}

struct SystemState {
    hosts: HashMap<String, Vec<IpAddr>>,
    servers: Arc<Servers>,
    hosts_stamp: FileStamp,
    servers_stamp: FileStamp,
    /// When they were last looked at.
    checked: Option<Duration>,
}

/// By what a change of a file is noticed.
type FileStamp = Option<(SystemTime, u64)>;

impl System {
    /// Reads the files. One that cannot be read is as good as empty, and is told of.
    pub(super) fn read(
        hosts_file: PathBuf,
        named: Vec<SocketAddr>,
        patience: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let state = SystemState {
            hosts_stamp: stamp(&hosts_file),
            servers_stamp: stamp(Path::new(RESOLV_CONF)),
            hosts: read_hosts(&hosts_file),
            servers: Arc::new(read_servers(&named, patience, &clock)),
            checked: Some(clock.monotonic()),
        };
        Self { hosts_file, named, patience, clock, state: Mutex::new(state) }
    }

    /// The addresses the hosts file has for a name in lower case.
    pub(super) fn host(&self, name: &str) -> Option<Vec<IpAddr>> {
        self.current().hosts.get(name).cloned()
    }

    /// What the files say now.
    fn current(&self) -> MutexGuard<'_, SystemState> {
        let now = self.clock.monotonic();
        let mut state = lock(&self.state);
        if state.checked.is_some_and(|checked| now.saturating_sub(checked) < CHECKED) {
            return state;
        }
        state.checked = Some(now);
        let hosts_stamp = stamp(&self.hosts_file);
        if hosts_stamp != state.hosts_stamp {
            state.hosts_stamp = hosts_stamp;
            state.hosts = read_hosts(&self.hosts_file);
        }
        let servers_stamp = stamp(Path::new(RESOLV_CONF));
        if servers_stamp != state.servers_stamp {
            state.servers_stamp = servers_stamp;
            state.servers = Arc::new(read_servers(&self.named, self.patience, &self.clock));
        }
        state
    }

    /// Has the files looked at the next time.
    #[cfg(test)]
    pub(super) fn forget_when_it_was_checked(&self) {
        let mut state = lock(&self.state);
        state.checked = None;
    }
}

#[async_trait]
impl Ask for System {
    async fn ask(&self, host: &str) -> Result<FoundName, Unresolved> {
        let servers = Arc::clone(&self.current().servers);
        servers.ask(host).await
    }
}

fn stamp(path: &Path) -> FileStamp {
    let about = fs::metadata(path).ok()?;
    Some((about.modified().ok()?, about.len()))
}

fn read_hosts(path: &Path) -> HashMap<String, Vec<IpAddr>> {
    match fs::read(path) {
        Ok(bytes) => parse_hosts(&String::from_utf8_lossy(&bytes)),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                warn!(path = %path.display(), %error, "the hosts file cannot be read");
            }
            HashMap::new()
        }
    }
}

/// Each name in lower case with its addresses, in order (hosts(5)).
fn parse_hosts(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
        for name in words {
            let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
            let addresses = hosts.entry(name).or_default();
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    hosts
}

fn read_servers(named: &[SocketAddr], patience: Duration, clock: &Arc<dyn Clock>) -> Servers {
    let machine = read_system_conf();
    if let (Err(error), true) = (&machine, named.is_empty()) {
        info!(%error, "no name server is configured: names are found in the hosts file alone");
    }
    Servers::new(named, machine, patience, Arc::clone(clock))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_is_read_as_it_is_written() {
        let text = "\u{feff}# ours\n127.0.0.1\tLocalHost loopback.\n::1 localhost # both\n\n\
                    10.0.0.1 db db\nnonsense db\n10.0.0.2";
        let hosts = parse_hosts(text);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(hosts["localhost"], [address("127.0.0.1"), address("::1")]);
        assert_eq!(hosts["loopback"], [address("127.0.0.1")]);
        assert_eq!(hosts["db"], [address("10.0.0.1")]);
        assert_eq!(hosts.len(), 3);
    }
}
