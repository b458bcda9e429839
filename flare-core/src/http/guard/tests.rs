//! The guard's table, case by case.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn refusal(guard: &Guard, text: &str) -> String {
    guard.check(address(text)).expect_err(text).to_string()
}

#[test]
fn by_default_only_public_addresses_pass() {
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "2000::1",
        "2606:4700:4700::1111",
        "2a00:1450:4001:830::200e",
        "2001:200::1",
        "3ffe::1",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2001:0:808:808:0:0:f7f7:f7f7",
    ] {
        assert_eq!(Guard::default().check(address(text)), Ok(()), "{text}");
    }
}

#[test]
fn everything_else_is_refused_by_name() {
    for (text, rule) in [
        ("0.0.0.0", "the unspecified address"),
        ("0.1.2.3", "this network"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("100.64.0.0", "carrier-grade NAT"),
        ("100.127.255.255", "carrier-grade NAT"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.0.1", "link-local"),
        ("169.254.169.253", "link-local"),
        ("172.16.0.0", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "protocol assignments"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4 relays"),
        ("192.168.0.1", "private"),
        ("198.18.0.1", "benchmarks"),
        ("198.19.255.255", "benchmarks"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::2", "IPv4-compatible"),
        ("::127.0.0.1", "IPv4-compatible"),
        ("::8.8.8.8", "IPv4-compatible"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("::ffff:0.0.0.0", "unspecified"),
        ("::ffff:0:10.0.0.1", "reserved"),
        ("64:ff9b::10.0.0.1", "leads to 10.0.0.1, which is a private"),
        ("64:ff9b::127.0.0.1", "leads to 127.0.0.1, which is a loopback"),
        ("64:ff9b::169.254.169.254", "leads to 169.254.169.254, which is a cloud metadata"),
        ("64:ff9b:1::8.8.8.8", "local NAT64"),
        ("64:ff9b:1:ffff::10.0.0.1", "local NAT64"),
        ("64:ff9b:2::1", "reserved"),
        ("100::1", "discard-only"),
        ("2001:1::1", "protocol assignments"),
        ("2001:2::1", "benchmarks"),
        ("2001:20::1", "protocol assignments"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("2002:a00:1::1", "leads to 10.0.0.1, which is a private"),
        ("2002:7f00:1::", "leads to 127.0.0.1, which is a loopback"),
        ("2002:a9fe:a9fe::1", "leads to 169.254.169.254, which is a cloud metadata"),
        ("2001:0:a00:1:0:0:f7f7:f7f7", "leads to 10.0.0.1"),
        ("2001:0:808:808:0:0:80ff:fffe", "leads to 127.0.0.1"),
        ("2a00:1450::5efe:10.0.0.1", "leads to 10.0.0.1"),
        ("2a00:1450::200:5efe:127.0.0.1", "leads to 127.0.0.1"),
        ("4000::1", "reserved"),
        ("5f00::1", "reserved"),
        ("fc00::1", "unique local"),
        ("fdff:ffff::1", "unique local"),
        ("fe80::1", "link-local"),
        ("febf::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("ffff:ffff::1", "multicast"),
    ] {
        let message = refusal(&Guard::default(), text);
        assert!(message.contains(rule), "{text}: {message}");
        assert!(message.starts_with(&address(text).to_string()), "{text}: {message}");
        assert!(message.contains("Guard::allow"), "{text}: {message}");
    }
}

const METADATA: [&str; 12] = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "168.63.129.16",
    "100.100.100.200",
    "169.254.0.23",
    "192.0.0.192",
    "169.254.42.42",
    "fd00:42::42",
];

#[test]
fn a_metadata_address_is_opened_only_by_its_own_name() {
    let open = Guard::default().allow("0.0.0.0/0").unwrap().allow("::/0").unwrap();
    for text in METADATA {
        for guard in [&Guard::default(), &open] {
            let message = refusal(guard, text);
            assert!(message.contains("is a cloud metadata address"), "{message}");
            assert!(message.contains(&format!("exactly {text}/")), "{message}");
        }
        let named = Guard::default().allow(text).unwrap();
        assert_eq!(named.check(address(text)), Ok(()), "{text}");
    }
    let wider = Guard::default().allow("169.254.169.254/31").unwrap();
    assert!(wider.check(address("169.254.169.254")).is_err());
    assert!(wider.check(address("169.254.169.255")).is_ok());
    let named = Guard::default().allow("169.254.169.254").unwrap();
    assert!(named.check(address("::ffff:169.254.169.254")).is_ok());
    assert!(named.check(address("64:ff9b::169.254.169.254")).is_ok());
    assert!(named.check(address("169.254.169.253")).is_err());
}

#[test]
fn what_is_allowed_passes_and_no_more() {
    let guard = Guard::default().allow("10.0.0.0/8").unwrap().allow("::1").unwrap();
    for text in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::", "::1"] {
        assert_eq!(guard.check(address(text)), Ok(()), "{text}");
    }
    for text in ["127.0.0.1", "192.168.0.1", "::2", "64:ff9b::127.0.0.1", "::10.0.0.1"] {
        assert!(guard.check(address(text)).is_err(), "{text}");
    }
    // What carries an address passes only together with it.
    let guard = Guard::default().allow("64:ff9b:1::/48").unwrap();
    assert!(guard.check(address("64:ff9b:1::8.8.8.8")).is_ok());
    assert!(refusal(&guard, "64:ff9b:1::10.0.0.1").contains("leads to 10.0.0.1"));
}

#[test]
fn deny_wins_however_specific_the_allowance() {
    let guard = Guard::default().allow("10.1.2.3").unwrap().deny("10.0.0.0/8").unwrap();
    let message = refusal(&guard, "10.1.2.3");
    assert!(message.starts_with("10.1.2.3 is in 10.0.0.0/8, which Guard::deny refuses"));
    let guard = Guard::default().deny("8.8.8.0/24").unwrap().deny("2606:4700::/32").unwrap();
    assert!(guard.check(address("8.8.4.4")).is_ok());
    for text in ["8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700::1"] {
        assert!(refusal(&guard, text).contains("Guard::deny"), "{text}");
    }
    let guard = Guard::default().allow("169.254.169.254").unwrap().deny("169.254.0.0/16").unwrap();
    assert!(guard.check(address("169.254.169.254")).is_err());
}

#[test]
fn a_refusal_can_be_read_by_machines() {
    let refusal = Guard::default().check(address("64:ff9b::10.0.0.1")).unwrap_err();
    assert_eq!(refusal.address(), address("64:ff9b::10.0.0.1"));
    assert_eq!(refusal.judged(), address("10.0.0.1"));
    assert!(matches!(refusal.rule(), Rule::NotPublic(what) if what.contains("private")));
}

#[test]
fn a_wrong_network_names_the_list_it_was_for() {
    assert_eq!(Guard::default().allow("10.0.0.0/40").unwrap_err().field(), "allow");
    assert_eq!(Guard::default().deny("host").unwrap_err().field(), "deny");
}

proptest! {
    /// The standard library's opinion, where it has one, is never more careful than ours.
    #[test]
    fn what_the_standard_library_knows_to_be_special_is_refused(bits: u32) {
        let v4 = std::net::Ipv4Addr::from_bits(bits);
        let special = v4.is_private() || v4.is_loopback() || v4.is_link_local()
            || v4.is_broadcast() || v4.is_documentation() || v4.is_multicast()
            || v4.is_unspecified();
        prop_assert!(!special || Guard::default().check(v4.into()).is_err());
    }

    /// An IPv4 address is judged the same in every dress.
    #[test]
    fn a_carried_address_never_passes_where_it_would_not_alone(bits: u32, rest: [u16; 3]) {
        let v4 = std::net::Ipv4Addr::from_bits(bits);
        let alone = Guard::default().check(v4.into());
        prop_assert_eq!(Guard::default().check(v4.to_ipv6_mapped().into()).is_ok(), alone.is_ok());
        let [g, h] = [(bits >> 16) as u16, bits as u16];
        let nat64 = std::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, g, h);
        prop_assert_eq!(Guard::default().check(nat64.into()).is_ok(), alone.is_ok());
        let sixtofour = std::net::Ipv6Addr::new(0x2002, g, h, rest[0], 1, rest[1], rest[2], 1);
        prop_assert!(alone.is_ok() || Guard::default().check(sixtofour.into()).is_err());
    }

    #[test]
    fn whatever_the_address_the_guard_answers(bits: u128) {
        let v6 = std::net::Ipv6Addr::from_bits(bits);
        if let Err(refusal) = Guard::default().check(v6.into()) {
            prop_assert!(refusal.to_string().contains("Guard::allow"));
        }
    }
}
