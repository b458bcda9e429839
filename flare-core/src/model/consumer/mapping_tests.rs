//! Tables: which mappings are refused, what messages become, and why some become nothing.

use serde_json::{Value, json};

use super::*;
use crate::model::{ChangeRule, ResourceId, Timestamp};

fn users() -> Resource {
    let endpoint = Endpoint::parse("http://api.example.com/users/{id}").unwrap();
    let change = ChangeRule::new("rev", None).unwrap();
    Resource::new(ResourceId::from_bytes([1; 16]), endpoint, change, Timestamp::EPOCH)
}

fn timed_users() -> Resource {
    let change = ChangeRule::new("at", Some("unix-ms")).unwrap();
    Resource { change, ..users() }
}

fn mapping(input: Value) -> Mapping {
    Mapping::new(serde_json::from_value(input).unwrap()).unwrap()
}

fn no_expression(_: &Filter, _: &[u8]) -> Result<bool, String> {
    panic!("there is no expression")
}

/// What a message becomes, a line for each document: `put URL CONTENT`, `delete URL @REVISION`, or a rejection.
fn mapped(input: Value, resource: &Resource, message: &str) -> Vec<String> {
    let said = mapping(input).map(resource, message.as_bytes(), &no_expression);
    let line = |mapped: Result<MappedDocument, Rejection>| match mapped {
        Ok(MappedDocument { url, change: MappedChange::Put(content) }) => {
            format!("put {} {}", url.path(), String::from_utf8(content.to_vec()).unwrap())
        }
        Ok(MappedDocument { url, change: MappedChange::Delete(revision) }) => {
            let revision = revision.map_or_else(|| "newest".to_owned(), |at| at.to_string());
            format!("delete {} @{revision}", url.path())
        }
        Err(rejection) => rejection.to_string(),
    };
    said.into_iter().map(line).collect()
}

const URL: &str = "http://api.example.com/users/{/id}";

#[test]
fn wrong_mappings_are_refused_by_field() {
    let refused = [
        (json!({}), "url: is required"),
        (
            json!({"url": "http://a/users/7"}),
            "url: has no placeholder such as {/user/id}: every message would be the same document",
        ),
        (
            json!({"url": "http://a/users/{id}"}),
            "url: {id} must be a JSON Pointer, such as /user/id",
        ),
        (
            json!({"url": "http://a/users/{/a~2}"}),
            "url: {/a~2} is no JSON Pointer: after ~ only 0 (for ~) or 1 (for /) may stand",
        ),
        (
            json!({"url": "http://a/users/{/id"}),
            "url: has a { that is never closed; write {{ for a brace",
        ),
        (
            json!({"url": "http://{/host}/users/{/id}"}),
            "url: must begin with http:// or https:// and a host; placeholders are for the path",
        ),
        (
            json!({"url": "{/url}"}),
            "url: must begin with http:// or https:// and a host; placeholders are for the path",
        ),
        (json!({"url": "ftp://a/{/id}"}), "url: must be http or https, not \"ftp\""),
        (json!({"url": "http://a/users/{/id}?x=1"}), "url: must not have a query (?…)"),
        (
            json!({"url": URL, "content": "user"}),
            "content: must be a JSON Pointer, such as /user/id",
        ),
        (json!({"url": URL, "content": ""}), "content: must be a JSON Pointer, such as /user/id"),
        (json!({"url": URL, "split": "items"}), "split: must be a JSON Pointer, such as /user/id"),
        (json!({"url": URL, "preset": "kafka"}), "preset: must be sns, eventbridge or debezium"),
        (
            json!({"url": URL, "delete": {"pointer": "op", "equals": "d"}}),
            "delete.pointer: must be a JSON Pointer, such as /user/id",
        ),
        (
            json!({"url": URL, "delete": {"pointer": "/op", "equals": null}}),
            "delete.equals: must be a string, number or boolean",
        ),
        (
            json!({"url": URL, "delete": {"pointer": "/op", "equals": ["d"]}}),
            "delete.equals: must be a string, number or boolean",
        ),
        (json!({"url": URL, "delete": " "}), "delete: must be an expression of 1 to 4096 bytes"),
        (
            json!({"url": URL, "revision": "/ts"}),
            "revision: is of deletions: say which with delete",
        ),
        (
            json!({"url": URL, "preset": "debezium", "content": "/x"}),
            "content: cannot be said with debezium: the row after the change is the document",
        ),
        (
            json!({"url": URL, "preset": "debezium", "delete": "true"}),
            "delete: cannot be said with debezium: op says which rows are gone",
        ),
        (
            json!({"url": URL, "preset": "debezium", "split": "/x"}),
            "split: cannot be said with debezium: a message is about one row",
        ),
    ];
    for (input, said) in refused {
        let input: MappingInput = serde_json::from_value(input).unwrap();
        assert_eq!(Mapping::new(input).unwrap_err().to_string(), said);
    }
}

#[test]
fn a_mapping_has_to_fit_its_resource() {
    let endpoint = Endpoint::parse("http://api.example.com/shops/{shop}/items/{item}").unwrap();
    for (url, fits) in [
        ("http://api.example.com/shops/{/shop}/items/{/item}", true),
        ("HTTP://API.example.com:80/shops/7/items/{/item}", true),
        ("http://api.example.com/{/kind}/{/shop}/items/{/item}", true),
        ("http://api.example.com/shops/s-{/shop}/items/{/item}", true),
        ("https://api.example.com/shops/{/shop}/items/{/item}", false),
        ("http://other.example.com/shops/{/shop}/items/{/item}", false),
        ("http://api.example.com/shops/{/shop}/parts/{/item}", false),
        ("http://api.example.com/shops/{/shop}/items", false),
        ("http://api.example.com/shops/{/shop}/items/{/item}/7", false),
        ("http://api.example.com/shops/{/shop}/items/{/item}/", false),
    ] {
        let refused = mapping(json!({ "url": url })).check_for(&endpoint).err();
        assert_eq!(refused.is_none(), fits, "{url}: {refused:?}");
        assert!(refused.is_none_or(|refused| refused.field() == "url"));
    }
}

#[test]
fn what_was_said_can_be_stored_and_read_again() {
    for input in [
        json!({"url": URL}),
        json!({"url": URL, "content": "/a", "delete": {"pointer": "/op", "equals": 7}, "revision": "/ts"}),
        json!({"url": URL, "delete": "document.op == 'd'", "split": "/items", "preset": "sns"}),
    ] {
        let stored = serde_json::to_value(mapping(input.clone())).unwrap();
        assert_eq!(stored, input);
        assert_eq!(serde_json::from_value::<Mapping>(stored).unwrap(), mapping(input));
    }
    assert!(serde_json::from_value::<Mapping>(json!({"url": "x"})).is_err());
}

#[test]
fn messages_become_documents() {
    let whole = json!({"url": URL});
    let nested = json!({
        "url": "http://api.example.com/users/{/user/id}", "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"}, "revision": "/ts",
    });
    let put = |path: &str, content: &str| vec![format!("put /users/{path} {content}")];
    for (input, message, said) in [
        // All of it, byte for byte, whatever the id is.
        (&whole, r#" {"id": 7, "rev":1} "#, put("7", r#" {"id": 7, "rev":1} "#)),
        (
            &whole,
            r#"{"id":"a b/c?é","rev":1}"#,
            put("a%20b%2Fc%3F%C3%A9", r#"{"id":"a b/c?é","rev":1}"#),
        ),
        (&whole, r#"{"id":true,"rev":1}"#, put("true", r#"{"id":true,"rev":1}"#)),
        (&whole, r#"{"id":1.50,"rev":1}"#, put("1.50", r#"{"id":1.50,"rev":1}"#)),
        (&whole, r#"{"id":"\u0041\n","rev":1}"#, put("A%0A", r#"{"id":"\u0041\n","rev":1}"#)),
        // A part of it.
        (&nested, r#"{"user":{ "rev":3,"id":7 },"op":"u"}"#, put("7", r#"{ "rev":3,"id":7 }"#)),
        (&nested, r#"{"user":{"rev":3,"id":7},"op":null}"#, put("7", r#"{"rev":3,"id":7}"#)),
        // Deleted, as of a revision.
        (&nested, r#"{"user":{"id":7},"op":"d","ts":12}"#, vec!["delete /users/7 @12".into()]),
        (&nested, r#"{"user":{"id":7},"op":"d","ts":"12"}"#, vec!["delete /users/7 @12".into()]),
    ] {
        assert_eq!(mapped(input.clone(), &users(), message), said, "{message}");
    }
    let newest = json!({"url": URL, "delete": {"pointer": "/gone", "equals": true}});
    assert_eq!(mapped(newest, &users(), r#"{"id":7,"gone":true}"#), ["delete /users/7 @newest"]);
}

#[test]
fn revisions_of_deletions_are_read_as_the_resource_says() {
    let input = json!({"url": URL, "delete": {"pointer": "/op", "equals": "d"}, "revision": "/ts"});
    let message = r#"{"id":7,"op":"d","ts":1700000000123}"#;
    let said = mapped(input, &timed_users(), message);
    assert_eq!(said, ["delete /users/7 @1700000000123000000"]);
}

#[test]
fn some_messages_become_nothing_and_say_why() {
    let whole = json!({"url": URL});
    let nested = json!({
        "url": URL, "content": "/user",
        "delete": {"pointer": "/op", "equals": "d"}, "revision": "/ts",
    });
    for (input, message, said) in [
        (&whole, "", "not-json: must be a JSON object, found nothing"),
        (&whole, "[1]", "not-json: must be a JSON object, found an array"),
        (&whole, r#""text""#, "not-json: must be a JSON object, found a string"),
        (
            &whole,
            r#"{"id":7"#,
            "not-json: is not well-formed JSON: EOF while parsing an object at line 1 column 7",
        ),
        (&whole, r#"{"rev":1}"#, "missing: /id: is missing"),
        (&whole, r#"{"id":null,"rev":1}"#, "missing: /id: is missing"),
        (&whole, r#"{"id":7,"id":8,"rev":1}"#, "missing: /id: is repeated"),
        (
            &whole,
            r#"{"id":{},"rev":1}"#,
            "no-scalar: /id: must be a string, number or boolean, found an object",
        ),
        (
            &whole,
            r#"{"id":[7],"rev":1}"#,
            "no-scalar: /id: must be a string, number or boolean, found an array",
        ),
        (&whole, r#"{"id":"","rev":1}"#, "no-scalar: /id: must not be empty"),
        (&whole, r#"{"id":"\ud800","rev":1}"#, "no-scalar: /id: must be a string of valid Unicode"),
        (
            &whole,
            r#"{"id":"..","rev":1}"#,
            "other-resource: its URL is none of a document of http://api.example.com/users/{id}",
        ),
        (&whole, r#"{"id":7}"#, "no-revision: rev: is missing"),
        (&whole, r#"{"id":7,"rev":"x"}"#, r#"no-revision: rev: "x": not a decimal integer"#),
        (&nested, r#"{"id":7}"#, "missing: /user: is missing"),
        (
            &nested,
            r#"{"id":7,"user":"x"}"#,
            "no-revision: /user: document: must be a JSON object, found a string",
        ),
        (&nested, r#"{"id":7,"user":{}}"#, "no-revision: /user: rev: is missing"),
        (&nested, r#"{"id":7,"op":"d"}"#, "missing: /ts: is missing"),
        (
            &nested,
            r#"{"id":7,"op":"d","ts":1.5}"#,
            "no-revision: /ts: must be an integer, found 1.5",
        ),
    ] {
        assert_eq!(mapped(input.clone(), &users(), message), [said], "{message}");
    }
    let bytes = mapping(whole).map(&users(), b"{\"id\":\"\xff\"}", &no_expression);
    let rejection = bytes.into_iter().next().unwrap().unwrap_err();
    assert_eq!(rejection.reason, RejectReason::NotJson);
}

#[test]
fn a_url_too_long_is_none() {
    let message = format!(r#"{{"id":"{}","rev":1}}"#, "x".repeat(3_000));
    let said = mapped(json!({"url": URL}), &users(), &message);
    assert!(said[0].starts_with("other-resource: url: "), "{said:?}");
}

#[test]
fn an_array_is_split_and_each_part_stands_for_itself() {
    let input =
        json!({"url": URL, "split": "/items", "delete": {"pointer": "/gone", "equals": true}});
    let message = r#"{"items":[{"id":1,"rev":1},{"id":2},7,{"id":3,"gone":true}]}"#;
    let said = mapped(input.clone(), &users(), message);
    assert_eq!(
        said,
        [
            r#"put /users/1 {"id":1,"rev":1}"#,
            "no-revision: /items/1: rev: is missing",
            "not-json: /items/2: must be a JSON object, found a number",
            "delete /users/3 @newest",
        ]
    );
    assert_eq!(mapped(input.clone(), &users(), r#"{"items":[]}"#), [""; 0]);
    assert_eq!(
        mapped(input.clone(), &users(), r#"{"items":{}}"#),
        ["missing: /items: must be an array"]
    );
    assert_eq!(mapped(input.clone(), &users(), "{}"), ["missing: /items: is missing"]);
    let many = format!(r#"{{"items":[{}1]}}"#, "1,".repeat(MAX_SPLIT));
    let said = mapped(input, &users(), &many);
    assert_eq!(said, ["too-many: /items: has 10001 elements, at most 10000 may be"]);
}

#[test]
fn expressions_are_asked_about_the_message() {
    let mapping = mapping(json!({"url": URL, "delete": "document.op == 'd'"}));
    assert_eq!(mapping.expression().map(Filter::as_str), Some("document.op == 'd'"));
    let judge = |filter: &Filter, message: &[u8]| {
        assert_eq!(filter.as_str(), "document.op == 'd'");
        match message {
            br#"{"id":7,"rev":1}"# => Ok(false),
            br#"{"id":7}"# => Ok(true),
            _ => Err("no such key: op".to_owned()),
        }
    };
    let mut said = mapping.map(&users(), br#"{"id":7,"rev":1}"#, &judge);
    assert!(matches!(said.remove(0).unwrap().change, MappedChange::Put(_)));
    let mut said = mapping.map(&users(), br#"{"id":7}"#, &judge);
    assert_eq!(said.remove(0).unwrap().change, MappedChange::Delete(None));
    let mut said = mapping.map(&users(), b"{}", &judge);
    assert_eq!(said.remove(0).unwrap_err().to_string(), "expression: no such key: op");
}

#[test]
fn sns_and_eventbridge_are_unwrapped() {
    let sns = json!({"url": URL, "preset": "sns"});
    let bridge = json!({"url": URL, "preset": "eventbridge"});
    for (input, message, said) in [
        (
            &sns,
            r#"{"Type":"Notification","Message":"{\"id\":7, \"rev\":1}"}"#,
            r#"put /users/7 {"id":7, "rev":1}"#,
        ),
        (&sns, r#"{"Type":"SubscriptionConfirmation"}"#, "envelope: /Message: is missing"),
        (&sns, r#"{"Message":{"id":7}}"#, "envelope: /Message: must be a string"),
        (
            &sns,
            r#"{"Message":"hello"}"#,
            "not-json: is not well-formed JSON: expected value at line 1 column 1",
        ),
        (
            &bridge,
            r#"{"source":"shop","detail":{"id":7,"rev":1}}"#,
            r#"put /users/7 {"id":7,"rev":1}"#,
        ),
        (&bridge, r#"{"source":"shop"}"#, "envelope: /detail: is missing"),
        (&bridge, r#"{"detail":7}"#, "not-json: must be a JSON object, found a number"),
    ] {
        assert_eq!(mapped(input.clone(), &users(), message), [said], "{message}");
    }
}

#[test]
fn debezium_tells_rows() {
    let input = json!({"url": URL, "preset": "debezium", "revision": "/rev"});
    for (message, said) in [
        (
            r#"{"op":"c","before":null,"after":{"id":7,"rev":1}}"#,
            &[r#"put /users/7 {"id":7,"rev":1}"#][..],
        ),
        (r#"{"op":"r","after":{"id":7,"rev":1}}"#, &[r#"put /users/7 {"id":7,"rev":1}"#]),
        (
            r#"{"op":"u","before":{"id":6,"rev":1},"after":{"id":7,"rev":2}}"#,
            &[r#"put /users/7 {"id":7,"rev":2}"#],
        ),
        (r#"{"op":"d","before":{"id":7,"rev":2},"after":null}"#, &["delete /users/7 @2"]),
        (
            r#"{"schema":{},"payload":{"op":"c","after":{"id":7,"rev":1}}}"#,
            &[r#"put /users/7 {"id":7,"rev":1}"#],
        ),
        (r#"{"op":"t"}"#, &[]),
        (r#"{"schema":null,"op":"m"}"#, &[]),
        (r#"{"schema":{},"payload":null}"#, &[]),
        ("null", &[]),
        ("", &[]),
        (r#"{"op":"x"}"#, &["envelope: /op: must be c, u, r, d, t or m"]),
        (r#"{"after":{"id":7}}"#, &["envelope: /op: is missing"]),
        (r#"{"op":"d","before":null}"#, &["envelope: /before: is missing"]),
        (r#"{"schema":{},"payload":{"op":"u"}}"#, &["envelope: /payload/after: is missing"]),
        ("x", &["not-json: is not well-formed JSON: expected value at line 1 column 1"]),
    ] {
        assert_eq!(mapped(input.clone(), &users(), message), said, "{message}");
    }
}

#[test]
fn reasons_are_written_and_read() {
    for reason in RejectReason::ALL {
        assert_eq!(RejectReason::parse(reason.as_str()), Some(reason));
    }
    assert_eq!(RejectReason::parse("other"), None);
}
