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
//! Whoever may subscribe chooses where Flare connects. Unless told otherwise Flare therefore
//! connects to publicly routable addresses only: loopback, private, link-local, shared, reserved,
//! documentation and multicast networks, and the metadata services of clouds, are refused.
//!
//! - It judges the address that is really dialled. A name is looked up once per connection, and
//!   what passes the guard is what is dialled, so a name that resolves differently a moment later
//!   gains nothing. A literal address is judged as it will be dialled, however it was written
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
//! # What goes over the wire
//!
//! Method, path, query, headers and body as given, plus `host`, `content-length` and, unless given,
//! `user-agent: flare/<version>` and `accept: */*`. Header names are written in lower case. No
//! chunks, no compression, no cookies, no referer, no redirects, no proxy from the environment.

mod answer;
mod client;
mod config;
mod deadline;
mod delivery;
mod failure;
mod guard;
mod request;
mod resolver;
mod retry_after;
mod tls;

pub use config::HttpConfig;
pub use delivery::HttpDelivery;
pub use guard::{Guard, Network, Refusal, Rule};
pub use resolver::{Resolver, SystemResolver};
