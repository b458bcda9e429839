//! Takes the wildcard values of one match; gives them by name, in the endpoint's order. Never
//! encodes: values are as decoded from the URL.

use serde::ser::{Serialize, Serializer};

/// What the wildcards of an endpoint stand for in one document's URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// The value of the wildcard `name`, percent-decoded.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values, in the order of the endpoint.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many wildcards the endpoint has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no wildcard; an endpoint has at least one.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a wildcard; the endpoint has made sure that its names differ.
    pub(super) fn push(&mut self, name: &str, value: String) {
        self.0.push((name.to_owned(), value));
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
