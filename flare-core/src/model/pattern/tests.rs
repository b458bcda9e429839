//! Every rule of an endpoint, one test each; then arbitrary text.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Endpoint, Params};
use crate::model::DocumentUrl;

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap_or_else(|invalid| panic!("{text:?}: {invalid}"))
}

fn matched(pattern: &str, url: &str) -> Option<Params> {
    endpoint(pattern).matches(&DocumentUrl::parse(url).unwrap())
}

fn value(pattern: &str, url: &str, name: &str) -> Option<String> {
    matched(pattern, url)?.get(name).map(str::to_owned)
}

fn conflict(one: &str, other: &str) -> bool {
    endpoint(one).conflict_key() == endpoint(other).conflict_key()
}

#[test]
fn outer_space_is_trimmed() {
    assert_eq!(endpoint(" \t\nhttp://h/a/{id}\r\n ").as_str(), "http://h/a/{id}");
}

#[test]
fn space_inside_braces_is_trimmed() {
    assert_eq!(endpoint("http://h/{ a }/{\tb}/{c  }").as_str(), "http://h/{a}/{b}/{c}");
}

#[test]
fn one_trailing_slash_is_dropped() {
    assert_eq!(endpoint("http://h/a/{id}/"), endpoint("http://h/a/{id}"));
    assert_eq!(endpoint(" http://h/{id}/b/ ").as_str(), "http://h/{id}/b");
    assert!(Endpoint::parse("http://h/a/{id}//").unwrap_err().reason().contains("empty"));
}

#[test]
fn encoded_braces_are_braces() {
    for text in ["%7Bid%7D", "%7bid%7d", "%7Bid%7d", "{id%7D", "%7B id }"] {
        assert_eq!(endpoint(&format!("http://h/a/{text}")).as_str(), "http://h/a/{id}", "{text}");
    }
}

#[test]
fn scheme_and_host_are_lower_cased_and_path_and_names_are_not() {
    assert_eq!(endpoint("HTTPS://Ex.Com/A/{Id}").as_str(), "https://ex.com/A/{Id}");
}

#[test]
fn default_ports_fold_away() {
    assert_eq!(endpoint("http://h:80/{id}"), endpoint("http://h/{id}"));
    assert_eq!(endpoint("https://h:443/{id}"), endpoint("https://h/{id}"));
    assert_eq!(endpoint("http://h:/{id}"), endpoint("http://h/{id}"));
    assert_eq!(endpoint("http://h:443/{id}").as_str(), "http://h:443/{id}");
}

#[test]
fn literal_segments_are_in_normal_form() {
    assert_eq!(endpoint("http://h/%7euser/%c3%a9/{id}").as_str(), "http://h/~user/%C3%A9/{id}");
}

#[test]
fn wildcards_are_told_from_left_to_right() {
    let endpoint = endpoint("http://h/{b}/x/{a}/{c}");
    assert_eq!(endpoint.wildcards().collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(endpoint.authority(), "http://h");
}

#[test]
fn names_may_be_words_of_any_language() {
    for name in ["user-id", "user_id", "user.id", "user id", "größe", "7", "*", "a:b", "Revision"]
    {
        let endpoint = endpoint(&format!("http://h/{{{name}}}"));
        assert_eq!(endpoint.wildcards().collect::<Vec<_>>(), [name]);
        assert_eq!(self::endpoint(endpoint.as_str()), endpoint);
    }
}

#[test]
fn an_endpoint_is_at_most_2048_bytes_long() {
    let longest = format!("http://h/{{id}}/{}", "a".repeat(2_048 - 14));
    assert_eq!(endpoint(&format!("  {longest}  ")).as_str().len(), Endpoint::MAX_BYTES);
    let invalid = Endpoint::parse(&format!("{longest}a")).unwrap_err();
    assert_eq!(invalid.reason(), "must be at most 2,048 bytes long");
    let name = "n".repeat(2_048);
    assert!(Endpoint::parse(&format!("http://h/{{{name}}}")).is_err());
}

#[test]
fn wrong_endpoints_are_refused_with_the_reason() {
    let wrong = [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ("/users/{id}", "absolute URL"),
        ("users/{id}", "absolute URL"),
        ("//h/{id}", "absolute URL"),
        ("http:/h/{id}", "absolute URL"),
        ("h/{id}", "absolute URL"),
        ("ftp://h/{id}", "must be http or https, not \"ftp\""),
        ("{scheme}://h/{id}", "wildcard before its path"),
        ("http://{host}/a/{id}", "wildcard before its path"),
        ("http://a.{host}.com/{id}", "wildcard before its path"),
        ("http://%7Bhost%7D/{id}", "wildcard before its path"),
        ("http://h:{port}/{id}", "wildcard before its path"),
        ("http://{id}", "wildcard before its path"),
        ("http:///{id}", "must have a host"),
        ("http://:80/{id}", "must have a host"),
        ("http://", "must have a host"),
        ("http://h", "must have a path"),
        ("http://h/", "must have a path"),
        ("http://h/users", "at least one wildcard"),
        ("http://h/users/*", "at least one wildcard"),
        ("http://user@h/{id}", "user or password"),
        ("http://user:pw@h/{id}", "user or password"),
        ("http://h/{id}?a=b", "query"),
        ("http://h/{id}?", "query"),
        ("http://h/{id}?a={b}", "query"),
        ("http://h/{a?b}", "query"),
        ("http://h/{id}#top", "fragment"),
        ("http://h/{id}#", "fragment"),
        ("http://h/{id}#?", "fragment"),
        ("http://h/{}", "without a name"),
        ("http://h/{  }", "without a name"),
        ("http://h/%7B%7D", "without a name"),
        ("http://h/{{id}}", "braces inside"),
        ("http://h/{a}{b}", "braces inside"),
        ("http://h/{a}-{b}", "braces inside"),
        ("http://h/user-{id}", "whole path segment"),
        ("http://h/{id}.json", "whole path segment"),
        ("http://h/{id", "whole path segment"),
        ("http://h/id}", "whole path segment"),
        ("http://h/}id{", "whole path segment"),
        ("http://h/{", "whole path segment"),
        ("http://h/{a/b}", "whole path segment"),
        ("http://h/ {id}/a", "whole path segment"),
        ("http://h/{a%20b}", "% or control character"),
        ("http://h/{a\u{7}b}", "% or control character"),
        ("http://h/{id}/{id}", "more than one wildcard named \"id\""),
        ("http://h/{id}/{a}/{ id }", "more than one wildcard named \"id\""),
        ("http://h/{revision}", "reserved"),
        ("http://h/{id}/{ revision }", "reserved"),
        ("http://h//{id}", "empty or dot segment"),
        ("http://h/{id}//", "empty or dot segment"),
        ("http://h/a/../{id}", "empty or dot segment"),
        ("http://h/./{id}", "empty or dot segment"),
        ("http://h/{id}/%2e%2E", "empty or dot segment"),
        ("http://h/caf\u{e9}/{id}", "non-ASCII characters must be percent-encoded"),
        ("http://\u{e9}/{id}", "non-ASCII characters must be percent-encoded"),
        ("http://h/a b/{id}", "holds ' '"),
        ("http://h/a|b/{id}", "holds '|'"),
        ("http://h/%zz/{id}", "two hex digits"),
        ("http://h:65536/{id}", "port of at most 65535"),
        ("http://h:x/{id}", "holds 'x'"),
        ("http://[1:2]/{id}", "IPv6"),
    ];
    for (text, reason) in wrong {
        match Endpoint::parse(text) {
            Ok(endpoint) => panic!("{text:?} was accepted as {endpoint}"),
            Err(invalid) => {
                assert_eq!(invalid.field(), "endpoint", "{text:?}");
                assert!(invalid.reason().contains(reason), "{text:?}: {invalid}");
            }
        }
    }
}

#[test]
fn endpoints_conflict_iff_equal_but_for_names() {
    assert!(conflict("http://h/a/{x}", "http://h/a/{y}"));
    assert!(conflict("http://h/{x}/b/{y}/", "http://h/{y}/b/{x}"));
    assert!(!conflict("http://h/a/{x}", "http://h/b/{x}"));
    assert!(!conflict("http://h/a/{x}", "http://h/a/{x}/b"));
    assert!(!conflict("http://h/A/{x}", "http://h/a/{x}"));
}

#[test]
fn a_literal_overlapping_a_wildcard_is_no_conflict() {
    assert!(!conflict("http://h/{x}/{y}", "http://h/a/{y}"));
    assert!(!conflict("http://h/a/{y}", "http://h/{x}/b"));
}

#[test]
fn hosts_conflict_case_insensitively_and_without_default_ports() {
    assert!(conflict("http://H/{x}", "http://h:80/{y}"));
    assert!(conflict("https://h:443/{x}", "https://H/{y}"));
    assert!(!conflict("http://h/{x}", "http://h:8080/{x}"));
    assert!(!conflict("http://h/{x}", "http://other/{x}"));
}

#[test]
fn http_and_https_do_not_conflict() {
    assert!(!conflict("http://h/{x}", "https://h/{x}"));
    assert!(!conflict("http://h:443/{x}", "https://h/{x}"));
}

#[test]
fn a_literal_star_conflicts_with_a_wildcard_and_an_escaped_one_does_not() {
    assert!(conflict("http://h/*/{id}", "http://h/{x}/{id}"));
    assert!(!conflict("http://h/%2a/{id}", "http://h/{x}/{id}"));
    assert!(!conflict("http://h/%2A/{id}", "http://h/*/{id}"));
}

#[test]
fn a_literal_star_matches_only_itself() {
    assert!(matched("http://h/*/{id}", "http://h/*/1").is_some());
    assert!(matched("http://h/*/{id}", "http://h/a/1").is_none());
    assert!(matched("http://h/%2a/{id}", "http://h/%2A/1").is_some());
}

#[test]
fn a_wildcard_matches_one_whole_segment() {
    assert_eq!(value("http://h/a/{id}", "http://h/a/1", "id").as_deref(), Some("1"));
    for url in ["http://h/a", "http://h/a/1/2", "http://h/b/1", "http://h/A/1", "http://h/a/1/"] {
        assert!(matched("http://h/a/{id}", url).is_none(), "{url}");
    }
}

#[test]
fn scheme_host_and_port_must_be_equal() {
    assert!(matched("http://h/{id}", "HTTP://H:80/1").is_some());
    for url in ["https://h/1", "http://h:81/1", "http://i/1", "http://h.h/1", "http://h:443/1"] {
        assert!(matched("http://h/{id}", url).is_none(), "{url}");
    }
    assert!(matched("http://[::1]:81/{id}", "http://[0:0::1]:81/1").is_some());
}

#[test]
fn literals_match_in_every_spelling() {
    assert!(matched("http://h/~a/{id}", "http://h/%7ea/1").is_some());
    assert!(matched("http://h/%7Ea/{id}", "http://h/~a/1").is_some());
    assert!(matched("http://h/caf%c3%a9/{id}", "http://h/caf%C3%A9/1").is_some());
    assert!(matched("http://h/%ff/{id}", "http://h/%FF/1").is_some());
}

#[test]
fn wildcard_values_are_percent_decoded() {
    let values = [
        ("caf%C3%A9", "café"),
        ("a%20b", "a b"),
        ("a%2fb", "a/b"),
        ("a+b", "a+b"),
        ("%2541", "%41"),
        ("%7Bid%7D", "{id}"),
        ("%00", "\0"),
        ("...", "..."),
        ("%F0%9F%94%A5", "🔥"),
    ];
    for (segment, expected) in values {
        let found = value("http://h/{id}", &format!("http://h/{segment}"), "id");
        assert_eq!(found.as_deref(), Some(expected), "{segment}");
    }
}

#[test]
fn a_value_that_is_not_utf8_does_not_match() {
    for segment in ["%FF", "a%C3", "%C3a", "%A9", "%ED%A0%80", "%F0%9F%94x", "%C0%AF"] {
        assert!(matched("http://h/{id}", &format!("http://h/{segment}")).is_none(), "{segment}");
    }
}

#[test]
fn empty_and_dot_segments_do_not_match() {
    for segment in ["", ".", "..", "%2e", "%2E%2e", ".%2e"] {
        assert!(
            matched("http://h/a/{id}", &format!("http://h/a/{segment}")).is_none(),
            "{segment}"
        );
        let url = format!("http://h/{segment}/b");
        assert!(matched("http://h/{id}/b", &url).is_none(), "{segment}");
    }
    assert!(matched("http://h/a/{id}", "http://h/b/../a/1").is_none());
}

#[test]
fn literals_come_before_wildcards_from_left_to_right() {
    let order = ["a/b/{z}", "a/{y}/c", "a/{y}/{z}", "{x}/b/c", "{x}/b/{z}", "{x}/{y}/{z}"];
    let sorted = order.map(|path| endpoint(&format!("http://h/{path}")));
    let mut endpoints = sorted.clone();
    endpoints.reverse();
    endpoints.sort_by(Endpoint::cmp_specificity);
    assert_eq!(endpoints, sorted);
    assert_eq!(sorted[0].cmp_specificity(&sorted[0]), Ordering::Equal);
}

#[test]
fn params_keep_the_order_of_the_endpoint() {
    let params = matched("http://h/{z}/x/{a}", "http://h/1/x/%32").unwrap();
    assert_eq!(params.iter().collect::<Vec<_>>(), [("z", "1"), ("a", "2")]);
    assert_eq!((params.get("a"), params.get("b")), (Some("2"), None));
    assert_eq!((params.len(), params.is_empty()), (2, false));
    assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"z":"1","a":"2"}"#);
}

#[test]
fn json_is_the_text_and_is_checked_when_read() {
    let json = serde_json::to_string(&endpoint("HTTP://H:80/{ id }/")).unwrap();
    assert_eq!(json, "\"http://h/{id}\"");
    let read: Endpoint = serde_json::from_str("\"HTTP://H/%7Bid%7D\"").unwrap();
    assert_eq!(read, endpoint("http://h/{id}"));
    let error = serde_json::from_str::<Endpoint>("\"http://h/a\"").unwrap_err();
    assert!(error.to_string().contains("endpoint: must have at least one wildcard"), "{error}");
}

#[test]
fn an_endpoint_reads_from_text_and_shows_as_text() {
    assert_eq!("http://H/{id}".parse::<Endpoint>().unwrap().to_string(), "http://h/{id}");
    assert!("http://h".parse::<Endpoint>().is_err());
}

/// Text that is often an endpoint, and often just not.
fn near_endpoints() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-zA-Z0-9._~*:@-]{1,4}",
        1 => "[a-z{} %/ü]{0,4}",
        2 => "(%[0-9a-fA-F]{2}){1,2}",
        4 => "(\\{|%7[bB]) ?[a-zé ]{1,3} ?(\\}|%7[dD])",
    ];
    let start = prop_oneof![
        Just("http://h/"),
        Just(" HTTPS://Ex%41mple.COM:443/"),
        Just("http://[::1]:081/")
    ];
    (start, prop::collection::vec(part, 0..5), "[/ ]{0,2}")
        .prop_map(|(start, parts, end)| format!("{start}{}{end}", parts.join("/")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>(), braces in "[{}%7bBdD/ a?#]{0,12}") {
        let _ = Endpoint::parse(&text);
        let _ = Endpoint::parse(&format!("http://h/{text}"));
        let _ = Endpoint::parse(&format!("http://h/{braces}"));
    }

    #[test]
    fn the_normal_form_is_its_own_normal_form(text in near_endpoints()) {
        if let Ok(endpoint) = Endpoint::parse(&text) {
            let again = Endpoint::parse(endpoint.as_str());
            prop_assert_eq!(again.as_ref().map(Endpoint::as_str), Ok(endpoint.as_str()));
            prop_assert_eq!(again.map(|again| again.conflict_key()), Ok(endpoint.conflict_key()));
            prop_assert!(endpoint.wildcards().next().is_some());
        }
    }

    #[test]
    fn an_endpoint_matches_itself_with_values_filled_in(
        text in near_endpoints(),
        filling in "[a-zA-Z0-9~_-]{1,5}",
    ) {
        if let Ok(endpoint) = Endpoint::parse(&text) {
            let mut url = endpoint.as_str().to_owned();
            for name in endpoint.wildcards() {
                url = url.replacen(&format!("{{{name}}}"), &filling, 1);
            }
            let params = endpoint.matches(&DocumentUrl::parse(&url).unwrap());
            let expected = endpoint.wildcards().map(|name| (name, filling.as_str())).collect::<Vec<_>>();
            prop_assert_eq!(params.as_ref().map(|params| params.iter().collect::<Vec<_>>()), Some(expected));
        }
    }

    #[test]
    fn spellings_of_one_endpoint_are_equal(literal in "[a-z0-9~_-]{1,6}", name in "[a-z]{1,4}x") {
        let encoded: String = literal.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let plain = endpoint(&format!("http://example.com/{literal}/{{{name}}}"));
        let other = endpoint(&format!(" HTTP://EXAMPLE.com:80/{encoded}/%7B {name} %7d/"));
        prop_assert_eq!(plain, other);
    }
}
