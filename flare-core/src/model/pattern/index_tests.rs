//! The index against a scan of all endpoints, with overlaps, removals, many and adversarial ones.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Endpoint, EndpointIndex};
use crate::model::DocumentUrl;

fn endpoint(path: &str) -> Endpoint {
    let text = if path.contains("://") { path.to_owned() } else { format!("http://h/{path}") };
    Endpoint::parse(&text).unwrap_or_else(|invalid| panic!("{text:?}: {invalid}"))
}

fn url(path: &str) -> DocumentUrl {
    let text = if path.contains("://") { path.to_owned() } else { format!("http://h/{path}") };
    DocumentUrl::parse(&text).unwrap_or_else(|invalid| panic!("{text:?}: {invalid}"))
}

fn index<'a>(paths: &[&'a str]) -> EndpointIndex<&'a str> {
    let mut index = EndpointIndex::new();
    for path in paths {
        index.insert(&endpoint(path), *path).unwrap();
    }
    index
}

#[test]
fn the_most_specific_endpoint_wins() {
    let index = index(&["{x}/{y}", "{x}/b", "a/{y}", "a/{y}/c"]);
    assert_eq!(index.find(&url("a/b")), Some(&"a/{y}"));
    assert_eq!(index.find(&url("z/b")), Some(&"{x}/b"));
    assert_eq!(index.find(&url("z/z")), Some(&"{x}/{y}"));
    assert_eq!(index.find(&url("a/b/c")), Some(&"a/{y}/c"));
    assert_eq!(index.find(&url("a/b/d")), None);
    assert_eq!(index.find(&url("a")), None);
}

#[test]
fn all_that_match_come_most_specific_first() {
    let index = index(&["{x}/{y}", "{x}/b", "a/{y}", "a/{y}/c", "http://i/{x}/{y}"]);
    assert_eq!(index.find_all(&url("a/b")), [&"a/{y}", &"{x}/b", &"{x}/{y}"]);
    assert_eq!(index.find_all(&url("z/b")), [&"{x}/b", &"{x}/{y}"]);
    assert_eq!(index.find_all(&url("a/b/d")), Vec::<&&str>::new());
    assert_eq!(index.find_all(&url("http://j/a/b")), Vec::<&&str>::new());
}

#[test]
fn a_literal_that_leads_nowhere_is_left_again() {
    let index = index(&["a/b/c/{z}", "a/{x}/c/d", "{w}/b/{y}/e"]);
    assert_eq!(index.find(&url("a/b/c/d")), Some(&"a/b/c/{z}"));
    assert_eq!(index.find(&url("a/z/c/d")), Some(&"a/{x}/c/d"));
    assert_eq!(index.find(&url("a/b/z/e")), Some(&"{w}/b/{y}/e"));
}

#[test]
fn names_may_differ_on_a_shared_way() {
    let index = index(&["a/{x}/b", "a/{y}/c"]);
    let (value, params) = index.find_params(&url("a/1/c")).unwrap();
    assert_eq!((*value, params.get("y"), params.get("x")), ("a/{y}/c", Some("1"), None));
    let (found, _) = index.find_entry(&url("a/1/b")).unwrap();
    assert_eq!(found, &endpoint("a/{x}/b"));
}

#[test]
fn any_number_of_resources_share_a_host_and_hosts_are_apart() {
    let index = index(&["{x}", "https://h/{x}", "http://h:81/{x}", "http://i/{x}", "a/{x}"]);
    assert_eq!(index.len(), 5);
    assert_eq!(index.find(&url("HTTP://H:80/1")), Some(&"{x}"));
    assert_eq!(index.find(&url("https://h:443/1")), Some(&"https://h/{x}"));
    assert_eq!(index.find(&url("http://h:81/1")), Some(&"http://h:81/{x}"));
    assert_eq!(index.find(&url("https://i/1")), None);
}

#[test]
fn a_conflict_names_the_stored_endpoint_and_changes_nothing() {
    let mut index = index(&["a/{x}"]);
    let conflict = index.insert(&endpoint("a/{y}"), "new").unwrap_err();
    assert_eq!((conflict.endpoint, *conflict.value), (&endpoint("a/{x}"), "a/{x}"));
    assert_eq!(conflict.to_string(), "the endpoint conflicts with http://h/a/{x}");
    assert_eq!((index.len(), index.find(&url("a/1"))), (1, Some(&"a/{x}")));
}

#[test]
fn a_literal_star_conflicts_with_a_wildcard_both_ways() {
    let mut stars = index(&["*/{x}/*/c/{y}"]);
    assert!(stars.insert(&endpoint("{a}/*/{b}/c/{d}"), "").is_err());
    assert!(stars.insert(&endpoint("{a}/{b}/{c}/c/{d}"), "").is_err());
    assert!(stars.insert(&endpoint("{a}/%2A/{b}/c/{d}"), "").is_ok());
    let mut wild = index(&["{a}/{b}"]);
    assert!(wild.insert(&endpoint("{a}/*"), "").is_err());
    assert!(wild.insert(&endpoint("*/{a}"), "").is_err());
    assert!(wild.insert(&endpoint("*/{a}/c"), "").is_ok());
}

#[test]
fn removing_gives_the_value_back_and_leaves_the_others() {
    let mut index = index(&["a/{x}", "a/{x}/b", "{x}/{y}"]);
    assert_eq!(index.remove(&endpoint("a/{x}")), Some("a/{x}"));
    assert_eq!(index.remove(&endpoint("a/{x}")), None);
    assert_eq!(index.find(&url("a/1")), Some(&"{x}/{y}"));
    assert_eq!(index.find(&url("a/1/b")), Some(&"a/{x}/b"));
    assert_eq!(index.len(), 2);
}

#[test]
fn removing_takes_only_the_endpoint_itself() {
    let mut index = index(&["a/{x}/b"]);
    for other in ["a/{y}/b", "a/{x}", "a/{x}/c", "b/{x}/b", "http://i/a/{x}/b"] {
        assert_eq!(index.remove(&endpoint(other)), None, "{other}");
    }
    assert_eq!(index.len(), 1);
}

#[test]
fn removing_the_last_endpoint_leaves_no_nodes() {
    let mut index = index(&["a/{x}/b/{y}", "a/{x}/c", "{z}"]);
    for path in ["{z}", "a/{x}/b/{y}", "a/{x}/c"] {
        assert!(index.remove(&endpoint(path)).is_some());
    }
    assert!(index.is_empty());
    assert_eq!(format!("{index:?}"), format!("{:?}", EndpointIndex::<&str>::default()));
}

#[test]
fn iteration_is_by_host_then_literals_before_wildcards() {
    let index = index(&["{x}", "b/{x}", "{x}/a", "a/{x}", "http://a/{x}", "a/{x}/b"]);
    let order: Vec<_> = index.iter().map(|(_, value)| *value).collect();
    assert_eq!(order, ["http://a/{x}", "a/{x}", "a/{x}/b", "b/{x}", "{x}", "{x}/a"]);
}

#[test]
fn empty_dot_and_non_utf8_segments_are_not_found() {
    let index = index(&["{x}", "{x}/{y}", "%FF/{x}"]);
    for path in ["a/", "a//", "/a", ".", "..", "a/..", "%2e%2e", "%FE", "a/%FE", "%FE/a"] {
        assert_eq!(index.find(&url(path)), None, "{path}");
    }
    assert_eq!(index.find(&url("%ff/a")), Some(&"%FF/{x}"));
}

#[test]
fn ten_thousand_resources_are_told_apart() {
    let mut index = EndpointIndex::new();
    for n in 0..2_500 {
        let paths = [format!("r{n}/{{x}}"), format!("r{n}/me"), format!("{{x}}/s{n}/{{y}}")];
        for (kind, path) in paths.iter().enumerate() {
            let path = if kind == 1 { format!("{path}/{{y}}") } else { path.clone() };
            index.insert(&endpoint(&path), (kind, n)).unwrap();
        }
        index.insert(&endpoint(&format!("https://host-{n}.com/{{x}}")), (3, n)).unwrap();
    }
    assert_eq!((index.len(), index.iter().count()), (10_000, 10_000));
    for n in 0..2_500 {
        assert_eq!(index.find(&url(&format!("r{n}/1"))), Some(&(0, n)));
        assert_eq!(index.find(&url(&format!("r{n}/me/1"))), Some(&(1, n)));
        assert_eq!(index.find(&url(&format!("r{n}/s{n}/1"))), Some(&(2, n)));
        assert_eq!(index.find(&url(&format!("https://host-{n}.com/1"))), Some(&(3, n)));
        assert_eq!(index.find(&url(&format!("r{n}/t{n}/1"))), None);
    }
}

/// At each of 60 levels both the literal and the wildcard lead on: if a node were visited once per
/// way, not once, this would take 2^60 steps.
#[test]
fn an_adversarial_set_costs_no_more_than_its_nodes() {
    let mut index = EndpointIndex::new();
    let mut random = 1_u64;
    for n in 0..2_000 {
        let path: Vec<_> = (0..60)
            .map(|level| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if random >> 63 == 0 { "a".to_owned() } else { format!("{{x{level}}}") }
            })
            .collect();
        index.insert(&endpoint(&format!("{}/end/{{n}}", path.join("/"))), n).unwrap();
    }
    let way = ["a"; 60].join("/");
    assert!(index.find(&url(&format!("{way}/end/1"))).is_some());
    for n in 0..100 {
        assert_eq!(index.find(&url(&format!("{way}/no-end/{n}"))), None);
    }
}

#[test]
fn the_deepest_endpoint_is_stored_found_and_removed() {
    let path = format!("{}{{x}}", "a/".repeat((2_048 - 12) / 2));
    let mut index = EndpointIndex::new();
    index.insert(&endpoint(&path), ()).unwrap();
    assert!(index.find(&url(&path.replace("{x}", "1"))).is_some());
    assert!(index.conflicting(&endpoint(&path)).is_some());
    assert_eq!(index.remove(&endpoint(&path)), Some(()));
}

/// Paths such as `a/{x1}/*`, with at least one wildcard.
fn paths() -> impl Strategy<Value = String> {
    let segments = prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "{"]), 1..5);
    (segments, any::<bool>()).prop_map(|(mut segments, renamed)| {
        if !segments.contains(&"{") {
            segments.pop();
            segments.push("{");
        }
        let name = |at: usize| if renamed { format!("{{y{at}}}") } else { format!("{{x{at}}}") };
        let named = segments.iter().enumerate();
        let named: Vec<_> =
            named.map(|(at, s)| if *s == "{" { name(at) } else { (*s).to_owned() }).collect();
        named.join("/")
    })
}

fn urls() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec!["a", "b", "*", "c", "%2A", "%FF", "", "."]);
    prop::collection::vec(segment, 1..5)
        .prop_map(|segments| segments.join("/"))
        .prop_filter("a path", |path| !path.is_empty())
}

/// The plain way to say what the index does: all endpoints by conflict key, scanned.
#[derive(Default)]
struct Scan(BTreeMap<String, (Endpoint, usize)>);

impl Scan {
    fn find_all(&self, url: &DocumentUrl) -> Vec<usize> {
        let matching = self.0.values().filter(|(endpoint, _)| endpoint.matches(url).is_some());
        let mut matching: Vec<_> = matching.collect();
        matching.sort_by(|(one, _), (other, _)| one.cmp_specificity(other));
        matching.into_iter().map(|(_, n)| *n).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_index_finds_what_a_scan_finds(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, paths()), 1..40),
        urls in prop::collection::vec(urls(), 1..20),
    ) {
        let (mut index, mut scan) = (EndpointIndex::new(), Scan::default());
        for (n, (which, kind, path)) in steps.iter().enumerate() {
            // Mostly insertions; a removal is of an earlier step's endpoint, stored or not.
            if *kind == 0 {
                let endpoint = endpoint(&steps[which.index(steps.len())].2);
                let key = endpoint.conflict_key();
                let known = scan.0.get(&key).filter(|(known, _)| *known == endpoint).map(|(_, n)| *n);
                prop_assert_eq!(index.remove(&endpoint), known);
                if known.is_some() {
                    scan.0.remove(&key);
                }
            } else {
                let endpoint = endpoint(path);
                match scan.0.get(&endpoint.conflict_key()) {
                    Some((stored, _)) => {
                        prop_assert_eq!(index.insert(&endpoint, n).unwrap_err().endpoint, stored);
                    }
                    None => {
                        prop_assert!(index.insert(&endpoint, n).is_ok());
                        scan.0.insert(endpoint.conflict_key(), (endpoint, n));
                    }
                }
            }
            prop_assert_eq!(index.len(), scan.0.len());
        }
        prop_assert_eq!(index.iter().count(), scan.0.len());
        for path in &urls {
            let url = url(path);
            let all: Vec<usize> = index.find_all(&url).into_iter().copied().collect();
            prop_assert_eq!(&all, &scan.find_all(&url), "{}", url);
            prop_assert_eq!(index.find(&url), all.first(), "{}", url);
            prop_assert_eq!(index.find_params(&url).is_some(), index.find(&url).is_some());
        }
    }
}
