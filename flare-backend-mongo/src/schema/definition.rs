//! Takes indexes as they are wanted and as the server lists them; gives what matters of both in one
//! form, so that equal ones are equal.

use std::fmt;

use mongodb::bson::{Bson, Document, doc};

use super::IndexSpec;

/// What the server says about an index that is not its definition.
const ASIDE: [&str; 4] = ["v", "ns", "name", "background"];

/// What an index is like, whatever it is called. As text, in which the order of keys counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition(String);

impl Definition {
    pub(crate) fn wanted(index: &IndexSpec) -> Self {
        let mut definition = doc! { "key": index.keys() };
        if index.unique {
            definition.insert("unique", true);
        }
        if let Some(filter) = index.only.filter() {
            definition.insert("partialFilterExpression", filter);
        }
        Self::of(&definition)
    }

    /// Of an index as `listIndexes` has it.
    pub(super) fn of(listed: &Document) -> Self {
        let matters = |(name, value): &(&String, &Bson)| {
            // What is not so need not be said; nor need what is so anyway, as servers since 9.0 do.
            let usual = match value {
                Bson::Boolean(flag) => !flag,
                Bson::Document(inner) => {
                    *name == "collation" && *inner == doc! { "locale": "simple" }
                }
                _ => false,
            };
            !ASIDE.contains(&name.as_str()) && !usual
        };
        let mut fields: Vec<_> = listed.iter().filter(matters).collect();
        // The server has its own order of options; that of keys is theirs.
        fields.sort_by_key(|(name, _)| (name.as_str() != "key", name.as_str()));
        let fields = fields.into_iter().map(|(name, value)| (name.clone(), plain(value)));
        Self(fields.collect::<Document>().to_string())
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same value with one spelling of numbers: 1, 1.0 and NumberLong(1) sort alike.
fn plain(value: &Bson) -> Bson {
    match value {
        Bson::Int64(number) => i32::try_from(*number).map_or(Bson::Int64(*number), Bson::Int32),
        #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small")]
        Bson::Double(number) if number.fract() == 0.0 && number.abs() < 1e9 => {
            Bson::Int32(*number as i32)
        }
        Bson::Document(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect::<Document>()
            .into(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Only;
    use super::*;

    const INDEX: IndexSpec = IndexSpec {
        name: "urls",
        keys: &["resource", "urls"],
        unique: true,
        only: Only::True("told"),
        answers: "",
    };

    fn listed() -> Document {
        doc! {
            "v": 2,
            "key": { "resource": 1, "urls": 1 },
            "name": "urls",
            "unique": true,
            "partialFilterExpression": { "told": true },
        }
    }

    #[test]
    fn what_was_created_is_what_was_wanted() {
        assert_eq!(Definition::of(&listed()), Definition::wanted(&INDEX));
    }

    #[test]
    fn names_versions_and_spellings_make_no_difference() {
        let mut other = listed();
        other.insert("key", doc! { "resource": 1.0, "urls": 1_i64 });
        other.insert("name", "other");
        other.insert("sparse", false);
        other.insert("collation", doc! { "locale": "simple" });
        assert_eq!(Definition::of(&other), Definition::wanted(&INDEX));
    }

    #[test]
    fn all_else_makes_one() {
        let changes = [
            ("key", Bson::from(doc! { "urls": 1, "resource": 1 })),
            ("key", doc! { "resource": 1, "urls": -1 }.into()),
            ("unique", false.into()),
            ("sparse", true.into()),
            ("expireAfterSeconds", 60.into()),
            ("collation", doc! { "locale": "de" }.into()),
            ("partialFilterExpression", doc! { "told": false }.into()),
        ];
        for (name, value) in changes {
            let mut other = listed();
            other.insert(name, value);
            assert_ne!(Definition::of(&other), Definition::wanted(&INDEX), "{other}");
        }
    }
}
