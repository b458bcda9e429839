//! Takes fields of a stored JSON object that this version does not know; gives them back where they
//! were when the object is written again. A newer version may have put them there.

use std::fmt;

use serde_json::value::RawValue;

use super::json::Json;

/// The deepest that fields are kept: far beyond what Flare writes.
const DEEPEST: usize = 16;

/// Unknown fields, each with the path of the object it stands in. Shows their paths only: a newer
/// version may keep secrets there.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptFields(Vec<KeptField>);

#[derive(Clone, PartialEq, Eq)]
struct KeptField {
    path: Vec<String>,
    /// The value's text, exactly as it was written.
    text: String,
}

impl KeptFields {
    /// Keeps the field at `path`, which ends with its own name.
    pub(super) fn keep(&mut self, path: Vec<String>, text: &str) {
        if path.len() <= DEEPEST {
            self.0.push(KeptField { path, text: text.to_owned() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The object with the fields where they were. One whose object is not there any more goes, as
    /// does one that the object has by now.
    pub(crate) fn put_back(&self, object: &str) -> serde_json::Result<Box<RawValue>> {
        let mut text = object.to_owned();
        for KeptField { path, text: value } in &self.0 {
            if let Some(more) = with(&text, path, value) {
                text = more;
            }
        }
        RawValue::from_string(text)
    }
}

impl fmt::Debug for KeptFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|field| field.path.join("."))).finish()
    }
}

/// The object with one more field; `None` if there is no place for it.
fn with(object: &str, path: &[String], value: &str) -> Option<String> {
    let (name, rest) = path.split_first()?;
    let mut entries = Json::parse(object.as_bytes()).ok()?.object().ok()?;
    let inner;
    let found = entries.iter().position(|(key, _)| key == name);
    match (found, rest) {
        (None, []) => entries.push((name.clone(), Json::text_of(value))),
        (Some(at), [_, ..]) => {
            inner = with(entries[at].1.text(), rest, value)?;
            entries[at].1 = Json::text_of(&inner);
        }
        _ => return None,
    }
    let mut text = String::with_capacity(object.len() + name.len() + value.len() + 8);
    for (key, value) in entries {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(&serde_json::to_string(&key).ok()?);
        text.push(':');
        text.push_str(value.text());
    }
    text.push('}');
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    fn kept(fields: &[(&str, &str)]) -> KeptFields {
        let mut kept = KeptFields::default();
        fields.iter().for_each(|(at, text)| kept.keep(path(at), text));
        kept
    }

    fn put_back(fields: &[(&str, &str)], object: &str) -> String {
        kept(fields).put_back(object).unwrap().get().to_owned()
    }

    #[test]
    fn fields_return_to_where_they_were() {
        let fields = [("x", "1.000"), ("a.y", r#"{"deep":[1]}"#), ("a.b.z", "null")];
        assert_eq!(
            put_back(&fields, r#"{"a": {"b": {}}, "c": "\u0041"}"#),
            r#"{"a":{"b":{"z":null},"y":{"deep":[1]}},"c":"\u0041","x":1.000}"#,
        );
        assert_eq!(put_back(&fields[..1], "{}"), r#"{"x":1.000}"#);
    }

    #[test]
    fn what_has_no_place_any_more_goes() {
        assert_eq!(put_back(&[("a.y", "1")], r#"{"b":2}"#), r#"{"b":2}"#);
        assert_eq!(put_back(&[("a.y", "1")], r#"{"a":2}"#), r#"{"a":2}"#);
        assert_eq!(put_back(&[("a", "1")], r#"{"a":2}"#), r#"{"a":2}"#, "it is known by now");
    }

    #[test]
    fn shows_no_value() {
        assert_eq!(format!("{:?}", kept(&[("a.secret", "\"whsec\"")])), r#"{"a.secret"}"#);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_is_kept_the_object_stays_json(
            fields in prop::collection::vec((prop::collection::vec("[ab\"\\\\]{0,2}", 1..4), 0..99_u8), 0..6),
        ) {
            let mut kept = KeptFields::default();
            for (path, value) in fields {
                kept.keep(path, &value.to_string());
            }
            let object = r#"{"a":{"b":{}},"b":1}"#;
            let back: serde_json::Value =
                serde_json::from_str(kept.put_back(object).unwrap().get()).unwrap();
            prop_assert_eq!(&back["b"], &serde_json::json!(1));
            prop_assert!(back["a"]["b"].is_object());
        }
    }
}
