//! Takes arbitrary input; checks that nothing panics and that what is accepted comes back.

use flare_core::model::{Action, SubscriptionSpec};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::{read, read_bytes};

/// JSON values that are often, but not always, what a subscription may hold.
fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i128>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,30})\\.[0-9]{1,20}([eE][+-]?[0-9]{1,4})?",
        "[a-z{} é\"]{0,8}".prop_map(|s| serde_json::Value::from(s).to_string()),
    ]
}

fn key() -> impl Strategy<Value = String> {
    "[a-zA-Z]{1,6}|\\PC{0,4}"
}

fn subscription() -> impl Strategy<Value = String> {
    let list = vec(scalar(), 0..4).prop_map(|values| format!("[{}]", values.join(",")));
    let data = btree_map(key(), prop_oneof![scalar(), list], 0..5).prop_map(|entries| {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(k, v)| format!("{}:{v}", serde_json::Value::from(k)))
            .collect();
        format!("{{{}}}", entries.join(","))
    });
    let codes = vec(90u16..610, 0..4);
    let duration = "[0-9]{1,4}(ms|s|m|h)";
    let headers = vec("[ -~]{0,8}", 1..3);
    let parts = (option::of(data), codes, option::of(duration), headers, 0u32..200, any::<bool>());
    parts.prop_map(|(data, codes, ttl, values, retries, envelope)| {
        serde_json::json!({
            "endpoint": {"url": "http://h/{id}", "headers": {"X": values}},
            "delivery": {"discard": codes, "ttl": ttl, "retry": {"numRetries": retries}},
            "content": {"envelope": envelope},
        })
        .to_string()
        .trim_end_matches('}')
        .to_owned()
            + &format!("}},\"data\":{}}}", data.unwrap_or_else(|| "null".to_owned()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read_bytes(&bytes);
    }

    #[test]
    fn any_json_like_text_is_read_or_refused(text in "[\\[\\]{}:,\"a-e0-9.\\\\ntu-]{0,80}") {
        let _ = read(&text);
        let text = format!(r#"{{"endpoint":{text}}}"#);
        let _ = read(&text);
    }

    #[test]
    fn any_change_of_a_good_one_is_read_or_refused(at in 0usize..400, byte in any::<u8>()) {
        let mut bytes = br#"{"endpoint":{"url":"http://h/{id}","method":"PUT","headers":{"A":["{id}"]}},
            "delivery":{"success":[200],"retry":{"numRetries":3},"rate":{"limit":1,"period":"1s"}},
            "data":{"a":[1,"x",true]},"signing":{"secrets":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}}"#
            .to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(spec) = read_bytes(&bytes) {
            let _ = spec.request_for(Action::Delete);
        }
    }

    #[test]
    fn what_is_accepted_is_stored_and_comes_back(text in subscription()) {
        if let Ok(spec) = read(&text) {
            let stored = serde_json::to_string(&spec.stored()).unwrap();
            let back = SubscriptionSpec::from_stored(&stored).unwrap();
            prop_assert_eq!(&back, &spec);
            prop_assert_eq!(serde_json::to_string(&back.stored()).unwrap(), stored);
        }
    }
}

/// Otherwise the round trip above would hold of nothing.
#[test]
fn many_generated_subscriptions_are_accepted() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let accepted = (0..500).filter(|_| {
        let text = subscription().new_tree(&mut runner).unwrap().current();
        read(&text).is_ok()
    });
    let accepted = accepted.count();
    assert!(accepted > 25, "{accepted} of 500");
}
