//! Takes a name's addresses; gives them in the order in which to dial them.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

/// IPv6 first where this machine can reach it, else last; within a family as the server said. This
/// is what `getaddrinfo` does where it matters (RFC 6724, rules 1 and 6).
pub(super) fn ordered(
    mut addresses: Vec<IpAddr>,
    is_reachable: impl Fn(Ipv6Addr) -> bool,
) -> Vec<IpAddr> {
    let of_both = addresses.iter().any(IpAddr::is_ipv4) && addresses.iter().any(IpAddr::is_ipv6);
    if of_both {
        addresses.sort_by_cached_key(|address| match address {
            IpAddr::V6(v6) if is_reachable(*v6) => 0,
            IpAddr::V4(_) => 1,
            IpAddr::V6(_) => 2,
        });
    }
    addresses
}

/// Whether there is a way to an address. Nothing is sent: a datagram socket is only told where its
/// datagrams would go.
pub(super) fn has_route(address: Ipv6Addr) -> bool {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
    socket.and_then(|socket| socket.connect(SocketAddr::new(address.into(), 443))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn ipv6_is_first_where_there_is_a_way() {
        let mixed = addresses(&["192.0.2.2", "2001:db8::2", "192.0.2.1", "2001:db8::1"]);
        let with = addresses(&["2001:db8::2", "2001:db8::1", "192.0.2.2", "192.0.2.1"]);
        let without = addresses(&["192.0.2.2", "192.0.2.1", "2001:db8::2", "2001:db8::1"]);
        assert_eq!(ordered(mixed.clone(), |_| true), with);
        assert_eq!(ordered(mixed, |_| false), without);
    }

    #[test]
    fn one_family_is_left_as_it_is() {
        let one = addresses(&["2001:db8::2", "2001:db8::1"]);
        let asked = std::cell::Cell::new(false);
        let kept = ordered(one.clone(), |_| asked.replace(true));
        assert_eq!((kept, asked.get()), (one, false));
    }
}
