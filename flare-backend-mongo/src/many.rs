//! Takes what a batch wants of many records; gives it as one statement for all of them.
//!
//! What a statement costs the server is mostly the statement: to plan a filter and to understand a pipeline take
//! several times as long as to change a record by its id. So a batch is one update of many: the filter names ids
//! alone, and the pipeline, understood once, looks up what each record is to become in a list beside them.

use flare_core::Result;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};

use crate::connection::Connection;
use crate::record::literal;

/// Where the pipeline keeps what it looked up; in no record.
pub(crate) const ITEM: &str = "item";

/// What is wanted of many records with different ids.
#[derive(Debug, Default)]
pub(crate) struct Many {
    ids: Vec<Bson>,
    items: Vec<Bson>,
}

/// What became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Records that are there.
    pub(crate) matched: usize,
    /// Those that the pipeline changed.
    pub(crate) modified: usize,
}

impl Many {
    /// Adds what is wanted of the record with this id.
    pub(crate) fn add(&mut self, id: impl Into<Bson>, item: impl Into<Bson>) {
        self.ids.push(id.into());
        self.items.push(item.into());
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The stage that comes first: from it on `$item` is what is wanted of the record.
    fn look_up(&self) -> Document {
        let place = doc! { "$indexOfArray": [literal(self.ids.clone()), "$_id"] };
        doc! { "$set": { ITEM: { "$arrayElemAt": [literal(self.items.clone()), place] } } }
    }
}

impl Connection {
    /// Changes the records that are there by a pipeline which finds what is wanted of each in `$item`.
    pub(crate) async fn update_many(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        many: &Many,
        stages: impl IntoIterator<Item = Document>,
    ) -> Result<Counted> {
        let mut pipeline = vec![many.look_up()];
        pipeline.extend(stages);
        pipeline.push(doc! { "$unset": ITEM });
        let these = doc! { "_id": { "$in": many.ids.clone() } };
        let done = self.run(operation, collection.update_many(these, pipeline)).await?;
        let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Counted { matched: count(done.matched_count), modified: count(done.modified_count) })
    }
}
