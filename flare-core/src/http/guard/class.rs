//! Takes an address; gives what it is for, by the registries of IANA and the habits of clouds, and
//! which IPv4 addresses it carries. A table and nothing else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Network;

/// What the guard's table says of `address` itself; none if it is publicly routable.
pub(super) fn special(address: IpAddr) -> Option<&'static str> {
    let table = if address.is_ipv4() { V4 } else { V6 };
    let found = table.iter().find(|(network, _)| network.contains(address));
    found.map(|(_, what)| *what).filter(|what| !what.is_empty())
}

/// Whether it is where a cloud hands out credentials or settings to its machines.
pub(super) fn is_metadata(address: IpAddr) -> bool {
    METADATA.iter().any(|network| network.contains(address))
}

/// All that dialling `address` may reach: the address itself and any IPv4 address inside it.
pub(super) fn faces(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let (own, carried) = match address {
        IpAddr::V4(_) => (Some(address), [None, None]),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            // The same address in other letters, not a second one.
            Some(v4) => (Some(IpAddr::V4(v4)), [None, None]),
            None => (Some(address), carried(v6)),
        },
    };
    own.into_iter().chain(carried.into_iter().flatten().map(IpAddr::V4))
}

/// The IPv4 addresses that an IPv6 address leads to.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        // Unspecified and loopback have names of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // IPv4-compatible; IPv4-translated (SIIT).
        [0, 0, 0, 0, 0, 0, g, h] | [0, 0, 0, 0, 0xffff, 0, g, h] => [Some(pair(g, h)), None],
        // NAT64: the well-known prefix, and the local one as everybody cuts it.
        [0x64, 0xff9b, 0, 0, 0, 0, g, h] | [0x64, 0xff9b, 1, _, _, _, g, h] => {
            [Some(pair(g, h)), None]
        }
        // 6to4.
        [0x2002, b, c, ..] => [Some(pair(b, c)), None],
        // Teredo: its server, and the client's address with all bits turned.
        [0x2001, 0, c, d, _, _, g, h] => [Some(pair(c, d)), Some(pair(!g, !h))],
        // ISATAP, in any network.
        [_, _, _, _, 0 | 0x200, 0x5efe, g, h] => [Some(pair(g, h)), None],
        _ => [None, None],
    }
}

const METADATA: &[Network] = &[
    // AWS, Azure, Google, Oracle, DigitalOcean, Hetzner, OpenStack …
    Network::v4(169, 254, 169, 254, 32),
    // Credentials of AWS's containers: ECS, EKS.
    Network::v4(169, 254, 170, 2, 32),
    Network::v4(169, 254, 170, 23, 32),
    Network::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128),
    Network::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128),
    // Google, over IPv6.
    Network::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
    // Azure's wire server: looks public, is not.
    Network::v4(168, 63, 129, 16, 32),
    // Alibaba, Tencent, Oracle Classic, Scaleway.
    Network::v4(100, 100, 100, 200, 32),
    Network::v4(169, 254, 0, 23, 32),
    Network::v4(192, 0, 0, 192, 32),
    Network::v4(169, 254, 42, 42, 32),
    Network::v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128),
];

/// The first network that contains an address tells.
const V4: &[(Network, &str)] = &[
    (Network::v4(0, 0, 0, 0, 32), "the unspecified address"),
    (Network::v4(0, 0, 0, 0, 8), "an address of this network (RFC 1122)"),
    (Network::v4(10, 0, 0, 0, 8), "a private address (RFC 1918)"),
    (Network::v4(100, 64, 0, 0, 10), "a shared address behind carrier-grade NAT (RFC 6598)"),
    (Network::v4(127, 0, 0, 0, 8), "a loopback address"),
    (Network::v4(169, 254, 0, 0, 16), "a link-local address"),
    (Network::v4(172, 16, 0, 0, 12), "a private address (RFC 1918)"),
    (Network::v4(192, 0, 0, 0, 24), "an address for protocol assignments (RFC 6890)"),
    (Network::v4(192, 0, 2, 0, 24), "a documentation address"),
    (Network::v4(192, 88, 99, 0, 24), "an address of the former 6to4 relays"),
    (Network::v4(192, 168, 0, 0, 16), "a private address (RFC 1918)"),
    (Network::v4(198, 18, 0, 0, 15), "an address for benchmarks (RFC 2544)"),
    (Network::v4(198, 51, 100, 0, 24), "a documentation address"),
    (Network::v4(203, 0, 113, 0, 24), "a documentation address"),
    (Network::v4(224, 0, 0, 0, 4), "a multicast address"),
    (Network::v4(255, 255, 255, 255, 32), "the broadcast address"),
    (Network::v4(240, 0, 0, 0, 4), "a reserved address"),
];

const PUBLIC: &str = "";

/// The first network that contains an address tells; what is in none of them is reserved.
const V6: &[(Network, &str)] = &[
    (Network::v6([0; 8], 128), "the unspecified address"),
    (Network::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (Network::v6([0; 8], 96), "an IPv4-compatible address (deprecated)"),
    (Network::v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), PUBLIC),
    (Network::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a local NAT64 address (RFC 8215)"),
    (Network::v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "a discard-only address (RFC 6666)"),
    // Teredo is judged by what it carries, as 6to4 is.
    (Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), PUBLIC),
    (Network::v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "an address for benchmarks (RFC 5180)"),
    (Network::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address for protocol assignments"),
    (Network::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation address"),
    (Network::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation address"),
    (Network::v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3), PUBLIC),
    (Network::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a unique local address (RFC 4193)"),
    (Network::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (Network::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a site-local address (deprecated)"),
    (Network::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
    (Network::v6([0; 8], 0), "a reserved address"),
];
