//! What a read shows: every default, no secret, and what may be sent back as it is.

use std::time::Duration;

use flare_core::model::subscription::{Method, Mode, RetryPolicy};
use flare_core::model::{Action, SubscriptionSpec};

use super::{OTHER_SECRET, SECRET, at, read, shown};
use crate::subscription_from_json;

/// Everything set, through the builder.
fn full() -> SubscriptionSpec {
    SubscriptionSpec::post("https://client.example/hook/{id}?r={revision}")
        .method(Method::Put)
        .header("Authorization", "Bearer t0ken")
        .header("X-Id", "{id}")
        .action_url(Action::Delete, "https://client.example/gone/{id}")
        .action_method(Action::Delete, Method::Delete)
        .action_without_headers(Action::Delete)
        .action_header(Action::Update, "X-Rev", "{revision}")
        .success([204, 200])
        .discard([422])
        .retry(RetryPolicy::builder().num_retries(5).build().unwrap())
        .ttl(Duration::from_secs(72 * 3600))
        .rate(10, Duration::from_millis(1_500))
        .concurrency(8)
        .timeout(Duration::from_secs(30))
        .lanes(4)
        .min_interval(Duration::from_secs(5))
        .document(false)
        .data("tenant", "acme/{id}")
        .data("list", serde_json::json!([1, true, "x"]))
        .filter("document.public")
        .signing([SECRET, OTHER_SECRET])
        .mode(Mode::Passive)
        .backfill(true)
        .build()
        .unwrap()
}

#[test]
fn a_read_shows_every_default() {
    let golden = concat!(
        r#"{"endpoint":{"url":"http://h/{id}","method":"POST","headers":{}},"#,
        r#""delivery":{"success":[200,201,202,204],"discard":[],"retry":{"numRetries":83,"#,
        r#""numNoDelayRetries":0,"minDelayTarget":5,"numMinDelayRetries":2,"maxDelayTarget":3600,"#,
        r#""numMaxDelayRetries":69,"backoffFunction":"exponential"},"lanes":1},"#,
        r#""content":{"document":true,"envelope":true},"mode":"active","backfill":false}"#,
    );
    assert_eq!(shown(&at(r#""url":"http://h/{id}""#).unwrap()), golden);
}

#[test]
fn a_read_shows_everything_but_the_secrets() {
    let golden = concat!(
        r#"{"endpoint":{"url":"https://client.example/hook/{id}?r={revision}","method":"PUT","#,
        r#""headers":{"Authorization":["********"],"X-Id":["{id}"]},"#,
        r#""actions":{"update":{"headers":{"X-Rev":["{revision}"]}},"#,
        r#""delete":{"url":"https://client.example/gone/{id}","method":"DELETE","headers":{}}}},"#,
        r#""delivery":{"success":[200,204],"discard":[422],"retry":{"numRetries":5,"#,
        r#""numNoDelayRetries":0,"minDelayTarget":20,"numMinDelayRetries":0,"maxDelayTarget":20,"#,
        r#""numMaxDelayRetries":0,"backoffFunction":"linear"},"ttl":"72h","#,
        r#""rate":{"limit":10,"period":"1500ms"},"concurrency":8,"timeout":"30s","lanes":4,"#,
        r#""minInterval":"5s"},"#,
        r#""content":{"document":false,"envelope":true},"#,
        r#""data":{"tenant":"acme/{id}","list":[1,true,"x"]},"filter":"document.public","#,
        r#""signing":{"secrets":2},"mode":"passive","backfill":true}"#,
    );
    assert_eq!(shown(&full()), golden);
}

#[test]
fn what_a_read_shows_cannot_be_sent_as_secrets() {
    assert_eq!(read(&shown(&full())).unwrap_err().field(), "signing.secrets");
}

#[test]
fn a_read_shows_numbers_as_they_were_written() {
    let spec = read(r#"{"endpoint":{"url":"http://h"},"data":{"n":1.50,"l":[1e400]}}"#).unwrap();
    assert!(shown(&spec).contains(r#""data":{"n":1.50,"l":[1e400]}"#), "{}", shown(&spec));
}

#[test]
fn null_is_the_same_as_not_given() {
    let plain = at(r#""url":"http://h""#).unwrap();
    let nulls = read(
        r#"{"endpoint":{"url":"http://h","method":null,"headers":null,"actions":{"create":null}},
            "delivery":{"success":null,"retry":null,"ttl":null,"rate":null,"concurrency":null},
            "content":null,"data":null,"filter":null,"mode":null,"backfill":null,"signing":null}"#,
    );
    assert_eq!(nulls.unwrap(), plain);
    let inner = r#"{"endpoint":{"url":"http://h"},"signing":{"secrets":null},
        "content":{"document":null},"delivery":{"rate":{"limit":null,"period":"1s"}}}"#;
    assert_eq!(read(inner).unwrap_err().to_string(), "delivery.rate.limit: is required");
    let inner = inner.replace(r#""limit":null"#, r#""limit":1"#);
    assert_eq!(read(&inner).unwrap_err().to_string(), "signing.secrets: is required");
}

const WITH_CREDENTIALS: &str = r#"{"endpoint":{"url":"http://h",
    "headers":{"Authorization":["Bearer t0ken"],"Cookie":["a=s1","b=s2"],"X-Id":["open"]},
    "actions":{"delete":{"headers":{"X-Api-Key":["k3y"]}},"update":{"method":"PUT"}}}}"#;

#[test]
fn credentials_are_masked_wherever_they_are_and_kept_when_sent_back() {
    let spec = read(WITH_CREDENTIALS).unwrap();
    let shown = shown(&spec);
    for secret in ["t0ken", "a=s1", "b=s2", "k3y"] {
        assert!(!shown.contains(secret) && !format!("{spec:?}").contains(secret), "{shown}");
        assert!(serde_json::to_string(&spec.stored()).unwrap().contains(secret));
    }
    let masked = r#""Cookie":["********","********"],"X-Id":["open"]"#;
    assert!(shown.contains(masked) && shown.contains(r#""X-Api-Key":["********"]"#), "{shown}");
    // What a read showed, sent back as it is, changes nothing.
    let back = subscription_from_json(shown.as_bytes()).unwrap().replace(&spec);
    assert_eq!(back, spec);
    back.check_masks().unwrap();
    // One of them changed, in another case: the others stay.
    let one =
        shown.replace(r#""Cookie":["********","********"]"#, r#""COOKIE":["********","c=s3"]"#);
    let one = subscription_from_json(one.as_bytes()).unwrap().replace(&spec);
    let values = |name: &str| -> Vec<String> {
        let values = one.endpoint().headers().get(name).unwrap();
        values.iter().map(|value| value.as_str().to_owned()).collect()
    };
    assert_eq!(values("cookie"), ["a=s1", "c=s3"]);
    assert_eq!(values("authorization"), ["Bearer t0ken"]);
}

#[test]
fn a_mask_that_stands_for_nothing_is_refused_by_its_path() {
    let old = read(WITH_CREDENTIALS).unwrap();
    for (given, field) in [
        (r#""headers":{"Authorization":["********"]}"#, "endpoint.headers.Authorization[0]"),
        (r#""headers":{"Cookie":["a","b","********"]}"#, "endpoint.headers.Cookie[2]"),
        (r#""headers":{"X-Token":["********"]}"#, "endpoint.headers.X-Token[0]"),
        (
            r#""actions":{"update":{"headers":{"X-Api-Key":["********"]}}}"#,
            "endpoint.actions.update.headers.X-Api-Key[0]",
        ),
    ] {
        let text = format!(r#"{{"endpoint":{{"url":"http://h",{given}}}}}"#);
        let created = read(&text).unwrap();
        let refused = created.check_masks().unwrap_err();
        assert_eq!(refused.field(), field);
        assert!(refused.reason().contains("none to keep"), "{refused}");
        let replaced = subscription_from_json(text.as_bytes()).unwrap().replace(&old);
        let kept = field.ends_with("Authorization[0]");
        assert_eq!(replaced.check_masks().is_ok(), kept, "{field}");
    }
    // Elsewhere it is a value like any other.
    read(r#"{"endpoint":{"url":"http://h","headers":{"X-Id":["********"]}}}"#)
        .unwrap()
        .check_masks()
        .unwrap();
}
