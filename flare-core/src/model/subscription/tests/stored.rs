//! The form that stores keep, byte for byte as every version so far has written it: whatever reads
//! and writes it must take these texts and give them back.

use std::time::Duration;

use proptest::prelude::*;

use super::{OTHER_SECRET, SECRET};
use crate::model::subscription::{BatchOptions, Method, Mode, RetryPolicy};
use crate::model::{Action, SubscriptionInput, SubscriptionSpec};

fn store(spec: &SubscriptionSpec) -> String {
    serde_json::to_string(&spec.stored()).unwrap()
}

fn load(text: &str) -> SubscriptionSpec {
    SubscriptionSpec::from_stored(text).unwrap()
}

const PLAIN: &str = concat!(
    r#"{"endpoint":{"url":"http://h/{id}","method":"POST","headers":{}},"#,
    r#""delivery":{"success":[200,201,202,204],"discard":[],"retry":{"numRetries":83,"#,
    r#""numNoDelayRetries":0,"minDelayTarget":5,"numMinDelayRetries":2,"maxDelayTarget":3600,"#,
    r#""numMaxDelayRetries":69,"backoffFunction":"exponential"},"lanes":1},"#,
    r#""content":{"document":true,"envelope":true},"mode":"active","backfill":false}"#,
);

const FULL: &str = concat!(
    r#"{"endpoint":{"url":"https://client.example/hook/{id}?r={revision}","method":"PUT","#,
    r#""headers":{"Authorization":["Bearer t0ken"],"X-Id":["{id}","two"]},"#,
    r#""actions":{"create":{"method":"GET"},"update":{"headers":{"X-Rev":["{revision}"]}},"#,
    r#""delete":{"url":"https://client.example/gone/{id}","method":"DELETE","headers":{}}}},"#,
    r#""delivery":{"success":[200,204],"discard":[422],"retry":{"numRetries":9,"#,
    r#""numNoDelayRetries":1,"minDelayTarget":2,"numMinDelayRetries":3,"maxDelayTarget":60,"#,
    r#""numMaxDelayRetries":4,"backoffFunction":"geometric"},"ttl":"72h","#,
    r#""rate":{"limit":10,"period":"1500ms"},"concurrency":8,"timeout":"30s","lanes":4,"#,
    r#""minInterval":"90s"},"#,
    r#""content":{"document":false,"envelope":true},"#,
    r#""data":{"tenant":"acme/{id}","list":[1,true,"é\n"],"$.a":-1.5},"#,
    r#""filter":"document.public == \"é\"","#,
    r#""signing":{"secrets":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw","#,
    r#""whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDw2hxhD0b"]},"mode":"passive","backfill":true}"#,
);

fn full() -> SubscriptionSpec {
    let retry = RetryPolicy::builder()
        .num_retries(9)
        .num_no_delay_retries(1)
        .min_delay_target(Duration::from_secs(2))
        .num_min_delay_retries(3)
        .max_delay_target(Duration::from_secs(60))
        .num_max_delay_retries(4)
        .backoff_function("geometric".parse().unwrap());
    SubscriptionSpec::post("https://client.example/hook/{id}?r={revision}")
        .method(Method::Put)
        .header("Authorization", "Bearer t0ken")
        .header("X-Id", "{id}")
        .header("x-id", "two")
        .action_method(Action::Create, Method::Get)
        .action_url(Action::Delete, "https://client.example/gone/{id}")
        .action_method(Action::Delete, Method::Delete)
        .action_without_headers(Action::Delete)
        .action_header(Action::Update, "X-Rev", "{revision}")
        .success([204, 200])
        .discard([422])
        .retry(retry.build().unwrap())
        .ttl(Duration::from_secs(72 * 3600))
        .rate(10, Duration::from_millis(1_500))
        .concurrency(8)
        .timeout(Duration::from_secs(30))
        .lanes(4)
        .min_interval(Duration::from_secs(90))
        .document(false)
        .data("tenant", "acme/{id}")
        .data("list", serde_json::json!([1, true, "é\n"]))
        .data("$.a", -1.5)
        .filter("document.public == \"é\"")
        .signing([SECRET, OTHER_SECRET])
        .mode(Mode::Passive)
        .backfill(true)
        .build()
        .unwrap()
}

/// Many notifications in a request.
const BATCHED: &str = concat!(
    r#"{"endpoint":{"url":"http://h/hook","method":"POST","headers":{}},"#,
    r#""delivery":{"success":[200,201,202,204],"discard":[],"retry":{"numRetries":83,"#,
    r#""numNoDelayRetries":0,"minDelayTarget":5,"numMinDelayRetries":2,"maxDelayTarget":3600,"#,
    r#""numMaxDelayRetries":69,"backoffFunction":"exponential"},"lanes":1,"#,
    r#""batch":{"max":100,"wait":"250ms","bytes":"64KiB"}},"#,
    r#""content":{"document":true,"envelope":true},"mode":"active","backfill":false}"#,
);

fn batched() -> SubscriptionSpec {
    let batch = BatchOptions::of(100).wait(Duration::from_millis(250)).limit_bytes(64 << 10);
    SubscriptionSpec::post("http://h/hook").batch(batch).build().unwrap()
}

#[test]
fn is_written_as_ever() {
    assert_eq!(store(&batched()), BATCHED);
    assert_eq!(store(&SubscriptionSpec::post("http://h/{id}").build().unwrap()), PLAIN);
    assert_eq!(store(&full()), FULL);
}

#[test]
fn what_was_ever_written_is_read() {
    assert_eq!(load(PLAIN), SubscriptionSpec::post("http://h/{id}").build().unwrap());
    assert_eq!(load(FULL), full());
    assert_eq!(load(BATCHED), batched());
}

/// One URL for each action, and none besides.
const OF_ACTIONS: &str = concat!(
    r#"{"endpoint":{"method":"POST","headers":{},"actions":{"create":{"url":"http://h/c"},"#,
    r#""update":{"url":"http://h/u"},"delete":{"url":"http://h/d"}}},"#,
    r#""delivery":{"success":[200],"discard":[],"retry":{"numRetries":3,"#,
    r#""numNoDelayRetries":0,"minDelayTarget":20,"numMinDelayRetries":0,"maxDelayTarget":20,"#,
    r#""numMaxDelayRetries":0,"backoffFunction":"linear"},"lanes":1},"#,
    r#""content":{"document":true,"envelope":false},"mode":"active","backfill":false}"#,
);
/// Numbers that no float holds, as a client wrote them.
const EXACT: &str = concat!(
    r#"{"endpoint":{"url":"http://h","method":"POST","headers":{}},"#,
    r#""delivery":{"success":[200],"discard":[],"retry":{"numRetries":3,"#,
    r#""numNoDelayRetries":0,"minDelayTarget":20,"numMinDelayRetries":0,"maxDelayTarget":20,"#,
    r#""numMaxDelayRetries":0,"backoffFunction":"arithmetic"},"lanes":1},"#,
    r#""content":{"document":true,"envelope":true},"#,
    r#""data":{"z":1.10,"a":[123456789012345678901234567890,-0.0,1E+400],"":"{{x}}","b":false},"#,
    r#""mode":"active","backfill":false}"#,
);
/// What a newer version might have put beside everything this one knows.
const NEWER: &str = concat!(
    r#"{"endpoint":{"url":"http://h","method":"POST","headers":{},"#,
    r#""actions":{"update":{"method":"PUT","x":1.000},"upsert":{"url":"http://h/s"}},"#,
    r#""proxy":{"deep":[1,{"a":null}]}},"#,
    r#""delivery":{"success":[200],"discard":[],"retry":{"numRetries":3,"#,
    r#""numNoDelayRetries":0,"minDelayTarget":20,"numMinDelayRetries":0,"maxDelayTarget":20,"#,
    r#""numMaxDelayRetries":0,"backoffFunction":"linear","jitter":12345678901234567890123},"#,
    r#""rate":{"limit":1,"period":"1s","burst":"\u0041"},"lanes":1,"minInterval":"5s","#,
    r#""merge":{"max":10}},"content":{"document":true,"envelope":true,"format":"xml"},"#,
    r#""signing":{"secrets":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],"keys":["whsk_x"]},"#,
    r#""mode":"active","backfill":false,"auth":{"bearer":"t0ken"},"note":null}"#,
);

#[test]
fn whatever_is_read_is_written_again_as_it_was() {
    for text in [PLAIN, FULL, BATCHED, OF_ACTIONS, EXACT, NEWER] {
        let spec = load(text);
        assert_eq!(store(&spec), text);
        assert_eq!(load(&store(&spec)), spec);
    }
}

#[test]
fn whatever_order_its_fields_have_it_is_read() {
    // A `Value` sorts keys, so nothing but the order of `data` may differ.
    let value: serde_json::Value = serde_json::from_str(FULL).unwrap();
    let spec = load(&value.to_string());
    assert_eq!(serde_json::to_value(spec.stored()).unwrap(), value);
    assert!(store(&spec).starts_with(r#"{"endpoint":{"url":"https:"#), "{}", store(&spec));
}

#[test]
fn what_is_not_there_is_the_default() {
    let least = r#"{"endpoint":{"url":"http://h/{id}"}}"#;
    assert_eq!(load(least), load(PLAIN));
    assert_eq!(store(&load(least)), PLAIN);
    let some =
        load(r#"{"endpoint":{"url":"http://h/{id}"},"delivery":{"retry":{"numRetries":5}}}"#);
    let retry = some.delivery().retry();
    assert_eq!((retry.num_retries(), retry.max_delay_target().as_secs()), (5, 20), "as SNS has it");
    assert_eq!(some.delivery().success().iter().count(), 4);
}

#[test]
fn what_a_newer_version_put_there_outlives_a_replacement() {
    let newer = load(NEWER);
    let next =
        SubscriptionSpec::post("http://new/").signing([OTHER_SECRET]).lanes(2).concurrency(2);
    let next = SubscriptionInput::try_from(next).unwrap().replace(&newer);
    let text = store(&next);
    for kept in [
        r#""proxy":{"deep":[1,{"a":null}]}"#,
        r#""jitter":12345678901234567890123"#,
        r#""merge":{"max":10}"#,
        r#""format":"xml""#,
        r#""keys":["whsk_x"]"#,
        r#""auth":{"bearer":"t0ken"},"note":null"#,
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    // What is known is what was given; whose object is gone goes with it.
    assert!(
        !text.contains("upsert") && !text.contains("burst") && !text.contains("minInterval"),
        "{text}"
    );
    assert_eq!(store(&load(&text)), text);
    for shown in [serde_json::to_string(&newer).unwrap(), format!("{newer:?}")] {
        assert!(!shown.contains("t0ken") && !shown.contains("whsk_x"), "{shown}");
    }
}

#[test]
fn what_may_be_shown_hides_the_secrets_and_cannot_be_stored_by_mistake() {
    let shown = serde_json::to_string(&full()).unwrap();
    let hidden = FULL
        .replace("Bearer t0ken", "********")
        .replace(&format!(r#"["{SECRET}","{OTHER_SECRET}"]"#), "2");
    assert_eq!(shown, hidden);
    let refused = SubscriptionSpec::from_stored(&shown).unwrap_err();
    assert_eq!(refused.to_string(), "signing.secrets: must be a list");
}

#[test]
fn what_is_damaged_is_refused_without_a_value() {
    let damage = |from: &str, to: &str| {
        assert!(FULL.contains(from), "{from}");
        SubscriptionSpec::from_stored(&FULL.replace(from, to)).unwrap_err().to_string()
    };
    for (from, to, refused) in [
        (
            "https://client.example/hook",
            "ftp://t0ken",
            "endpoint.url: must be an http or https URL",
        ),
        (r#""method":"GET""#, r#""method":"t0ken""#, "must be one of `GET`, `POST`"),
        (r#"["Bearer t0ken"]"#, r#""Bearer t0ken""#, "column 123: must be a sequence"),
        (r#"["{id}","two"]"#, "[]", "endpoint.headers.X-Id: must have at least one value"),
        ("[200,204]", "[200,999]", "delivery.success[1]: must be an integer from 100 to 599"),
        ("[422]", "[204]", "delivery.discard: must not have 204"),
        (r#""numRetries":9"#, r#""numRetries":1000"#, "delivery.retry.numRetries: must be"),
        (r#""limit":10"#, r#""limit":-1"#, "must be u32"),
        (r#""limit":10"#, r#""limit":0"#, "delivery.rate.limit: must be an integer from 1"),
        ("1500ms", "t0ken", "must be a duration like"),
        (r#""lanes":4"#, r#""lanes":70000"#, "delivery.lanes: must be an integer from 1 to 1024"),
        (
            r#""document":false,"envelope":true"#,
            r#""document":false,"envelope":false"#,
            "content.document",
        ),
        ("acme/{id}", "acme/{id", "data.tenant: has a { that is never closed"),
        ("[1,true,", "[1,null,", "data.list[1]: must be a boolean, a number or a string, not null"),
        (SECRET, "whsec_t0ken", "signing.secrets[0]: must be"),
        (r#""passive""#, r#""t0ken""#, "must be `active` or `passive`"),
        (r#"{"endpoint""#, r#"{"form":2,"endpoint""#, "form: is 2, and this version reads 1 only"),
        (r#""endpoint":{"#, r#""start":{"#, "missing field `endpoint`"),
        (r#""backfill":true}"#, r#""backfill":true"#, ": EOF while parsing an object"),
    ] {
        let error = damage(from, to);
        assert!(error.contains(refused), "{from} -> {to}: {error}");
        assert!(!error.contains("t0ken") && !error.contains("whsec_MfKQ"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever becomes of a text, it is read or refused; what is read is written so that it is read again.
    #[test]
    fn any_damage_is_read_or_refused(
        text in prop_oneof![Just(FULL), Just(NEWER), Just(EXACT), Just(OF_ACTIONS)],
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), Just(b'0'), Just(b'"'), Just(b'x'), Just(b' ')],
    ) {
        let mut bytes = text.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        if let Ok(spec) = SubscriptionSpec::from_stored(&text) {
            let again = store(&spec);
            prop_assert_eq!(store(&load(&again)), again);
        }
    }
}
