//! What a collection and its indexes are to be like.

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::options::IndexOptions;

use crate::connection::PREFIX;

/// A collection of Flare's, without prefix, and why it is there.
#[derive(Debug)]
pub(crate) struct CollectionSpec {
    pub(crate) name: &'static str,
    pub(crate) holds: &'static str,
    pub(crate) indexes: &'static [IndexSpec],
}

impl CollectionSpec {
    /// The name it has in the database.
    pub(crate) fn full_name(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}

/// An index, and which question it answers.
#[derive(Debug)]
pub(crate) struct IndexSpec {
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
    pub(crate) unique: bool,
    /// Which records are in it.
    pub(crate) only: Only,
    pub(crate) answers: &'static str,
}

/// Which records an index holds. Small indexes stay in memory, and cost nothing to those outside.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Only {
    /// All of them.
    All,
    /// Those in which this field is true.
    True(&'static str),
    /// Those that have this field.
    Having(&'static str),
}

impl Only {
    /// The condition, as the index has it and as its queries must repeat it.
    pub(crate) fn filter(self) -> Option<Document> {
        match self {
            Self::All => None,
            Self::True(field) => Some(doc! { field: true }),
            Self::Having(field) => Some(doc! { field: { "$exists": true } }),
        }
    }
}

impl IndexSpec {
    pub(crate) fn keys(&self) -> Document {
        self.keys.iter().map(|key| ((*key).to_owned(), 1.into())).collect()
    }

    pub(crate) fn model(&self) -> IndexModel {
        let options = IndexOptions::builder()
            .name(self.name.to_owned())
            .unique(self.unique.then_some(true))
            .partial_filter_expression(self.only.filter())
            .build();
        IndexModel::builder().keys(self.keys()).options(options).build()
    }
}
