//! What holds for every document: never a panic, and the same answer as a slow, plain reading.

use flare_core::model::{ChangeRule, Revision};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) }
}

fn changes() -> impl Strategy<Value = ChangeRule> {
    let field = select(vec!["a", "b", "/a", "/a/b", "/a/0", "/b/1/a", "/", "/a~1b/a"]);
    let format = select(vec![
        None,
        Some("unix"),
        Some("unix-ms"),
        Some("rfc3339"),
        Some("2006-01-02"),
        Some("15:04:05.000 02 Jan 06 MST"),
    ]);
    (field, format).prop_map(|(field, format)| ChangeRule::new(field, format).unwrap())
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<i128>().prop_map(|number| number.to_string()),
        (-1e18..1e18_f64).prop_map(|number| format!("{number:?}")),
        any::<i64>().prop_map(|number| format!("\"{number}\"")),
        (-20_000_000_000_i64..20_000_000_000).prop_map(|number| number.to_string()),
        select(vec!["null", "true", "false", "1.0", "1e3", "-0", "\"007\"", "\"\\u0031\""])
            .prop_map(str::to_owned),
        any::<i64>().prop_map(|nanos| {
            format!("\"{}\"", jiff::Timestamp::from_nanosecond(nanos.into()).unwrap())
        }),
        ".{0,8}".prop_map(|text| Value::from(text).to_string()),
    ]
}

/// JSON text whose objects repeat their few keys now and then.
fn json() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 32, 4, |inner| {
        let key = select(vec!["a", "b", "", "a/b", "c", "\\u0061"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((key, inner), 0..4).prop_map(|pairs| {
                let pairs: Vec<_> =
                    pairs.iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", pairs.join(","))
            }),
        ]
    })
}

/// The revision by way of a `Value`, with floats kept out by looking at the number's own text.
fn oracle(change: &ChangeRule, document: &str) -> Option<Revision> {
    let value: Value = serde_json::from_str(document).ok()?;
    value.as_object()?;
    let found = match change.field().as_str() {
        pointer if pointer.starts_with('/') => value.pointer(pointer)?,
        key => value.get(key)?,
    };
    // A number that is no i64 is a float or too large; "-0" is the one integer serde_json floats.
    let integer = || match found {
        Value::Number(number) if number.to_string() == "-0.0" => Some(0),
        Value::Number(number) => number.as_i64(),
        Value::String(text) if text.starts_with('+') => None,
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let nanos = match change.format().as_str() {
        None => integer()?,
        Some("unix") => integer()?.checked_mul(1_000_000_000)?,
        Some("unix-ms") => integer()?.checked_mul(1_000_000)?,
        Some("rfc3339") => {
            let instant: jiff::Timestamp = found.as_str()?.parse().ok()?;
            instant.as_nanosecond().try_into().ok()?
        }
        Some(layout) => {
            flare_core::model::Layout::parse(layout).unwrap().parse_nanos(found.as_str()?).ok()?
        }
    };
    Some(Revision::new(nanos))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn reads_what_a_value_would_give(change in changes(), document in json()) {
        match change.read(document.as_bytes()) {
            Ok(revision) => prop_assert_eq!(Some(revision), oracle(&change, &document)),
            // A Value keeps the last of repeated keys, so that it has nothing to say there.
            Err(invalid) if invalid.reason() == "is repeated" => {
                let keys = document.matches("\"a\"").count()
                    + document.matches("\"\\u0061\"").count()
                    + document.matches("\"b\"").count()
                    + document.matches("\"\"").count()
                    + document.matches("\"a/b\"").count();
                prop_assert!(keys >= 2);
            }
            Err(invalid) => {
                prop_assert_eq!(None, oracle(&change, &document), "{}", invalid);
                let field = invalid.field();
                prop_assert!(field == "document" || field == change.field().as_str());
            }
        }
    }

    /// The same within an object that always leads to the value, so that most documents are read.
    #[test]
    fn reads_every_scalar_as_a_value_would(
        change in changes(),
        value in scalar(),
        noise in json(),
    ) {
        let document = match change.field().as_str() {
            "a" | "/a" => format!(r#"{{"z":{noise},"a":{value}}}"#),
            "b" => format!(r#"{{"b":{value},"z":{noise}}}"#),
            "/a/b" => format!(r#"{{"a":{{"z":{noise},"b":{value}}}}}"#),
            "/a/0" => format!(r#"{{"a":[{value},{noise}]}}"#),
            "/b/1/a" => format!(r#"{{"b":[{noise},{{"a":{value}}}]}}"#),
            "/" => format!(r#"{{"z":{noise},"":{value}}}"#),
            _ => format!(r#"{{"a/b":{{"a":{value}}},"z":{noise}}}"#),
        };
        let wanted = oracle(&change, &document);
        prop_assert_eq!(change.read(document.as_bytes()).ok(), wanted, "{}", document);
    }

    #[test]
    fn accepts_only_what_a_value_would(change in changes(), document in json(), at: prop::sample::Index, slip: char) {
        let mut letters: Vec<char> = document.chars().collect();
        let at = at.index(letters.len());
        letters[at] = slip;
        let document: String = letters.into_iter().collect();
        if change.read(document.as_bytes()).is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&document).is_ok());
        }
    }

    #[test]
    fn no_bytes_break_it(change in changes(), bytes: Vec<u8>, text in ".{0,64}") {
        let _ = change.read(&bytes);
        let _ = change.read(text.as_bytes());
        let _ = change.read_shown(&text);
        let _ = change.read(format!(r#"{{"a":{text}}}"#).as_bytes());
        let _ = change.read(format!(r#"{{"a":{}}}"#, Value::from(text)).as_bytes());
    }

    #[test]
    fn no_field_or_format_breaks_it(field in ".{0,16}", format in ".{0,16}", pointer in "(/|~[01]|[a~0-9]){0,12}") {
        let _ = ChangeRule::new(&field, Some(&format));
        let _ = ChangeRule::new(&format!("/{pointer}"), None).map(|change| change.read(b"{\"a\":[[1]]}"));
    }

    #[test]
    fn what_is_shown_is_read_back(change in changes(), number: i64) {
        let revision = Revision::new(number);
        prop_assert_eq!(change.read_shown(&change.show(revision)), Ok(revision));
    }
}
