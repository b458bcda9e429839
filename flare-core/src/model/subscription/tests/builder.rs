//! Takes wrong settings; checks that the builder refuses each by the path of the field and a reason, and
//! that nothing it holds is shown that should not be.

use std::time::Duration;

use proptest::prelude::*;

use super::SECRET;
use crate::model::subscription::{BatchOptions, DataNumber, Method, Mode};
use crate::model::{Action, Invalid, SubscriptionInput, SubscriptionSpec};

#[track_caller]
fn refused(what: &str, result: Result<SubscriptionSpec, Invalid>, field: &str, reason: &str) {
    match result {
        Ok(_) => panic!("accepted: {what}"),
        Err(invalid) => {
            assert_eq!(invalid.field(), field, "{what}: {invalid}");
            assert!(invalid.reason().contains(reason), "{what}: {invalid}");
        }
    }
}

#[test]
fn what_is_wrong_is_refused_by_its_path() {
    let post = || SubscriptionSpec::post("http://h/");
    for (builder, field, reason) in [
        (SubscriptionSpec::builder(), "endpoint.url", "is required"),
        (SubscriptionSpec::post("x").concurrency(0), "endpoint.url", "absolute"),
        (post().header("Host", "x"), "endpoint.headers.Host", "Flare sets itself"),
        (post().header("A", "x").header("a", "\n"), "endpoint.headers.a[1]", "visible ASCII"),
        (post().success([200, 1]), "delivery.success[1]", "100 to 599"),
        (post().discard([200]), "delivery.discard", "must not have 200"),
        (post().ttl(Duration::from_nanos(1)), "delivery.ttl", "whole number of milliseconds"),
        (post().timeout(Duration::MAX), "delivery.timeout", "at most"),
        (post().rate(0, Duration::ZERO), "delivery.rate.limit", "from 1"),
        (post().lanes(2).concurrency(1), "delivery.lanes", "concurrency, 1"),
        (post().data("a", serde_json::json!([{}])), "data.a[0]", "not an object"),
        (post().data("a", 1).data("a", 2), "data.a", "given twice"),
        (post().data("a", 1).envelope(false), "data", "needs the envelope"),
        (post().document(false).envelope(false), "content.document", "envelope"),
        (post().filter(""), "filter", "must not be empty"),
        (post().signing(["x"]), "signing.secrets[0]", "whsec_"),
        (post().signing([""; 0]), "signing.secrets", "one secret"),
    ] {
        refused(field, builder.build(), field, reason);
    }
}

#[test]
fn only_a_client_that_pulls_may_do_without_a_url() {
    let passive = || SubscriptionSpec::builder().mode(Mode::Passive);
    let spec = passive().build().unwrap();
    assert!(!spec.endpoint().is_reachable() && spec.urls().is_empty());
    let text = serde_json::to_string(&spec.stored()).unwrap();
    assert_eq!(SubscriptionSpec::from_stored(&text).unwrap(), spec);
    refused("active", passive().mode(Mode::Active).build(), "endpoint.url", "is required");
    let some = passive().action_url(Action::Delete, "http://h/").build().unwrap();
    assert!(!some.endpoint().is_reachable(), "of creates no client could be told");
    assert!(passive().url("http://h/").build().unwrap().endpoint().is_reachable());
}

#[test]
fn a_request_of_many_is_the_same_for_all_of_them() {
    let batch = || SubscriptionSpec::post("http://h/hook").batch(BatchOptions::of(10));
    let at = |url| SubscriptionSpec::post(url).batch(BatchOptions::of(10));
    let with = |batch| SubscriptionSpec::post("http://h/hook").batch(batch);
    for (builder, field, reason) in [
        (with(BatchOptions::of(1)), "delivery.batch.max", "from 2 to 1000"),
        (with(BatchOptions::of(1_001)), "delivery.batch.max", "from 2 to 1000"),
        (
            with(BatchOptions::of(2).wait(Duration::from_millis(5_001))),
            "delivery.batch.wait",
            "at most \"5s\"",
        ),
        (with(BatchOptions::of(2).wait(Duration::ZERO)), "delivery.batch.wait", "longer than zero"),
        (with(BatchOptions::of(2).limit_bytes(1)), "delivery.batch.bytes", "from \"1KiB\""),
        (batch().envelope(false), "delivery.batch", "needs the envelope"),
        (at("http://h/{id}"), "endpoint.url", "has {id}"),
        (at("http://h/?r={revision}"), "endpoint.url", "has {revision}"),
        (batch().header("X-A", "1").header("X-B", "a{id}"), "endpoint.headers.X-B", "has {id}"),
        (
            batch().action_method(Action::Delete, Method::Delete),
            "endpoint.actions.delete.method",
            "the same for all actions",
        ),
        (
            batch().action_url(Action::Create, "http://h/new"),
            "endpoint.actions.create.url",
            "the same for all actions",
        ),
        (
            batch().header("A", "1").action_without_headers(Action::Update),
            "endpoint.actions.update.headers",
            "the same for all actions",
        ),
    ] {
        refused(field, builder.build(), field, reason);
    }
    let same = batch().action_method(Action::Delete, Method::Post);
    let spec = same.action_url(Action::Update, "http://h/hook").build().unwrap();
    assert_eq!(spec.needs(), 4, "an older version would tell of one at a time");
}

#[test]
fn what_masks_hid_is_the_same_for_all_of_them_too() {
    let old = SubscriptionSpec::post("http://h/")
        .header("Authorization", "one")
        .action_header(Action::Delete, "Authorization", "other")
        .build()
        .unwrap();
    let masked = SubscriptionSpec::post("http://h/")
        .header("Authorization", "********")
        .action_header(Action::Delete, "Authorization", "********")
        .batch(BatchOptions::of(2));
    let next = SubscriptionInput::try_from(masked).unwrap().replace(&old);
    assert_eq!(next.check_masks().unwrap_err().field(), "endpoint.actions.delete.headers");
}

#[test]
fn headers_are_given_one_by_one_or_at_once() {
    let one_by_one = SubscriptionSpec::post("http://h/")
        .header("A", "1")
        .header("a", "2")
        .action_header(Action::Delete, "B", "{id}");
    let at_once = SubscriptionSpec::post("http://h/")
        .headers([("A", ["1", "2"])])
        .action_headers(Action::Delete, [("B", ["{id}"])]);
    assert_eq!(one_by_one.build().unwrap(), at_once.build().unwrap());
    let post = || SubscriptionSpec::post("http://h/");
    for (builder, field, reason) in [
        (post().headers([("A", ["x"]), ("a", ["y"])]), "endpoint.headers.a", "different case"),
        (post().headers([("A", [""; 0])]), "endpoint.headers.A", "at least one value"),
        (post().headers([("A", ["x", "}"])]), "endpoint.headers.A[1]", "write }}"),
        (
            post().action_headers(Action::Update, [("Host", ["x"])]),
            "endpoint.actions.update.headers.Host",
            "Flare sets itself",
        ),
    ] {
        refused(field, builder.build(), field, reason);
    }
    let many = (0..100_000).map(|i| (format!("A{i}"), ["x"]));
    refused("many", post().headers(many).build(), "endpoint.headers", "at most 64 values");
}

#[test]
fn a_number_is_json_and_nothing_around_it() {
    for text in ["0", "-1.50", "1e400", "123456789012345678901234567890"] {
        assert_eq!(DataNumber::new(text).unwrap().as_str(), text);
    }
    for text in ["", "x", "01", "1.", "+1", " 1", "1 ", "1,2", "NaN", "\"1\"", "[1]", "1 2"] {
        assert!(DataNumber::new(text).is_err(), "{text}");
    }
}

#[test]
fn debug_shows_no_secret_and_no_header_value() {
    let builder = SubscriptionSpec::post("http://h").signing([SECRET]).header("A", "t0ken");
    let spec = builder.clone().build().unwrap();
    let input = SubscriptionInput::from(spec.clone());
    let shown = format!("{spec:?} {spec:#?} {input:?} {builder:?}");
    let key = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert!(!shown.contains(key) && !shown.contains("t0ken"), "{shown}");
    assert!(shown.contains("{\"A\"}") && shown.contains("secrets: 1"), "{shown}");
    let bytes = format!("{:?}", [0x31u8, 0xf2, 0x90]);
    assert!(!shown.contains(bytes.trim_matches(['[', ']'])), "not as numbers either");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_url_is_taken_or_refused(url in "https?://[a-z0-9.:@\\[\\]%{}]{0,12}[/?#][ -~]{0,12}") {
        if let Ok(spec) = SubscriptionSpec::post(&url).build() {
            let rendered = spec.request_for(Action::Create).url.unwrap().render(|_| Some("/?#@")).unwrap();
            let uri = fluent_uri::Uri::parse(rendered.as_str()).unwrap();
            let authority = uri.authority().unwrap();
            prop_assert!(!authority.has_userinfo() && !uri.has_fragment());
            prop_assert!(url.contains(authority.as_str()), "the host is the template's own");
        }
    }
}
