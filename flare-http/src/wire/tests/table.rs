//! One test or more for each row of the specification's subscription table, in its order.

use std::time::Duration;

use flare_core::model::subscription::{
    BackoffFunction, BatchOptions, Method, Mode, Rate, RetryPolicy, Signing, SigningChange,
};
use flare_core::model::{Action, SubscriptionInput, SubscriptionSpec, SubscriptionStatus};

use super::{OTHER_SECRET, SECRET, at, delivering, read, refusal, shown, with};
use crate::subscription_from_json;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn endpoint_url_is_absolute_http_or_https() {
    for url in [
        "http://h",
        "https://h/",
        "HTTPS://H.example:8443/a/b",
        "http://127.0.0.1:9000/hook/{id}",
        "http://[::1]/{id}",
        "http://h/{a}-{b}/x?id={id}&r={revision}",
        "http://h?x={id}",
        "http://my_service.local./x",
    ] {
        let spec = at(&format!(r#""url":"{url}""#)).unwrap();
        assert_eq!(spec.request_for(Action::Create).url.unwrap().as_str(), url);
    }
    for url in ["/hook", "ftp://h/", "http:/h", "mailto:a@b", "h/x", "", "http://", "http:///x"] {
        let refused = at(&format!(r#""url":"{url}""#)).unwrap_err();
        assert_eq!(refused.field(), "endpoint.url", "{url}");
    }
}

#[test]
fn endpoint_url_is_required_unless_every_action_has_its_own() {
    let own = |actions: &[&str]| {
        let each: Vec<_> =
            actions.iter().map(|a| format!(r#""{a}":{{"url":"http://h/{a}"}}"#)).collect();
        at(&format!(r#""actions":{{{}}}"#, each.join(",")))
    };
    let spec = own(&["create", "update", "delete"]).unwrap();
    assert!(spec.endpoint().url().is_none());
    for action in Action::ALL {
        assert_eq!(spec.request_for(action).url.unwrap().as_str(), format!("http://h/{action}"));
    }
    for some in [&["create", "update"][..], &["delete"], &[]] {
        assert!(refusal(own(some)).starts_with("endpoint.url: is required unless"));
    }
    assert!(refusal(read("{}")).starts_with("endpoint.url: is required"));
}

#[test]
fn endpoint_method_is_post_or_one_of_five_in_any_case() {
    assert_eq!(at(r#""url":"http://h""#).unwrap().endpoint().method(), Method::Post);
    for (text, method) in [
        ("GET", Method::Get),
        ("post", Method::Post),
        ("Put", Method::Put),
        ("pAtCh", Method::Patch),
        ("delete", Method::Delete),
    ] {
        let spec = at(&format!(r#""url":"http://h","method":"{text}""#)).unwrap();
        assert_eq!(spec.request_for(Action::Update).method, method);
    }
}

#[test]
fn endpoint_headers_are_lists_of_templates_in_order() {
    assert!(at(r#""url":"http://h""#).unwrap().endpoint().headers().is_empty());
    let spec = at(r#""url":"http://h","headers":{"X-B":["{id}","two"],"x-a":["\t a b"]}"#).unwrap();
    let headers = spec.request_for(Action::Delete).headers;
    assert_eq!(headers.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["X-B", "x-a"]);
    let values = headers.get("x-b").unwrap();
    assert_eq!(values.iter().map(|v| v.as_str()).collect::<Vec<_>>(), ["{id}", "two"]);
}

#[test]
fn endpoint_actions_override_what_they_give_and_headers_replace() {
    let spec = at(r#""url":"http://h/m","method":"PUT","headers":{"A":["1"],"B":["2"]},
        "actions":{"create":{"url":"http://h/c"},"update":{"headers":{"C":["3"]}},
                   "delete":{"method":"delete","headers":{}}}"#)
    .unwrap();
    let shown = |action| {
        let request = spec.request_for(action);
        let names: Vec<_> = request.headers.iter().map(|(name, _)| name.to_owned()).collect();
        let url = request.url.map_or("none", |url| url.as_str());
        format!("{} {url} {}", request.method, names.join(","))
    };
    assert_eq!(shown(Action::Create), "PUT http://h/c A,B");
    assert_eq!(shown(Action::Update), "PUT http://h/m C");
    assert_eq!(shown(Action::Delete), "DELETE http://h/m ");
}

#[test]
fn endpoint_actions_refuse_an_unknown_action() {
    let refused = refusal(at(r#""url":"http://h","actions":{"upsert":{}}"#));
    assert_eq!(refused, "endpoint.actions.upsert: is unknown; known here: create, update, delete");
}

#[test]
fn delivery_success_defaults_and_is_a_set_of_status_codes() {
    let codes = |spec: SubscriptionSpec| spec.delivery().success().iter().collect::<Vec<_>>();
    assert_eq!(codes(delivering("").unwrap()), [200, 201, 202, 204]);
    assert_eq!(codes(delivering(r#""success":[599,100,599]"#).unwrap()), [100, 599]);
    for (list, field) in [("[99]", "[0]"), ("[200,600]", "[1]"), ("[200,1e2]", "[1]")] {
        let refused = delivering(&format!(r#""success":{list}"#)).unwrap_err();
        assert_eq!(refused.field(), format!("delivery.success{field}"));
        assert_eq!(refused.reason(), "must be an integer from 100 to 599");
    }
}

#[test]
fn delivery_discard_must_not_overlap_success() {
    assert!(delivering("").unwrap().delivery().discard().is_empty());
    let spec = delivering(r#""discard":[422,409]"#).unwrap();
    assert!(spec.delivery().discard().contains(409));
    let refused = refusal(delivering(r#""discard":[409,204]"#));
    assert_eq!(refused, "delivery.discard: must not have 204, which is in delivery.success");
    delivering(r#""success":[200],"discard":[204]"#).unwrap();
}

#[test]
fn delivery_retry_without_an_object_is_flares_default() {
    let retry = *delivering("").unwrap().delivery().retry();
    assert_eq!(retry, RetryPolicy::default());
    assert_eq!((retry.num_retries(), retry.num_no_delay_retries()), (83, 0));
    assert_eq!((retry.num_min_delay_retries(), retry.min_delay_target().as_secs()), (2, 5));
    assert_eq!((retry.num_max_delay_retries(), retry.max_delay_target().as_secs()), (69, 3600));
    assert_eq!(retry.num_backoff_retries(), 12);
    assert_eq!(retry.backoff_function(), BackoffFunction::Exponential);
}

#[test]
fn delivery_retry_with_an_object_takes_snss_defaults() {
    let retry = *delivering(r#""retry":{}"#).unwrap().delivery().retry();
    assert_eq!(retry, RetryPolicy::builder().build().unwrap());
    assert_eq!((retry.num_retries(), retry.num_no_delay_retries()), (3, 0));
    assert_eq!((retry.num_min_delay_retries(), retry.min_delay_target().as_secs()), (0, 20));
    assert_eq!((retry.num_max_delay_retries(), retry.max_delay_target().as_secs()), (0, 20));
    assert_eq!(retry.backoff_function(), BackoffFunction::Linear);
    let given = r#""retry":{"numRetries":100,"numNoDelayRetries":1,"minDelayTarget":1,
        "numMinDelayRetries":2,"maxDelayTarget":3600,"numMaxDelayRetries":97,
        "backoffFunction":"geometric"}"#;
    let retry = *delivering(given).unwrap().delivery().retry();
    assert_eq!((retry.num_backoff_retries(), retry.num_max_delay_retries()), (0, 97));
    assert_eq!(retry.backoff_function(), BackoffFunction::Geometric);
}

#[test]
fn delivery_retry_blames_the_field_that_was_given() {
    for (given, field) in [
        (r#""minDelayTarget":30"#, "minDelayTarget"),
        (r#""maxDelayTarget":10"#, "maxDelayTarget"),
        (r#""minDelayTarget":30,"maxDelayTarget":10"#, "minDelayTarget"),
        (r#""numNoDelayRetries":4"#, "numRetries"),
    ] {
        let refused = delivering(&format!(r#""retry":{{{given}}}"#)).unwrap_err();
        assert_eq!(refused.field(), format!("delivery.retry.{field}"), "{given}");
    }
    let built = RetryPolicy::builder().num_retries(101).build().unwrap_err();
    assert_eq!(built.to_string(), "numRetries: must be an integer from 0 to 100");
}

#[test]
fn delivery_ttl_is_a_duration() {
    assert_eq!(delivering("").unwrap().delivery().ttl(), None);
    let spec = delivering(r#""ttl":"72h""#).unwrap();
    assert_eq!(spec.delivery().ttl(), Some(72 * 60 * MINUTE));
}

#[test]
fn delivery_rate_has_a_limit_and_a_period() {
    assert_eq!(delivering("").unwrap().delivery().rate(), None);
    let spec = delivering(r#""rate":{"limit":100,"period":"1s"}"#).unwrap();
    let rate = spec.delivery().rate().unwrap();
    assert_eq!((rate.limit(), rate.period()), (100, Duration::from_secs(1)));
    for (limit, millis, burst) in [(100, 1_000, 10), (1, 1_000, 1), (19, 1_000, 1), (5, 1, 500)] {
        let rate = Rate::new(limit, Duration::from_millis(millis)).unwrap();
        assert_eq!(rate.burst(), burst);
    }
    assert_eq!(Rate::new(u32::MAX, Duration::from_millis(1)).unwrap().burst(), 429_496_729_500);
}

#[test]
fn delivery_concurrency_and_timeout_are_the_configurations_unless_set() {
    let spec = delivering("").unwrap();
    assert_eq!((spec.delivery().concurrency(), spec.delivery().timeout()), (None, None));
    let spec = delivering(r#""concurrency":10000,"timeout":"15m""#).unwrap();
    assert_eq!(spec.delivery().concurrency(), Some(10_000));
    assert_eq!(spec.delivery().timeout(), Some(15 * MINUTE));
}

#[test]
fn delivery_lanes_are_at_most_the_concurrency() {
    assert_eq!(delivering("").unwrap().delivery().lanes(), 1);
    assert_eq!(delivering(r#""lanes":1024"#).unwrap().delivery().lanes(), 1024);
    assert_eq!(delivering(r#""lanes":4,"concurrency":4"#).unwrap().delivery().lanes(), 4);
    let refused = refusal(delivering(r#""lanes":5,"concurrency":4"#));
    assert_eq!(refused, "delivery.lanes: must not be above delivery.concurrency, 4");
}

#[test]
fn delivery_min_interval_is_none_unless_set() {
    assert_eq!(delivering("").unwrap().delivery().min_interval(), None);
    let spec = delivering(r#""minInterval":"24h""#).unwrap();
    assert_eq!(spec.delivery().min_interval(), Some(24 * 60 * MINUTE));
}

#[test]
fn delivery_batch_is_none_unless_set() {
    let batching = |batch: &str| {
        read(&format!(r#"{{"endpoint":{{"url":"http://h/hook"}},"delivery":{{"batch":{batch}}}}}"#))
    };
    assert_eq!(delivering("").unwrap().delivery().batch(), None);
    let least = batching(r#"{"max":2}"#).unwrap();
    assert_eq!(least.delivery().batch(), Some(BatchOptions::of(2)));
    assert!(shown(&least).contains(r#""batch":{"max":2,"bytes":"1MiB"}"#), "{}", shown(&least));
    for bytes in ["65536", r#""64KiB""#] {
        let full = batching(&format!(r#"{{"max":1000,"wait":"5s","bytes":{bytes}}}"#)).unwrap();
        let expected = BatchOptions::of(1_000).wait(MINUTE / 12).limit_bytes(65_536);
        assert_eq!(full.delivery().batch(), Some(expected));
        let text = r#""batch":{"max":1000,"wait":"5s","bytes":"64KiB"}"#;
        assert!(shown(&full).contains(text), "{}", shown(&full));
        assert_eq!(read(&shown(&full)).unwrap(), full);
    }
}

#[test]
fn content_without_envelope_has_the_document() {
    let content = delivering("").unwrap().content();
    assert!(content.document() && content.envelope());
    for (content, document, envelope) in [
        (r#""document":false"#, false, true),
        (r#""envelope":false"#, true, false),
        (r#""envelope":false,"document":true"#, true, false),
    ] {
        let content = with(&format!(r#""content":{{{content}}}"#)).unwrap().content();
        assert_eq!((content.document(), content.envelope()), (document, envelope));
    }
    let refused = with(r#""content":{"document":false,"envelope":false}"#).unwrap_err();
    assert_eq!(refused.field(), "content.document");
}

#[test]
fn data_is_flat_keeps_order_and_numbers_and_is_interpolated() {
    let spec = with(
        r#""data":{"z":true,"a":[1.10,"r{revision}",false],"n":123456789012345678901234567890,
            "big":1e400,"s":"<{id}> {{\"é\"}}"}"#,
    )
    .unwrap();
    let value = |name: &str| Some(if name == "id" { "a\"b c" } else { "7" });
    assert_eq!(
        spec.data().unwrap().render(value).unwrap(),
        r#"{"z":true,"a":[1.10,"r7",false],"n":123456789012345678901234567890,"big":1e400,"s":"<a\"b c> {\"é\"}"}"#
    );
    assert_eq!(spec.data().unwrap().render(|_| None).unwrap_err().name(), "revision");
}

#[test]
fn data_needs_the_envelope() {
    let refused = refusal(with(r#""data":{"a":1},"content":{"envelope":false}"#));
    assert_eq!(refused, "data: needs the envelope, but content.envelope is false");
}

#[test]
fn filter_is_kept_as_text() {
    assert!(with(r#""mode":"active""#).unwrap().filter().is_none());
    let spec = with(r#""filter":"document.a == '{x}'""#).unwrap();
    assert_eq!(spec.filter().unwrap().as_str(), "document.a == '{x}'");
    spec.check_placeholders(&["id"]).unwrap();
}

#[test]
fn signing_takes_one_secret_or_two() {
    assert!(with(r#""mode":"active""#).unwrap().signing().is_none());
    let spec = with(&format!(r#""signing":{{"secrets":["{SECRET}","{OTHER_SECRET}"]}}"#)).unwrap();
    let signing = spec.signing().unwrap();
    assert_eq!(signing.count(), 2);
    assert_eq!(signing, &Signing::new([SECRET, OTHER_SECRET]).unwrap());
    assert_ne!(signing, &Signing::new([SECRET]).unwrap());
    let unpadded = Signing::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA"]).unwrap();
    assert_eq!(unpadded, Signing::new(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA=="]).unwrap());
}

#[test]
fn signing_absent_keeps_null_removes_and_given_replaces() {
    let signing = |json: &str| {
        let json = format!(r#"{{"endpoint":{{"url":"http://h/"}}{json}}}"#);
        subscription_from_json(json.as_bytes()).unwrap()
    };
    let old = with(&format!(r#""signing":{{"secrets":["{SECRET}"]}},"backfill":true"#)).unwrap();

    let kept = signing("").replace(&old);
    assert_eq!(kept.signing(), old.signing());
    assert!(!kept.backfill(), "only the secrets are kept");

    assert_eq!(signing(r#","signing":null"#).signing(), &SigningChange::Remove);
    assert!(signing(r#","signing":null"#).replace(&old).signing().is_none());

    let given = signing(&format!(r#","signing":{{"secrets":["{OTHER_SECRET}"]}}"#));
    let other = Signing::new([OTHER_SECRET]).unwrap();
    assert_eq!(given.replace(&old).signing(), Some(&other));

    assert!(signing("").create().signing().is_none());
    assert!(signing(r#","signing":null"#).create().signing().is_none());

    let built = SubscriptionSpec::post("http://h/").build().unwrap();
    assert_eq!(SubscriptionInput::from(built.clone()).replace(&old).signing(), old.signing());
    let removed = SubscriptionInput::from(built).without_signing().replace(&old);
    assert!(removed.signing().is_none());
    let resent = SubscriptionInput::from(old.clone()).replace(&kept);
    assert_eq!(resent, old);
}

#[test]
fn mode_is_active_or_passive() {
    assert_eq!(delivering("").unwrap().mode(), Mode::Active);
    assert_eq!(with(r#""mode":"active""#).unwrap().mode(), Mode::Active);
    assert_eq!(with(r#""mode":"passive""#).unwrap().mode(), Mode::Passive);
}

#[test]
fn backfill_is_off_unless_set() {
    assert!(!delivering("").unwrap().backfill());
    assert!(with(r#""backfill":true"#).unwrap().backfill());
}

#[test]
fn status_is_read_only() {
    assert_eq!(refusal(with(r#""status":"active""#)), "status: is read-only");
    for (status, text) in [
        (SubscriptionStatus::Preparing, "preparing"),
        (SubscriptionStatus::Active, "active"),
        (SubscriptionStatus::Paused, "paused"),
        (SubscriptionStatus::Suspended, "suspended"),
        (SubscriptionStatus::Deleting, "deleting"),
    ] {
        assert_eq!(status.to_string(), text);
        assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{text}\""));
    }
}

#[test]
fn placeholders_must_exist_on_the_resource() {
    let spec = |place: &str| {
        let place = |name: &str| if name == place { "{other}" } else { "{id}{revision}" };
        read(&format!(
            r#"{{"endpoint":{{"url":"http://h/{}","headers":{{"A":["x","{}"]}},"actions":
                {{"update":{{"url":"http://h/u{}","headers":{{"B":["{}"]}}}}}}}},
                "data":{{"s":"{}","l":[1,"{}"]}}}}"#,
            place("url"),
            place("header"),
            place("action url"),
            place("action header"),
            place("data"),
            place("list")
        ))
        .unwrap()
    };
    spec("none").check_placeholders(&["x", "id"]).unwrap();
    for (place, field) in [
        ("url", "endpoint.url"),
        ("header", "endpoint.headers.A[1]"),
        ("action url", "endpoint.actions.update.url"),
        ("action header", "endpoint.actions.update.headers.B[0]"),
        ("data", "data.s"),
        ("list", "data.l[1]"),
    ] {
        let refused = spec(place).check_placeholders(&["id"]).unwrap_err();
        assert_eq!(refused.field(), field);
        assert_eq!(
            refused.reason(),
            "has {other}, which the resource does not; it has {id}, {revision}; \
             write {{ and }} for braces"
        );
    }
}

#[test]
fn json_like_text_is_refused_with_the_way_to_write_it() {
    let spec = with(r#""data":{"x":"{\"a\":1}"}"#).unwrap();
    let refused = refusal(spec.check_placeholders(&["id"]));
    assert!(refused.starts_with("data.x: has {\"a\":1}, which"), "{refused}");
    assert!(refused.ends_with("write {{ and }} for braces"), "{refused}");
}

#[test]
fn urls_are_compared_in_normal_form() {
    let key = |url: &str| at(&format!(r#""url":"{url}""#)).unwrap().urls().remove(0);
    for (one, other) in [
        ("http://h", "HTTP://H:80/"),
        ("http://h?q", "http://h/?q"),
        ("https://h:443/%7ea/%c3%a9", "https://h/~a/%C3%A9"),
        ("http://h/a/./b/../{id}", "http://h/a/{ id }"),
        ("http://h:/x", "http://h/x"),
    ] {
        assert_eq!(key(one), key(other));
    }
    for (one, other) in [
        ("http://h/", "https://h/"),
        ("http://h/", "http://h:81/"),
        ("http://h/{id}", "http://h/{name}"),
        ("http://h/a", "http://h/a/"),
        ("http://h/?a", "http://h/?b"),
    ] {
        assert_ne!(key(one), key(other));
    }
}

#[test]
fn urls_are_all_that_are_given_each_once() {
    let spec = at(r#""url":"http://h/m","actions":{"create":{"url":"http://h/c"},
        "update":{"url":"http://h:80/c"},"delete":{"url":"http://h/d"}}"#)
    .unwrap();
    assert_eq!(spec.urls(), ["http://h/m", "http://h/c", "http://h/d"]);
}
