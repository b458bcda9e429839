//! Takes the fields of a subscription's form; gives the JSON that REST takes, and the other way round. What the form
//! has no field for stands in it as JSON, every number and key as it was written.

use std::collections::BTreeMap;

use flare_core::model::Invalid;
use serde_json::value::{RawValue, to_raw_value};

use crate::fields::Fields;

type Object = BTreeMap<String, Box<RawValue>>;

/// What reads show and nobody may write.
const READ_ONLY: [&str; 8] =
    ["id", "resource", "generation", "status", "reason", "createdAt", "updatedAt", "backfill"];

/// What a person writes of a subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SettingsForm {
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) filter: String,
    pub(crate) passive: bool,
    pub(crate) backfill: bool,
    /// A new secret; empty leaves what there is.
    pub(crate) secret: String,
    pub(crate) unsigned: bool,
    /// All the rest, as JSON.
    pub(crate) more: String,
}

impl SettingsForm {
    /// As it was sent.
    pub(crate) fn sent(form: &Fields) -> Self {
        let text = |name| form.text(name).to_owned();
        Self {
            url: text("url"),
            method: text("method"),
            filter: text("filter"),
            passive: form.ticked("passive"),
            backfill: form.ticked("backfill"),
            secret: text("secret"),
            unsigned: form.ticked("unsigned"),
            more: text("more"),
        }
    }

    /// Of a subscription, as reads show it.
    pub(crate) fn shown(json: &str) -> Result<Self, Invalid> {
        let mut all = object("", json)?;
        READ_ONLY.iter().for_each(|name| drop(all.remove(*name)));
        let mut form = Self::default();
        all.remove("signing");
        form.filter = taken(&mut all, "filter");
        form.passive = taken(&mut all, "mode") == "passive";
        if let Some(endpoint) = all.remove("endpoint") {
            let mut endpoint = object("endpoint", endpoint.get())?;
            form.url = taken(&mut endpoint, "url");
            form.method = taken(&mut endpoint, "method");
            if !endpoint.is_empty() {
                all.insert("endpoint".to_owned(), raw(&endpoint)?);
            }
        }
        form.more = indented(&all)?;
        Ok(form)
    }

    /// The JSON that REST takes.
    pub(crate) fn json(&self) -> Result<String, Invalid> {
        let more = if self.more.is_empty() { "{}" } else { self.more.as_str() };
        let mut all = object("", more)?;
        let mut endpoint = match all.remove("endpoint") {
            Some(endpoint) => object("endpoint", endpoint.get())?,
            None => Object::new(),
        };
        set(&mut endpoint, "endpoint.url", "url", &self.url)?;
        set(&mut endpoint, "endpoint.method", "method", &self.method)?;
        all.insert("endpoint".to_owned(), raw(&endpoint)?);
        set(&mut all, "filter", "filter", &self.filter)?;
        if self.passive {
            set(&mut all, "mode", "mode", "passive")?;
        }
        if self.backfill {
            all.insert("backfill".to_owned(), raw(&true)?);
        }
        if self.unsigned {
            all.insert("signing".to_owned(), raw(&())?);
        } else if !self.secret.is_empty() {
            let secrets: Vec<&str> = self.secret.split_whitespace().collect();
            all.insert("signing".to_owned(), raw(&BTreeMap::from([("secrets", secrets)]))?);
        }
        Ok(raw(&all)?.get().to_owned())
    }
}

fn object(field: &'static str, json: &str) -> Result<Object, Invalid> {
    let wrong =
        |error| Invalid::new(field, format!("the further settings must be a JSON object: {error}"));
    serde_json::from_str(json).map_err(wrong)
}

fn raw<T: serde::Serialize>(value: &T) -> Result<Box<RawValue>, Invalid> {
    to_raw_value(value).map_err(|error| Invalid::new("", error.to_string()))
}

/// Takes a text out of an object; what is none stays.
fn taken(object: &mut Object, name: &str) -> String {
    let text = object.get(name).and_then(|json| serde_json::from_str::<String>(json.get()).ok());
    if text.is_some() {
        object.remove(name);
    }
    text.unwrap_or_default()
}

/// Puts a text into an object, unless it is empty; it may stand there once.
fn set(object: &mut Object, field: &'static str, name: &str, text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Ok(());
    }
    match object.insert(name.to_owned(), raw(&text)?) {
        Some(_) => Err(Invalid::new(
            field,
            "stands in its field and in the further settings: write it once",
        )),
        None => Ok(()),
    }
}

/// A line for each key, the values as they were written.
fn indented(object: &Object) -> Result<String, Invalid> {
    let lines = object.iter().map(|(name, value)| {
        let pretty: Result<serde_json::Value, _> = serde_json::from_str(value.get());
        // `data` holds numbers that must not be read and written again.
        let pretty = pretty.ok().filter(|_| name != "data").map(|it| format!("{it:#}"));
        let text = pretty.unwrap_or_else(|| value.get().to_owned()).replace('\n', "\n  ");
        Ok(format!("  {}: {text}", raw(name)?))
    });
    let lines = lines.collect::<Result<Vec<_>, Invalid>>()?;
    Ok(if lines.is_empty() { String::new() } else { format!("{{\n{}\n}}", lines.join(",\n")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_sent_back_as_it_was() {
        let json = r#"{"id":"1","status":"active","generation":3,
            "endpoint":{"url":"http://c/{id}","method":"PUT","headers":{"x":["1"]}},
            "delivery":{"concurrency":4},"data":{"big":12345678901234567890.10},
            "filter":"document.a == \"é\"","signing":{"secrets":1},"mode":"passive","backfill":true}"#;
        let form = SettingsForm::shown(json).unwrap();
        assert_eq!((form.url.as_str(), form.method.as_str()), ("http://c/{id}", "PUT"));
        assert!(form.passive && !form.backfill && form.secret.is_empty());
        assert_eq!(
            form.json().unwrap(),
            concat!(
                r#"{"data":{"big":12345678901234567890.10},"delivery":{"#,
                "\n    \"concurrency\": 4\n  },",
                r#""endpoint":{"headers":{"#,
                "\n      \"x\": [\n        \"1\"\n      ]\n    },",
                r#""method":"PUT","url":"http://c/{id}"},"filter":"document.a == \"é\"","mode":"passive"}"#
            )
        );
    }

    #[test]
    fn secrets_are_kept_given_or_removed() {
        let form = |secret: &str, unsigned| SettingsForm {
            secret: secret.to_owned(),
            unsigned,
            ..SettingsForm::default()
        };
        assert_eq!(form("", false).json().unwrap(), r#"{"endpoint":{}}"#);
        let two = form("whsec_a\n whsec_b", false).json().unwrap();
        assert_eq!(two, r#"{"endpoint":{},"signing":{"secrets":["whsec_a","whsec_b"]}}"#);
        assert_eq!(form("x", true).json().unwrap(), r#"{"endpoint":{},"signing":null}"#);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field() {
        let form = |more: &str| {
            let more = more.to_owned();
            let form =
                SettingsForm { url: "http://c/".to_owned(), more, ..SettingsForm::default() };
            form.json().unwrap_err()
        };
        assert_eq!(form("[1]").field(), "");
        assert_eq!(form(r#"{"endpoint":1}"#).field(), "endpoint");
        assert_eq!(form(r#"{"endpoint":{"url":"http://d/"}}"#).field(), "endpoint.url");
    }
}
