//! All that is in a database, to compare what it was with what it is.

#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeMap;

use futures::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};

/// The records of a collection by their ids, and its indexes, byte for byte.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Dumped {
    pub(crate) records: BTreeMap<String, Vec<u8>>,
    pub(crate) indexes: Vec<Document>,
}

pub(crate) type Dump = BTreeMap<String, Dumped>;

pub(crate) fn key(id: &Bson) -> String {
    id.to_string()
}

pub(crate) async fn dump(database: &Database) -> Dump {
    let mut dump = Dump::new();
    for name in database.list_collection_names().await.unwrap() {
        let mut dumped = Dumped::default();
        let collection = database.collection::<Document>(&name);
        let mut all = collection.find(doc! {}).await.unwrap();
        while let Some(record) = all.try_next().await.unwrap() {
            let id = key(record.get("_id").unwrap());
            dumped.records.insert(id, record.to_vec().unwrap());
        }
        let list = doc! { "listIndexes": &name };
        let indexes = database.run_cursor_command(list).await.unwrap();
        dumped.indexes = indexes.try_collect().await.unwrap();
        dump.insert(name, dumped);
    }
    dump
}
