//! Takes what a consumer says of its source; gives it to the source's connector, field by field, each refusal
//! with the field's path.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::model::Invalid;

/// The most bytes of a source's settings, as JSON.
const MAX_BYTES: usize = 16 * 1024;

/// Which source a consumer pulls from: its kind, and what its connector wants to know.
///
/// ```
/// use flare_core::model::SourceSettings;
/// use serde_json::json;
///
/// let orders = SourceSettings::new("sqs", json!({"queue": "orders", "region": "eu-central-1"}))?;
/// assert_eq!(orders.text("queue")?, "orders");
/// assert_eq!(orders.optional("endpoint")?, None);
/// assert_eq!(orders.only(&["queue"]).unwrap_err().to_string(), "sqs.region: there is no such setting");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SourceSettings {
    kind: Box<str>,
    values: Map<String, Value>,
}

impl SourceSettings {
    /// A source of a kind, with an object of settings.
    pub fn new(kind: impl Into<Box<str>>, values: Value) -> Result<Self, Invalid> {
        let kind = kind.into();
        let Value::Object(values) = values else {
            return Err(Invalid::new(String::from(kind), "must be an object"));
        };
        let settings = Self { kind, values };
        if settings.values().to_string().len() > MAX_BYTES {
            return Err(settings.refuse("", format!("must be at most {MAX_BYTES} bytes")));
        }
        Ok(settings)
    }

    /// The word its connector is known by.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// All that is said, as a JSON object.
    pub fn values(&self) -> Value {
        Value::Object(self.values.clone())
    }

    /// A short text that is the same for the same source: places in it are kept under it.
    pub(crate) fn fingerprint(&self) -> Box<str> {
        let text = format!("{}:{}", self.kind, self.values());
        uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string().into()
    }

    /// Refuses what is none of these names.
    pub fn only(&self, names: &[&str]) -> Result<(), Invalid> {
        match self.values.keys().find(|name| !names.contains(&name.as_str())) {
            Some(unknown) => Err(self.refuse(unknown, "there is no such setting")),
            None => Ok(()),
        }
    }

    /// A string that has to be there, and not empty.
    pub fn text(&self, name: &str) -> Result<&str, Invalid> {
        self.optional(name)?.ok_or_else(|| self.refuse(name, "is required"))
    }

    /// A string that may be missing, and is not empty.
    pub fn optional(&self, name: &str) -> Result<Option<&str>, Invalid> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
            Some(_) => Err(self.refuse(name, "must be a string that is not empty")),
        }
    }

    /// A whole number in a range, which may be missing.
    pub fn number(&self, name: &str, range: &RangeInclusive<u64>) -> Result<Option<u64>, Invalid> {
        match self.values.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_u64().filter(|number| range.contains(number)) {
                Some(number) => Ok(Some(number)),
                None => {
                    let (low, high) = (range.start(), range.end());
                    Err(self.refuse(name, format!("must be an integer from {low} to {high}")))
                }
            },
        }
    }

    /// A refusal of one of its settings, by the path a caller knows it by.
    pub fn refuse(&self, name: &str, reason: impl Into<String>) -> Invalid {
        Invalid::new(name.to_owned(), reason.into()).within(&self.kind)
    }
}

impl fmt::Debug for SourceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Credentials belong into named connections; one that is here all the same is not for a log.
        let names: Vec<_> = self.values.keys().collect();
        f.debug_struct("SourceSettings").field("kind", &self.kind).field("names", &names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prefetching(value: Value) -> Result<Option<u64>, Invalid> {
        SourceSettings::new("rabbitmq", json!({"prefetch": value}))?.number("prefetch", &(1..=1000))
    }

    #[test]
    fn numbers_are_whole_and_in_range() {
        assert_eq!(prefetching(json!(7)), Ok(Some(7)));
        assert_eq!(prefetching(json!(null)), Ok(None));
        for wrong in [json!(0), json!(1001), json!(1.5), json!("7"), json!(-1)] {
            let refused = prefetching(wrong).unwrap_err();
            assert_eq!(refused.to_string(), "rabbitmq.prefetch: must be an integer from 1 to 1000");
        }
    }

    #[test]
    fn texts_are_there_and_not_empty() {
        let settings = SourceSettings::new("sqs", json!({"queue": "", "region": 7})).unwrap();
        for name in ["queue", "region"] {
            let refused = settings.text(name).unwrap_err();
            assert_eq!(refused.field(), format!("sqs.{name}"));
            assert_eq!(refused.reason(), "must be a string that is not empty");
        }
        assert_eq!(settings.text("endpoint").unwrap_err().reason(), "is required");
    }

    #[test]
    fn settings_are_an_object_of_bounded_size() {
        assert_eq!(SourceSettings::new("sqs", json!("x")).unwrap_err().field(), "sqs");
        let long = json!({"queue": "x".repeat(MAX_BYTES)});
        assert_eq!(SourceSettings::new("sqs", long).unwrap_err().field(), "sqs");
    }

    #[test]
    fn what_is_said_is_not_logged() {
        let settings = SourceSettings::new("mine", json!({"password": "hunter2"})).unwrap();
        assert_eq!(
            format!("{settings:?}"),
            r#"SourceSettings { kind: "mine", names: ["password"] }"#
        );
    }
}
