//! Takes fields of a stored JSON object that this version does not know; gives them back where they
//! were when the object is written again. A newer version may have put them there.

use std::fmt;

use serde_json::value::RawValue;

use super::entries::Entries;

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
    /// What `stored` has and `written` has not: `written` is what this version, which has read
    /// `stored`, writes. So nothing has to be said of each object about what is known there.
    pub(crate) fn beyond(written: &str, stored: &str) -> Self {
        let mut kept = Self::default();
        // So it is for all that this version wrote itself.
        if stored != written {
            kept.compare(&[], written, stored);
        }
        kept
    }

    /// Goes as deep as `written` does.
    fn compare(&mut self, path: &[&str], written: &str, stored: &str) {
        let (Some(written), Some(stored)) = (object(written), object(stored)) else { return };
        for (name, value) in &stored {
            let path = [path, &[name.as_str()]].concat();
            match written.iter().find(|(known, _)| known == name) {
                Some((_, known)) => self.compare(&path, known.get(), value.get()),
                None => self.keep(path, value.get()),
            }
        }
    }

    /// Keeps the field at `path`, which ends with its own name.
    fn keep(&mut self, path: Vec<&str>, text: &str) {
        let path = path.into_iter().map(str::to_owned).collect();
        self.0.push(KeptField { path, text: text.to_owned() });
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

/// The fields of what is an object.
fn object(text: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str(text).ok().map(|Entries(fields)| fields)
}

/// The object with one more field; `None` if there is no place for it.
fn with(text: &str, path: &[String], value: &str) -> Option<String> {
    let (name, rest) = path.split_first()?;
    let fields = object(text)?;
    let mut fields: Vec<(String, &str)> =
        fields.into_iter().map(|(key, value)| (key, value.get())).collect();
    let inner;
    match (fields.iter_mut().find(|(key, _)| key == name), rest) {
        (None, []) => fields.push((name.clone(), value)),
        (Some((_, field)), [_, ..]) => {
            inner = with(field, rest, value)?;
            *field = &inner;
        }
        _ => return None,
    }
    let mut more = String::with_capacity(text.len() + name.len() + value.len() + 8);
    for (key, value) in fields {
        more.push(if more.is_empty() { '{' } else { ',' });
        more.push_str(&serde_json::to_string(&key).ok()?);
        more.push(':');
        more.push_str(value);
    }
    more.push('}');
    Some(more)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(fields: &[(&str, &str)]) -> KeptFields {
        let mut kept = KeptFields::default();
        fields.iter().for_each(|(at, text)| kept.keep(at.split('.').collect(), text));
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
    fn what_is_kept_is_what_would_not_be_written() {
        let beyond = |written: &str, stored: &str| KeptFields::beyond(written, stored);
        let written = r#"{"a":{"b":{}},"c":[1],"d":"x"}"#;
        let stored =
            r#"{"x":1.000,"a":{"b":{"z":null},"y":{"deep":[1]}},"c":[{"e":1}],"d":{"f":1}}"#;
        let kept = kept(&[("x", "1.000"), ("a.b.z", "null"), ("a.y", r#"{"deep":[1]}"#)]);
        assert_eq!(beyond(written, stored), kept);
        assert!(beyond(stored, stored).is_empty() && beyond(stored, written).is_empty());
        assert!(beyond(written, &written.replace(':', " : ")).is_empty(), "space is none");
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
                kept.keep(path.iter().map(String::as_str).collect(), &value.to_string());
            }
            let object = r#"{"a":{"b":{}},"b":1}"#;
            let back: serde_json::Value =
                serde_json::from_str(kept.put_back(object).unwrap().get()).unwrap();
            prop_assert_eq!(&back["b"], &serde_json::json!(1));
            prop_assert!(back["a"]["b"].is_object());
        }
    }
}
