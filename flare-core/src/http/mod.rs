//! Takes requests of the delivery port; gives them to clients over HTTP/1.1, one connection pool
//! for all. Never retries, never follows, never dials an address the guard refuses.
//!
//! ```
//! use std::sync::Arc;
//! use flare_core::http::{Guard, HttpConfig, HttpDelivery};
//! use flare_core::port::SystemClock;
//!
//! let guard = Guard::default().allow("10.20.0.0/16")?;
//! let config = HttpConfig::new().guard(guard);
//! let delivery = HttpDelivery::new(config, Arc::new(SystemClock::new()))?;
//! # let _ = delivery;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The address guard
//!
//! A client that may subscribe chooses where Flare connects. Unless told otherwise Flare therefore
//! connects to publicly routable addresses only: loopback, private, link-local, shared, reserved,
//! documentation and multicast networks, and the metadata services of clouds, are refused.
//!
//! - It judges the address that is really dialled. The addresses of a name are judged anew for each
//!   connection, whether they were just looked up or are remembered, and what passes the guard is
//!   what is dialled, so a name that resolves differently a moment later gains nothing. A literal address is judged as it will be dialled, however it was written
//!   (`2130706433`, `0x7f.1` and `127.0.0.1.` are all 127.0.0.1).
//! - Of several addresses of a name only those that pass are dialled; if none passes, the attempt
//!   ends as [`FailureKind::Refused`](crate::port::FailureKind::Refused), with nothing sent, and
//!   says which address, which rule, and which setting would allow it.
//! - An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo, ISATAP)
//!   has to pass with both.
//! - [`Guard::allow`] opens networks or single addresses, [`Guard::deny`] closes more; deny always
//!   wins, however specific the allowance is.
//! - A metadata address is opened only by naming exactly that address: `169.254.0.0/16` does not
//!   open `169.254.169.254`, `169.254.169.254/32` does.
//! - Behind a [proxy](HttpConfig::proxy) the proxy is what is dialled. It is the operator's choice
//!   and not judged; the client's name is resolved by the proxy, out of our sight, so only literal
//!   addresses and `localhost` are judged then. Such a proxy needs a guard of its own.
//!
//! # Names
//!
//! Flare asks name servers itself and waits for none of them with a thread. `/etc/hosts` and
//! `/etc/resolv.conf` count (servers, search domains, `ndots`), and are read again within seconds
//! once they have changed; [`HttpConfig::name_servers`] names others. `localhost` is this machine.
//! Without any server names are found in the hosts file alone, and attempts say so.
//!
//! - Addresses are remembered for as long as their server says, at least a second and at most an
//!   hour; that there is no such name for at most a minute, a server's failure for a second.
//! - A name is looked up by one at a time, for all that want it, and 144 names at a time at most. Names
//!   that no server answers for have a few of these places to themselves after their first try: they
//!   delay neither names that resolve nor anything that is remembered.
//! - A name that is not found is [`FailureKind::Dns`](crate::port::FailureKind::Dns), with nothing
//!   sent, and says what the server said.
//! - Other sources of `nsswitch.conf` (LDAP, mDNS, a host's own) are not asked. Who needs them takes
//!   [`SystemResolver`], which is the C library's `getaddrinfo` on tokio's threads for blocking
//!   calls: names that do not resolve then hold threads of the host.
//!
//! # What goes over the wire
//!
//! Method, path, query, headers and body as given, plus `host`, `content-length` and, unless given,
//! `user-agent: flare/<version>` and `accept: */*`. Header names are written in lower case. No
//! chunks, no compression, no cookies, no referer, no redirects, no proxy from the environment.

mod answer;
mod attempt_scope;
mod client;
mod config;
mod deadline;
mod delivery;
mod failure;
mod guard;
mod names;
mod request;
mod resolver;
mod retry_after;
mod sessions;
mod tls;

pub use config::HttpConfig;
pub use delivery::HttpDelivery;
pub use guard::{Guard, Network, Refusal, Rule};
pub use resolver::{Resolver, SystemResolver};
