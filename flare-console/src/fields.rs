//! Takes the fields of a query or a form; gives them by name. Never fails: what is not there is empty.

use std::borrow::Borrow;

/// Fields by name, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads `a=b&c=d`.
    pub(crate) fn read(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// The first of that name as it was written, or nothing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first of that name without outer space; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default().trim()
    }

    /// The first of that name, if anything was written there.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// All of that name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All there are.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether a box of that name was ticked.
    pub(crate) fn ticked(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// A query from names and values; what is empty is left out.
pub(crate) fn query<'a, P>(pairs: impl IntoIterator<Item = P>) -> String
where
    P: Borrow<(&'a str, &'a str)>,
{
    let mut written = form_urlencoded::Serializer::new(String::new());
    for pair in pairs {
        let (name, value) = *pair.borrow();
        if !value.is_empty() {
            written.append_pair(name, value);
        }
    }
    match written.finish() {
        query if query.is_empty() => query,
        query => format!("?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_comes_back() {
        let fields = Fields::read(b"a=1&a=%26&b=+x+&c");
        assert_eq!(fields.all("a").collect::<Vec<_>>(), ["1", "&"]);
        assert_eq!((fields.text("b"), fields.get("b")), ("x", Some(" x ")));
        assert_eq!(
            (fields.given("c"), fields.ticked("c"), fields.ticked("d")),
            (None, true, false)
        );
        assert_eq!(query([("a", "1&2"), ("b", "")]), "?a=1%262");
        assert_eq!(query([("b", "")]), "");
    }
}
