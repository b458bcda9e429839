//! Takes puts that come together; gives what became of each by one update of many records.
//!
//! If it changed as many as there are puts, all of them are *updated*, for it changes only what is live and
//! older. Else a look at the records tells those that carry the batch's mark from those that did not change, and
//! what is not there is made and *created*. Only what meets a tombstone is left to be written alone.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::model::{DocumentChange, DocumentKey, Timestamp, Version};
use flare_core::port::{DocumentWrite, Operation, WriteOutcome};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};

use super::super::MongoRepository;
use super::super::waves::Wave;
use super::detect::{Before, OPERATION, detected, put_version, set_if, versions};
use super::{id, ids, read_key, write_moved_from};
use crate::bulk::Updated;
use crate::many::Many;
use crate::record::{self, Record, now};

/// Which batch of puts changed a record last.
const MARK: &str = "mark";

/// Bytes of content in one statement, at most, unless a single document has more.
const LOAD: usize = 4 << 20;

impl MongoRepository {
    /// Puts in one round trip, or two if some change nothing or make a record. Gives back what has to go alone.
    pub(super) async fn put_together(
        &self,
        puts: Wave<DocumentWrite>,
    ) -> (Vec<(usize, Result<WriteOutcome>)>, Wave<DocumentWrite>) {
        let (mut outcomes, mut again) = (Vec::with_capacity(puts.len()), Vec::new());
        for puts in loads(puts) {
            let places: Vec<usize> = puts.iter().map(|(place, _)| *place).collect();
            match self.put_load(puts).await {
                Ok((written, alone)) => {
                    outcomes.extend(written);
                    again.extend(alone);
                }
                Err(error) => {
                    outcomes.extend(places.into_iter().map(|place| (place, Err(error.clone()))));
                }
            }
        }
        (outcomes, again)
    }

    /// Puts that one statement has room for.
    async fn put_load(
        &self,
        puts: Wave<DocumentWrite>,
    ) -> Result<(Vec<(usize, Result<WriteOutcome>)>, Wave<DocumentWrite>)> {
        let mut many = Many::default();
        for (_, write) in &puts {
            many.add(id(&write.key), put_item(write));
        }
        let (documents, mark) = (&self.stored.documents, ObjectId::new());
        let counted = self.puts.update_many(OPERATION, documents, &many, put_many(mark)).await?;
        let stored = |(place, write): &(usize, DocumentWrite), change| {
            (*place, Ok(WriteOutcome::new(change, put_version(write), true)))
        };
        if counted.modified == puts.len() {
            let updated = |put| stored(put, DocumentChange::Updated);
            return Ok((puts.iter().map(updated).collect(), Vec::new()));
        }
        let found = match counted.matched {
            0 => HashMap::new(),
            _ => self.look_at(&puts, mark).await?,
        };
        let (mut outcomes, mut again, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        for put in puts {
            match found.get(&put.1.key) {
                None => missing.push(put),
                Some(Ok(Looked { ours: true, .. })) => {
                    outcomes.push(stored(&put, DocumentChange::Updated));
                }
                Some(Ok(Looked { before, .. })) => {
                    // The version that is there never goes down: it decides now as it did a moment ago.
                    let detected = detected(*before, &put.1.operation);
                    match detected.store {
                        None => outcomes.push((put.0, Ok(before.outcome(detected)))),
                        // It is a tombstone, or was removed and made again meanwhile.
                        Some(_) => again.push(put),
                    }
                }
                Some(Err(error)) => outcomes.push((put.0, Err(error.clone()))),
            }
        }
        let made = self.make(&missing).await?;
        for (put, made) in missing.into_iter().zip(made) {
            match made {
                Ok(Updated::Duplicate) => again.push(put),
                Ok(_) => outcomes.push(stored(&put, DocumentChange::Created)),
                Err(error) => outcomes.push((put.0, Err(error))),
            }
        }
        Ok((outcomes, again))
    }

    /// Makes the records of documents that are not there.
    async fn make(&self, puts: &[(usize, DocumentWrite)]) -> Result<Vec<Result<Updated>>> {
        if puts.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.puts.stamp(OPERATION).await?;
        let records = puts.iter().map(|(_, write)| made_record(write, now)).collect();
        Ok(self.puts.insert_each(OPERATION, &self.stored.documents, records).await)
    }

    /// Which of the documents are there, how far they are, and whether the write with this mark brought them
    /// there.
    async fn look_at(
        &self,
        puts: &[(usize, DocumentWrite)],
        mark: ObjectId,
    ) -> Result<HashMap<DocumentKey, Result<Looked>>> {
        let keys: Vec<DocumentKey> = puts.iter().map(|(_, write)| write.key.clone()).collect();
        let question = self.stored.documents.find(doc! { "_id": { "$in": ids(&keys) } });
        let read = |record: Record<'_>| {
            let ours = record.any(MARK) == Some(&mark.into());
            let looked = Before::read(record).map(|before| Looked { before, ours });
            Ok((read_key(record)?, looked))
        };
        let mut fields = versions();
        fields.insert(MARK, 1);
        let found = self.puts.all(OPERATION, question.projection(fields), read).await?;
        Ok(found.into_iter().collect())
    }
}

/// A record after a write.
struct Looked {
    before: Before,
    /// Whether it is as our write left it.
    ours: bool,
}

/// Puts in loads that a statement has room for.
fn loads(puts: Wave<DocumentWrite>) -> Vec<Wave<DocumentWrite>> {
    let mut loads: Vec<Wave<DocumentWrite>> = Vec::new();
    let mut bytes = LOAD;
    for put in puts {
        let more = match &put.1.operation {
            Operation::Put { content, .. } => content.as_bytes().len(),
            Operation::Delete { .. } | Operation::Leave { .. } => 0,
        };
        bytes = bytes.saturating_add(more);
        match loads.last_mut() {
            Some(load) if bytes <= LOAD => load.push(put),
            _ => {
                bytes = more;
                loads.push(vec![put]);
            }
        }
    }
    loads
}

/// [`detect_put`](flare_core::model::detect_put), in the server's language, for many records, each of which finds
/// what it is to become in its item. A put above a tombstone would be told apart from an update by nobody, so it
/// does not take place.
fn put_many(mark: ObjectId) -> Vec<Document> {
    let older = doc! { "$lt": ["$version", "$item.version"] };
    let live = doc! { "$ne": ["$version.gone", true] };
    let record = doc! {
        "version": "$item.version",
        "content": "$item.content",
        "updatedAt": now(),
        "trace": "$item.trace",
        "undispatched": true,
        "tombstone": "$$REMOVE",
        "open": "$$REMOVE",
        "movedFrom": { "$ifNull": ["$item.movedFrom", "$movedFrom"] },
        MARK: mark,
    };
    set_if(doc! { "$and": [older, live] }, record)
}

/// What one of many is to become.
fn put_item(write: &DocumentWrite) -> Document {
    let mut item = Document::new();
    if let Operation::Put { revision, content } = &write.operation {
        item.insert("version", record::version(Version::live(*revision)));
        item.insert("content", record::bytes(content.as_bytes()));
    }
    if let Some(trace) = &write.trace {
        item.insert("trace", trace.as_str());
    }
    if let Some(from) = write.moved_from {
        item.insert("movedFrom", write_moved_from(from));
    }
    item
}

/// The record of a document that a put makes at `now`.
fn made_record(write: &DocumentWrite, now: Timestamp) -> Document {
    let mut record = doc! { "_id": id(&write.key) };
    record.extend(put_item(write));
    record.insert("updatedAt", record::time(now));
    record.insert("undispatched", true);
    record
}

#[cfg(test)]
mod tests {
    use flare_core::model::{Content, DocumentUrl, ResourceId, Revision};

    use super::*;

    #[test]
    fn puts_are_as_many_to_a_statement_as_it_has_room_for() {
        let put = |place: usize, bytes: usize| {
            let url = DocumentUrl::parse(&format!("http://a.example/{place}")).unwrap();
            let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
            let content = Content::from_stored(vec![b'x'; bytes].into());
            (place, DocumentWrite::put(key, Revision::new(1), content))
        };
        let sizes = [LOAD / 2, LOAD / 2, 1, LOAD * 2, 1, 1];
        let puts = sizes.into_iter().enumerate().map(|(place, bytes)| put(place, bytes));
        let places =
            |load: Wave<DocumentWrite>| load.into_iter().map(|it| it.0).collect::<Vec<_>>();
        let loads: Vec<Vec<usize>> = loads(puts.collect()).into_iter().map(places).collect();
        assert_eq!(loads, [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
    }
}
