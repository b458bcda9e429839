//! A network as people write it (`10.0.0.0/8`, `::1`), and whether an address lies within.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::model::Invalid;

/// A range of addresses: everything that shares the first bits, as many as the prefix says.
///
/// ```
/// use flare_core::http::Network;
///
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains("10.1.2.3".parse()?));
/// assert!("10.1.2.3/8".parse::<Network>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

impl Network {
    /// Whether the address lies within. An IPv4-mapped IPv6 address counts as the IPv4 one.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether the network is this one address and no other.
    pub fn is_only(&self, address: IpAddr) -> bool {
        self.0 == IpNet::from(address.to_canonical())
    }

    pub(super) const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)))
    }

    pub(super) const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self(IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)))
    }
}

impl FromStr for Network {
    type Err = Invalid;

    /// Reads a network or a single address. The refusal has an empty field.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return refuse(format!(
                "{text:?} is not an address or a network like \"10.0.0.0/8\" or \"fd00::/8\""
            ));
        };
        let single = IpNet::from(address);
        let network = match prefix {
            None => Some(single),
            Some(prefix) => parse_prefix(prefix).and_then(|it| IpNet::new(address, it).ok()),
        };
        let Some(network) = network else {
            let most = single.max_prefix_len();
            return refuse(format!("{text:?} must have a prefix length from 0 to {most}"));
        };
        if network.trunc() != network {
            let network = network.trunc();
            return refuse(format!(
                "{text:?} has bits set behind its prefix; the network is \"{network}\""
            ));
        }
        Ok(Self(canonical(network)))
    }
}

fn parse_prefix(text: &str) -> Option<u8> {
    // `u8` would also read "+8".
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A part of `::ffff:0:0/96` is a network of IPv4.
fn canonical(network: IpNet) -> IpNet {
    let v4 = match network {
        IpNet::V6(it) => it.addr().to_ipv4_mapped().zip(it.prefix_len().checked_sub(96)),
        IpNet::V4(_) => None,
    };
    v4.and_then(|(first, prefix)| Ipv4Net::new(first, prefix).ok()).map_or(network, IpNet::V4)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn refuse<T>(reason: String) -> Result<T, Invalid> {
    Err(Invalid::new("", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn reads_networks_and_single_addresses() {
        for (text, written) in [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("::/0", "::/0"),
            ("fd00::/8", "fd00::/8"),
            ("::1", "::1/128"),
            ("FE80::/10", "fe80::/10"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:127.0.0.1", "127.0.0.1/32"),
        ] {
            assert_eq!(network(text).to_string(), written, "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, reason) in [
            ("", "is not an address or a network"),
            ("localhost", "is not an address or a network"),
            ("10.0.0/8", "is not an address or a network"),
            ("010.0.0.0/8", "is not an address or a network"),
            (" 10.0.0.0/8", "is not an address or a network"),
            ("10.0.0.0/", "from 0 to 32"),
            ("10.0.0.0/33", "from 0 to 32"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("10.0.0.0/8/8", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("::/999", "from 0 to 128"),
            ("10.1.2.3/8", "the network is \"10.0.0.0/8\""),
            ("fd00::1/8", "the network is \"fd00::/8\""),
        ] {
            let refusal = text.parse::<Network>().unwrap_err();
            assert!(refusal.reason().contains(reason), "{text}: {refusal}");
            assert!(refusal.reason().contains(&format!("{text:?}")), "{text}: {refusal}");
        }
    }

    #[test]
    fn contains_its_own_kind_only() {
        for (text, address, contained) in [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "ffff::1", true),
            ("::/0", "127.0.0.1", false),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("fe80::/10", "febf::1", true),
            ("fe80::/10", "fec0::1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(network(text).contains(address), contained, "{text} {address}");
        }
    }

    #[test]
    fn is_only_one_address() {
        let address = "169.254.169.254".parse().unwrap();
        assert!(network("169.254.169.254").is_only(address));
        assert!(network("169.254.169.254/32").is_only("::ffff:169.254.169.254".parse().unwrap()));
        assert!(!network("169.254.169.254/31").is_only(address));
        assert!(!network("169.254.169.253").is_only(address));
    }
}
