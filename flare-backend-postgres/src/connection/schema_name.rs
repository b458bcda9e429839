//! The schema that statements are about. They are written for the one called `flare`.

use std::borrow::Cow;

/// The name of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaName(Option<String>);

impl SchemaName {
    pub(crate) fn new(name: &str) -> Self {
        Self((name != "flare").then(|| name.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("flare")
    }

    /// A statement, about this schema.
    pub(crate) fn text(&self, sql: &'static str) -> Cow<'static, str> {
        match &self.0 {
            None => Cow::Borrowed(sql),
            Some(name) => Cow::Owned(sql.replace("flare.", &format!("{name}."))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_about_the_schema_that_is_named() {
        let sql = "SELECT flare.now() FROM flare.rows";
        assert_eq!(SchemaName::new("flare").text(sql), sql);
        assert_eq!(SchemaName::new("mine").text(sql), "SELECT mine.now() FROM mine.rows");
    }
}
