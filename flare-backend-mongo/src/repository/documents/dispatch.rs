//! Takes how far versions have been spread; notes it as long as the document is at that version.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{Document, DocumentKey, RecordName, Version};
use flare_core::port::{ClosePartition, Closed, OpenPartitions, Opened};
use futures::StreamExt;
use futures::stream;
use mongodb::bson::{self, doc};
use mongodb::options::ReturnDocument;

use super::super::MongoRepository;
use super::{KIND, head, id, ids, read_document};
use crate::bulk::Update;
use crate::many::Many;
use crate::record::{self, Record};

/// How many removals are under way at a time.
const SIDE_BY_SIDE: usize = 16;

/// Whether the stored version has been spread, in a pipeline.
fn dispatched() -> bson::Document {
    doc! { "$gte": ["$dispatched", "$version"] }
}

/// What was read, by key. One that cannot be read was found by its key, so it has one.
fn by_key(read: Vec<Result<Document>>) -> Result<HashMap<DocumentKey, Result<Document>>> {
    let key = |read: Result<Document>| match read {
        Ok(document) => Ok((document.key.clone(), Ok(document))),
        Err(error) => match error.unreadable().map(|it| &it.record) {
            Some(RecordName::Document(key)) => Ok((key.clone(), Err(error))),
            _ => Err(error),
        },
    };
    read.into_iter().map(key).collect()
}

/// Recomputes what follows from `version` and `dispatched`.
fn derive() -> bson::Document {
    doc! { "$set": {
        "undispatched": { "$cond": [dispatched(), "$$REMOVE", true] },
        "tombstone": { "$cond": [{ "$and": ["$version.gone", dispatched()] }, true, "$$REMOVE"] },
        "open": { "$cond": [dispatched(), "$$REMOVE", "$open"] },
        "movedFrom": { "$cond": [dispatched(), "$$REMOVE", "$movedFrom"] },
    } }
}

impl MongoRepository {
    pub(super) async fn open(&self, opens: Vec<OpenPartitions>) -> Vec<Result<Opened>> {
        const OPERATION: &str = "open_partitions";
        let update = |open: &OpenPartitions| {
            let numbers: Vec<i64> = open.partitions.iter().map(|it| i64::from(it.get())).collect();
            Update {
                filter: doc! {
                    "_id": id(&open.key),
                    "version": record::version(open.version),
                    "undispatched": true,
                    "open": { "$exists": false },
                },
                change: doc! { "$set": { "open": numbers } }.into(),
                upsert: false,
            }
        };
        let documents = &self.stored.documents;
        let updates = opens.iter().map(update).collect();
        let noted = self.connection.update_each(OPERATION, documents, updates).await;
        let keys: Vec<DocumentKey> = opens.iter().map(|open| open.key.clone()).collect();
        let question = documents.find(doc! { "_id": { "$in": ids(&keys) } }).projection(head());
        let found = self.connection.each(OPERATION, KIND, question, read_document).await;
        let found = match found.and_then(by_key) {
            Ok(found) => found,
            Err(error) => return opens.iter().map(|_| Err(error.clone())).collect(),
        };
        let opened = |(noted, open): (Result<_>, OpenPartitions)| {
            noted?;
            let document = found.get(&open.key).cloned().transpose()?;
            Ok(match document.filter(|it| it.version == open.version) {
                None => Opened::Superseded,
                Some(document) if !document.is_undispatched() => Opened::Dispatched,
                Some(document) => Opened::Open(document.open.unwrap_or_default()),
            })
        };
        noted.into_iter().zip(opens).map(opened).collect()
    }

    pub(super) async fn close(&self, closes: Vec<ClosePartition>) -> Vec<Result<Closed>> {
        let closed = closes.into_iter().map(|close| self.close_one(close));
        stream::iter(closed).buffered(SIDE_BY_SIDE).collect().await
    }

    /// Alone, so that whoever empties the set is the one who learns it.
    async fn close_one(&self, close: ClosePartition) -> Result<Closed> {
        const OPERATION: &str = "close_partitions";
        let number = i64::from(close.partition.get());
        let others = doc! { "$filter": {
            "input": "$open", "as": "it", "cond": { "$ne": ["$$it", number] },
        } };
        // A set that was never opened is not there, and not empty.
        let emptied = doc! { "$eq": ["$open", []] };
        let newest = doc! { "$max": ["$dispatched", "$version"] };
        let this = doc! { "_id": id(&close.key), "version": record::version(close.version) };
        let pipeline = vec![
            doc! { "$set": { "open": { "$cond": [{ "$isArray": "$open" }, others, "$$REMOVE"] } } },
            doc! { "$set": { "dispatched": { "$cond": [emptied, newest, "$dispatched"] } } },
            derive(),
        ];
        let call = self
            .stored
            .documents
            .find_one_and_update(this, pipeline)
            .return_document(ReturnDocument::After)
            .projection(doc! { "undispatched": 1 });
        let Some(after) = self.connection.run(OPERATION, call).await? else {
            return Ok(Closed::Superseded);
        };
        let undispatched = Record::new(OPERATION, &after).flag("undispatched")?;
        Ok(if undispatched { Closed::Open } else { Closed::Dispatched })
    }

    pub(super) async fn mark(&self, versions: Vec<(DocumentKey, Version)>) -> Vec<Result<()>> {
        const OPERATION: &str = "mark_dispatched";
        let count = versions.len();
        let mut newest: HashMap<DocumentKey, Version> = HashMap::new();
        for (key, version) in versions {
            let most = newest.entry(key).or_insert(version);
            *most = version.max(*most);
        }
        let mut many = Many::default();
        for (key, version) in newest {
            many.add(id(&key), record::version(version));
        }
        if count == 0 {
            return Vec::new();
        }
        let lower = doc! { "$min": ["$version", "$item"] };
        let set = doc! { "$set": { "dispatched": { "$max": ["$dispatched", lower] } } };
        let documents = &self.stored.documents;
        let marked =
            self.connection.update_many(OPERATION, documents, &many, [set, derive()]).await;
        vec![marked.map(|_| ()); count]
    }
}
