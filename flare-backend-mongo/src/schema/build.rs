//! Takes an area; makes its collections and indexes where they are missing, and records the
//! version. Any number of nodes may do so at once.

use flare_core::Result;
use mongodb::bson::doc;
use tracing::debug;

use super::{Area, SCHEMA};
use crate::connection::Connection;

pub(crate) async fn build(connection: &Connection, area: Area) -> Result<()> {
    for spec in area.collections() {
        let collection = connection.collection(spec.name);
        for index in spec.indexes {
            debug!(collection = spec.name, holds = spec.holds, index.name, index.answers, "index");
        }
        let models: Vec<_> = spec.indexes.iter().map(super::IndexSpec::model).collect();
        // Creating an index creates its collection; one without indexes comes with its first record.
        if !models.is_empty() {
            connection.run("setup", collection.create_indexes(models)).await?;
        }
    }
    let schema = connection.collection(SCHEMA);
    // Only ever upwards: a newer node may have been here meanwhile.
    let raise = doc! { "$max": { "version": area.version() } };
    let record = schema.update_one(doc! { "_id": area.name() }, raise).upsert(true);
    connection.run("setup", record).await.map(|_| ())
}
