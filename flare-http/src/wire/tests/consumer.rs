//! Consumers as users write them: what is read, what is refused and by which path, and the words of both.

use flare_core::model::{ConsumerStatus, Invalid, NewConsumer, OnReject};
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde_json::json;

use super::super::consumer::ConsumerInput;
use super::super::word::Vocabulary;

fn read(json: &[u8]) -> Result<NewConsumer, Invalid> {
    super::super::json::read::<ConsumerInput>(json)?.try_into()
}

#[test]
fn any_key_that_is_not_known_is_the_kind_wherever_it_stands() {
    for text in [
        r#"{"sqs":{"queue":"a","n":1.5},"document":{"url":"x"},"onReject":"leave"}"#,
        r#"{"onReject":"leave","document":{"url":"x"},"sqs":{"n":1.5,"queue":"a"}}"#,
    ] {
        let new = read(text.as_bytes()).unwrap();
        assert_eq!(new.source.kind(), "sqs");
        assert_eq!(new.source.values(), json!({"queue": "a", "n": 1.5}));
        assert_eq!((new.document.url.as_str(), new.on_reject), ("x", OnReject::Leave));
    }
    let plain =
        read(br#"{"a":{},"document":{"url":"x"},"onReject":null,"resource":null}"#).unwrap();
    assert_eq!(plain.on_reject, OnReject::Keep);
}

#[test]
fn wrong_consumers() {
    for (json, refusal) in [
        ("[]", "must be an object, not a list"),
        ("{}", "source: names no source: give one of sqs, rabbitmq, kinesis, or another kind"),
        (r#"{"a":{}}"#, "document: is required"),
        (r#"{"a":7,"document":{"url":"x"}}"#, "a: must be an object, not a number"),
        (r#"{"a":null,"document":{"url":"x"}}"#, "a: must be an object, not null"),
        (r#"{"a":{"b":1e999},"document":{"url":"x"}}"#, "a.b: cannot be kept: number out of range"),
        (r#"{"a":{},"a":{}}"#, "a: is given twice"),
        (r#"{"a":{},"b":{}}"#, "b: is unknown, or a second source: a is taken for the one it has"),
        (r#"{"a":{},"document":{"url":7}}"#, "document.url: must be a string, not a number"),
        (r#"{"a":{},"document":{"url":"x","delete":[]}}"#, "document.delete: must be"),
        (r#"{"onReject":"s3cret"}"#, "onReject: must be keep or leave"),
        (r#"{"resource":1}"#, "resource: must be a string, not a number"),
        (r#"{"createdAt":"s3cret"}"#, "createdAt: is read-only"),
    ] {
        let refused = read(json.as_bytes()).unwrap_err().to_string();
        assert!(refused.starts_with(refusal), "{json}: {refused}");
    }
}

/// They are read and stored by the model's names, and shown and described by these.
#[test]
fn words_are_the_models() {
    fn check<T: Vocabulary + Serialize>() {
        for word in T::ALL {
            assert_eq!(json!(word), json!(word.word()));
        }
    }
    check::<ConsumerStatus>();
    check::<OnReject>();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_change_of_a_good_one_is_read_or_refused(at in 0usize..200, byte in any::<u8>()) {
        let mut bytes = br#"{"sqs":{"queue":"a","n":[1,{}]},"document":{"url":"http://h/{/id}",
            "delete":{"pointer":"/op","equals":"d"}},"onReject":"leave"}"#.to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(&bytes);
    }
}
