//! What is described is what is read: every bound of the OpenAPI document, tried.

use serde_json::{Value, json};

use super::read;

/// A subscription with this at `path`, which is below `delivery`.
fn delivering_at(path: &[&str], value: Value) -> String {
    let delivery = path.iter().rev().fold(value, |inner, name| json!({ *name: inner }));
    json!({"endpoint": {"url": "http://h"}, "delivery": delivery}).to_string()
}

#[test]
fn bounds_are_as_described() {
    let described = serde_json::to_value(crate::openapi()).unwrap();
    let mut tried = 0;
    for (schema, path) in [
        ("Delivery", None),
        ("Retry", Some("retry")),
        ("Rate", Some("rate")),
        ("Batch", Some("batch")),
    ] {
        let fields = &described["components"]["schemas"][schema]["properties"];
        for (name, field) in fields.as_object().unwrap() {
            let Some(low) = field["minimum"].as_i64() else { continue };
            let high = field["maximum"].as_i64().unwrap_or(u32::MAX.into());
            let path: Vec<&str> = path.into_iter().chain([name.as_str()]).collect();
            for beyond in [low - 1, high + 1] {
                let refused = read(&delivering_at(&path, beyond.into())).unwrap_err();
                assert_eq!(refused.field(), format!("delivery.{}", path.join(".")));
                assert_eq!(refused.reason(), format!("must be an integer from {low} to {high}"));
            }
            for within in [low, high] {
                // It may contradict another field, or lack one.
                let taken = read(&delivering_at(&path, within.into()));
                let refused = taken.err().map(|it| it.reason().to_owned()).unwrap_or_default();
                assert!(!refused.contains("must be an integer"), "{path:?} {within}: {refused}");
            }
            tried += 1;
        }
    }
    assert_eq!(tried, 10);
}
