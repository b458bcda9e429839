//! A database of its own on the MongoDB server at `FLARE_TEST_MONGODB_URI`: repository, queue and leases.

use std::time::Duration;

use async_trait::async_trait;
use flare_backend_mongo::{MongoBackend, MongoConfig};
use flare_core::Backend;
use mongodb::bson::{Document, doc};
use mongodb::options::{Acknowledgment, WriteConcern};
use mongodb::{Client, Database};

use super::{MeasuredStore, Weight, unique_name};
use crate::Result;
use crate::mongo::{server, statistic, timed};

pub(super) struct OnMongodb {
    uri: String,
    database: Database,
}

impl OnMongodb {
    pub(super) async fn make() -> Result<Self> {
        let uri = server()?;
        let database = Client::with_uri_str(&uri).await?.database(&unique_name());
        Ok(Self { uri, database })
    }
}

#[async_trait]
impl MeasuredStore for OnMongodb {
    async fn open(&self) -> Result<Backend> {
        let config = MongoConfig::new(&self.uri).database(self.database.name()).create_missing();
        Ok(MongoBackend::connect(config).await?.into())
    }

    async fn bare_write(&self) -> Result<Option<Duration>> {
        // As safe as Flare's own writes.
        let safe = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build();
        let bare = self.database.collection::<Document>("bare");
        let write = bare
            .update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } })
            .upsert(true)
            .write_concern(safe);
        Ok(Some(timed(async { Ok(write.await?) }).await?.0))
    }

    async fn weights(&self) -> Result<Vec<Weight>> {
        let mut weights = Vec::new();
        for (what, collection) in [("document", "flare_documents"), ("row", "flare_rows")] {
            let stats = self.database.run_command(doc! { "collStats": collection }).await?;
            let bytes = |field| statistic(&stats, field).map_or(0, |bytes| bytes as u64);
            let (records, stored) = (bytes("count"), bytes("storageSize"));
            weights.push(Weight { what, records, stored, indexes: bytes("totalIndexSize") });
        }
        Ok(weights)
    }

    async fn remove(self: Box<Self>) -> Result<()> {
        Ok(self.database.drop().await?)
    }
}
