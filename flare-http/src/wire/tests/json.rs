//! Reading as such: whatever a type wants, what is refused says where, what must be there and what is.

use serde::Deserialize;
use serde_json::json;

use super::super::entries::Entries;
use super::super::json::read;
use super::super::operation::Nothing;
use super::super::span::Span;
use super::super::whole::Whole;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only what is refused is looked at")]
struct All {
    text: Option<String>,
    flag: Option<bool>,
    list: Option<Vec<String>>,
    whole: Option<Whole<1, 5>>,
    span: Option<Span>,
    object: Option<Box<All>>,
}

/// Everything but what is wanted, by each name; never the value itself.
#[test]
fn what_is_of_another_kind_is_refused_by_both_kinds_and_its_path() {
    let kinds = [
        (json!(true), "true or false"),
        (json!(2), "a number"),
        (json!("s3cret"), "a string"),
        (json!(["s3cret"]), "a list"),
        (json!({"s3cret": 1}), "an object"),
    ];
    for (field, wanted, of) in [
        ("text", "a string", "a string"),
        ("flag", "true or false", "true or false"),
        ("list", "a list", "a list"),
        ("whole", "an integer", "a number"),
        ("span", "a duration string like \"500ms\", \"1s\", \"5m\" or \"72h\"", ""),
        ("object", "an object", "an object"),
    ] {
        for (value, kind) in kinds.iter().filter(|(_, kind)| *kind != of) {
            if field == "span" && value.is_string() {
                continue;
            }
            let body = json!({"object": {"object": {field: value}}}).to_string();
            let refused = read::<All>(body.as_bytes()).unwrap_err();
            assert_eq!(refused.field(), format!("object.object.{field}"));
            assert_eq!(refused.reason(), format!("must be {wanted}, not {kind}"));
        }
        let null = json!({ field: null }).to_string();
        assert!(read::<All>(null.as_bytes()).is_ok(), "null is not given");
    }
    let refused = read::<All>(br#"{"list":["a",7]}"#).unwrap_err();
    assert_eq!(refused.to_string(), "list[1]: must be a string, not a number");
}

#[test]
fn whole_numbers_are_taken_by_their_text() {
    for (text, taken) in [("1", true), ("5", true), ("0", false), ("6", false), ("-1", false)] {
        assert_eq!(read::<Whole<1, 5>>(text.as_bytes()).is_ok(), taken, "{text}");
    }
    for text in ["1.0", "1e0", "5000000000", "99999999999999999999", "1e400", "-0"] {
        let refused = read::<Whole<0, 5>>(text.as_bytes()).unwrap_err();
        assert_eq!(refused.to_string(), "must be an integer from 0 to 5", "{text}");
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
    Green,
    Blue,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Plain(u16, i8);

#[derive(Debug, PartialEq, Deserialize)]
struct Wrapped(String);

#[test]
fn whatever_serde_derives_is_read() {
    assert_eq!(read::<Colour>(b"\"green\"").unwrap(), Colour::Green);
    let refused = |body: &[u8]| read::<Colour>(body).unwrap_err().to_string();
    assert_eq!(refused(b"\"s3cret\""), "must be red, green or blue");
    assert_eq!(refused(b"7"), "must be a string, not a number");
    assert_eq!(refused(br#"{"red":1}"#), "must be a string, not an object");
    assert_eq!(read::<Plain>(b"[65535,-128]").unwrap(), Plain(65_535, -128));
    assert_eq!(read::<Wrapped>(b"\"x\"").unwrap(), Wrapped("x".to_owned()));
    for (body, refusal) in [
        ("[65536,1]", "[0]: must be within the range of u16"),
        ("[1,128]", "[1]: must be within the range of i8"),
        ("[1.5,1]", "[0]: must be an integer within range"),
        ("[99999999999999999999,1]", "[0]: must be an integer within range"),
        ("[\"1\",1]", "[0]: must be an integer, not a string"),
    ] {
        assert_eq!(read::<Plain>(body.as_bytes()).unwrap_err().to_string(), refusal, "{body}");
    }
    assert!(read::<Wrapped>(b"7").is_err() && read::<Vec<f64>>(b"[1.5]").is_err());
}

#[test]
fn keys_are_given_once_and_known() {
    let refused = |body: &str| read::<All>(body.as_bytes()).unwrap_err().to_string();
    assert_eq!(refused(r#"{"object":{"x":1,"x":1}}"#), "object.x: is given twice");
    assert_eq!(
        refused(r#"{"object":{"x":1}}"#),
        "object.x: is unknown; known here: text, flag, list, whole, span, object"
    );
    let nothing = read::<Nothing>(br#"{"x":1}"#).err().unwrap();
    assert_eq!(nothing.to_string(), "x: is unknown: there are no fields here");
    assert!(read::<Nothing>(b" {} ").is_ok());
    let entries: Entries<String> = read(br#"{"b":"1","a":"2"}"#).unwrap();
    assert_eq!(entries.0, [("b".to_owned(), "1".to_owned()), ("a".to_owned(), "2".to_owned())]);
}
