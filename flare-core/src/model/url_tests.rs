//! Every rule of a document's URL, one test each; then arbitrary text.

use proptest::prelude::*;

use super::DocumentUrl;
use crate::model::normal;

fn url(text: &str) -> DocumentUrl {
    DocumentUrl::parse(text).unwrap_or_else(|invalid| panic!("{text:?}: {invalid}"))
}

#[test]
fn http_and_https_are_urls_and_differ() {
    assert_eq!(url("http://h/a").as_str(), "http://h/a");
    assert_eq!(url("https://h/a").as_str(), "https://h/a");
    assert_ne!(url("http://h/a"), url("https://h/a"));
}

#[test]
fn scheme_and_host_are_lower_cased_and_the_path_is_not() {
    assert_eq!(url("HtTpS://EXAMPLE.Com/Users/A").as_str(), "https://example.com/Users/A");
}

#[test]
fn the_default_port_is_dropped() {
    assert_eq!(url("http://h:80/a").as_str(), "http://h/a");
    assert_eq!(url("https://h:443/a").as_str(), "https://h/a");
    assert_eq!(url("http://h:/a").as_str(), "http://h/a");
    assert_eq!(url("http://h:080/a").as_str(), "http://h/a");
}

#[test]
fn other_ports_stay_without_leading_zeros() {
    assert_eq!(url("http://h:443/a").as_str(), "http://h:443/a");
    assert_eq!(url("https://h:80/a").as_str(), "https://h:80/a");
    assert_eq!(url("http://h:08080/a").as_str(), "http://h:8080/a");
    assert_eq!(url("http://h:65535/a").as_str(), "http://h:65535/a");
}

#[test]
fn unreserved_characters_are_decoded() {
    assert_eq!(url("http://h/%7euser/%41%2D%2e%5F%30").as_str(), "http://h/~user/A-._0");
}

#[test]
fn reserved_characters_stay_encoded_in_upper_case_hex() {
    assert_eq!(url("http://h/a%2fb%3f%c3%a9").as_str(), "http://h/a%2Fb%3F%C3%A9");
    assert_ne!(url("http://h/a%2Fb"), url("http://h/a/b"));
    assert_ne!(url("http://h/a%21"), url("http://h/a!"));
}

#[test]
fn an_escaped_percent_sign_is_decoded_once_at_most() {
    assert_eq!(url("http://h/%2541").as_str(), "http://h/%2541");
}

#[test]
fn hosts_are_normalised_like_names_and_addresses() {
    assert_eq!(url("http://ex%41mple.com/a").as_str(), "http://example.com/a");
    assert_eq!(url("http://127.0.0.1:81/a").as_str(), "http://127.0.0.1:81/a");
    assert_eq!(url("http://[2001:DB8:0:0:0:0:0:1]:80/a").as_str(), "http://[2001:db8::1]/a");
    assert_eq!(url("http://[::1]:8080/a").authority(), "http://[::1]:8080");
    assert_eq!(url("http://[::1]:8080/a").path(), "/a");
}

#[test]
fn empty_and_dot_segments_are_kept() {
    for text in ["http://h/a/../b", "http://h/a/./b", "http://h/a//b", "http://h/a/", "http://h//"]
    {
        assert_eq!(url(text).as_str(), text);
    }
    assert_eq!(url("http://h/a/%2e%2E/b").as_str(), "http://h/a/../b");
    assert_eq!(url("http://h/%2e").as_str(), "http://h/.");
}

#[test]
fn the_parts_add_up_to_the_whole() {
    let url = url("https://Example.com:8443/a/b%20c//d/");
    assert_eq!(url.authority(), "https://example.com:8443");
    assert_eq!(url.path(), "/a/b%20c//d/");
    assert_eq!(url.segments().collect::<Vec<_>>(), ["a", "b%20c", "", "d", ""]);
    assert_eq!(format!("{}{}", url.authority(), url.path()), url.to_string());
}

#[test]
fn a_url_is_at_most_2048_bytes_long() {
    let longest = format!("http://h/{}", "a".repeat(2_048 - 9));
    assert_eq!(url(&longest).as_str().len(), DocumentUrl::MAX_BYTES);
    let invalid = DocumentUrl::parse(&format!("{longest}a")).unwrap_err();
    assert_eq!((invalid.field(), invalid.reason()), ("url", "must be at most 2,048 bytes long"));
}

#[test]
fn the_limit_holds_for_the_normal_form_too() {
    let start = "http://[::ffff:7f00:1]/";
    let grows = format!("{start}{}", "a".repeat(2_048 - start.len()));
    assert_eq!(grows.len(), 2_048);
    assert!(DocumentUrl::parse(&grows).unwrap_err().reason().contains("2,048 bytes"));
}

#[test]
fn wrong_urls_are_refused_with_the_reason() {
    let wrong = [
        ("", "must not be empty"),
        ("/users/1", "absolute URL"),
        ("//h/a", "absolute URL"),
        ("users/1", "absolute URL"),
        ("ftp://h/a", "must be http or https, not \"ftp\""),
        ("file:///a", "must be http or https"),
        ("localhost:8080/a", "must be http or https, not \"localhost\""),
        ("http:/h/a", "must have a host"),
        ("http:h/a", "must have a host"),
        ("http:///a", "must have a host"),
        ("http://:80/a", "must have a host"),
        ("http://", "must have a host"),
        ("http://h", "must have a path"),
        ("http://h/", "must have a path"),
        ("http://h:80", "must have a path"),
        ("http://user@h/a", "user or password"),
        ("http://user:password@h/a", "user or password"),
        ("http://@h/a", "user or password"),
        ("http://h/a?b=c", "query"),
        ("http://h/a?", "query"),
        ("http://h?/a", "query"),
        ("http://h/a#b", "fragment"),
        ("http://h/a#", "fragment"),
        ("http://h:65536/a", "port of at most 65535"),
        ("http://h:99999999999999999999/a", "port of at most 65535"),
        ("http://h:x/a", "holds 'x'"),
        ("http://h:-1/a", "holds '-'"),
        ("http://[1:2]/a", "IPv6"),
        ("http://[::g]/a", "holds 'g'"),
        ("http://[::1/a", "holds"),
        ("http://h/caf\u{e9}", "holds 'é': non-ASCII characters must be percent-encoded"),
        ("http://h\u{fc}/a", "percent-encoded"),
        ("http://h/a b", "holds ' '"),
        (" http://h/a", "holds ' '"),
        ("http://h/a\n", "holds '\\n'"),
        ("http://h/{id}", "holds '{'"),
        ("http://h/a\\b", "holds '\\\\'"),
        ("http://h/a|b", "holds '|'"),
        ("http://h/%", "two hex digits"),
        ("http://h/%4", "two hex digits"),
        ("http://h/%zz", "two hex digits"),
    ];
    for (text, reason) in wrong {
        match DocumentUrl::parse(text) {
            Ok(url) => panic!("{text:?} was accepted as {url}"),
            Err(invalid) => {
                assert_eq!(invalid.field(), "url", "{text:?}");
                assert!(invalid.reason().contains(reason), "{text:?}: {invalid}");
            }
        }
    }
}

#[test]
fn json_is_the_text_and_is_checked_when_read() {
    let json = serde_json::to_string(&url("HTTP://H:80/%7e")).unwrap();
    assert_eq!(json, "\"http://h/~\"");
    let read: DocumentUrl = serde_json::from_str("\"HTTP://H:80/%7e\"").unwrap();
    assert_eq!(read, url("http://h/~"));
    let error = serde_json::from_str::<DocumentUrl>("\"http://h/a?b\"").unwrap_err();
    assert!(error.to_string().contains("url: must not have a query"), "{error}");
    assert!(serde_json::from_str::<DocumentUrl>("1").is_err());
}

#[test]
fn a_url_reads_from_text_and_shows_as_text() {
    let parsed: DocumentUrl = "http://H/a".parse().unwrap();
    assert_eq!(parsed.to_string(), "http://h/a");
    assert_eq!(parsed.as_ref(), "http://h/a");
    assert!("http://h".parse::<DocumentUrl>().is_err());
}

/// Text that is often a URL, and often just not.
fn near_urls() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        8 => "[a-zA-Z0-9._~!$&'()*+,;=:@-]{0,4}",
        8 => "%[0-9a-fA-F]{2}",
        8 => Just("/".to_owned()),
        4 => Just("..".to_owned()),
        4 => Just("%2e".to_owned()),
        1 => Just("%".to_owned()),
        1 => Just("?".to_owned()),
    ];
    let start = prop_oneof![
        Just("http://h/"),
        Just("HTTPS://Ex%41mple.COM:443/"),
        Just("http://[::FFFF:7f00:1]:080/"),
        Just("http://[v1.A]/"),
        Just("http://%c3%89/"),
        Just("http://"),
    ];
    (start, prop::collection::vec(part, 0..8))
        .prop_map(|(start, parts)| start.to_owned() + &parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>()) {
        let _ = DocumentUrl::parse(&text);
    }

    #[test]
    fn any_bytes_after_a_host_are_parsed_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = DocumentUrl::parse(&format!("http://h/{}", String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn the_normal_form_is_its_own_normal_form(text in near_urls()) {
        if let Ok(url) = DocumentUrl::parse(&text) {
            let again = DocumentUrl::parse(url.as_str());
            prop_assert_eq!(again.as_ref().map(DocumentUrl::as_str), Ok(url.as_str()));
            let (authority, path) = (url.authority(), url.path());
            prop_assert_eq!(format!("{authority}{path}"), url.as_str());
            prop_assert!(path.starts_with('/') && !authority.ends_with('/'));
        }
    }

    #[test]
    fn spellings_of_one_url_are_equal(path in "[a-zA-Z0-9._~-]{1,8}", upper in any::<bool>()) {
        let encoded: String = path.bytes().map(|byte| {
            if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") }
        }).collect();
        let plain = url(&format!("http://example.com/{path}"));
        prop_assert_eq!(&plain, &url(&format!("HTTP://EXAMPLE.com:80/{encoded}")));
        prop_assert_eq!(plain.bucket(), url(&format!("http://Example.Com:/{encoded}")).bucket());
    }

    #[test]
    fn a_segment_fits_a_wildcard_iff_it_has_a_value(bytes in prop::collection::vec(
        prop_oneof![any::<u8>(), Just(0xC3), Just(0xA9), Just(0xF0), Just(0x9F), 0x80..=0xBF_u8], 0..7
    ), plain in any::<u8>()) {
        let mut segment: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
        if plain % 2 == 0 && segment.len() >= 3 {
            segment.insert(usize::from(plain) % (segment.len() / 3) * 3, 'x');
        }
        prop_assert_eq!(normal::fits_wildcard(&segment), normal::wildcard_value(&segment).is_some());
    }
}
