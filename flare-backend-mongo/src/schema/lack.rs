//! Takes the collections and indexes that are wanted; gives those that are missing or different.

use std::collections::HashSet;

use flare_core::Result;
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};

use super::{CollectionSpec, Definition, IndexSpec};
use crate::connection::Connection;

/// Something that is not as wanted.
#[derive(Debug, Clone)]
pub(crate) enum Lack {
    Collection(&'static CollectionSpec),
    Index(&'static CollectionSpec, &'static IndexSpec),
    /// There is one of that name, and it is like this.
    Differing(&'static CollectionSpec, &'static IndexSpec, Definition),
}

/// All that is not as wanted, in the order it can be put right.
pub(crate) async fn lacks(
    connection: &Connection,
    operation: &'static str,
    wanted: &'static [CollectionSpec],
) -> Result<Vec<Lack>> {
    let there = connection.run(operation, connection.database().list_collection_names()).await?;
    let there: HashSet<String> = there.into_iter().collect();
    let mut lacks = Vec::new();
    for collection in wanted {
        let exists = there.contains(&collection.full_name());
        if !exists {
            lacks.push(Lack::Collection(collection));
        }
        let mut indexes = Vec::new();
        if exists && !collection.indexes.is_empty() {
            indexes = list(connection, operation, collection).await?;
        }
        lacks.extend(
            collection.indexes.iter().filter_map(|index| compare(collection, index, &indexes)),
        );
    }
    Ok(lacks)
}

/// Whether an index that does what this one is to do is there.
pub(crate) async fn is_there(
    connection: &Connection,
    operation: &'static str,
    collection: &CollectionSpec,
    index: &IndexSpec,
) -> Result<bool> {
    let wanted = Definition::wanted(index);
    let listed = list(connection, operation, collection).await?;
    Ok(listed.iter().any(|listed| Definition::of(listed) == wanted))
}

/// What keeps an index from being as wanted. One that does the same under another name will do: the
/// server would not have both.
fn compare(
    collection: &'static CollectionSpec,
    index: &'static IndexSpec,
    listed: &[Document],
) -> Option<Lack> {
    let wanted = Definition::wanted(index);
    if listed.iter().any(|listed| Definition::of(listed) == wanted) {
        return None;
    }
    let namesake =
        listed.iter().find(|listed| listed.get_str("name").is_ok_and(|name| name == index.name));
    Some(match namesake {
        None => Lack::Index(collection, index),
        Some(namesake) => Lack::Differing(collection, index, Definition::of(namesake)),
    })
}

async fn list(
    connection: &Connection,
    operation: &'static str,
    collection: &CollectionSpec,
) -> Result<Vec<Document>> {
    let list = doc! { "listIndexes": collection.full_name() };
    let question = connection.database().run_cursor_command(list);
    connection.run(operation, async { question.await?.try_collect().await }).await
}
