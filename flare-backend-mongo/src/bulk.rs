//! Takes many updates or deletions of single records; gives what became of each. One round trip on
//! servers that have `bulkWrite` (8.0), else one per record, side by side.

use std::collections::HashMap;

use flare_core::{Error, ErrorKind, Result};
use futures::StreamExt;
use futures::stream;
use mongodb::Collection;
use mongodb::bson::Document;
use mongodb::error::{
    BulkWriteError, ErrorKind as DriverError, InsertManyError, PartialBulkWriteResult,
};
use mongodb::options::{DeleteOneModel, UpdateModifications, UpdateOneModel, WriteModel};
use mongodb::results::{DeleteResult, UpdateResult, VerboseBulkWriteResult};

use crate::BACKEND;
use crate::connection::Connection;
use crate::error::{self, DUPLICATE_KEY};

/// How many single updates are under way at a time.
const SIDE_BY_SIDE: usize = 16;

/// One conditional update of one record.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Which record, and what it must be like.
    pub(crate) filter: Document,
    /// What makes the new record of the old one: modifiers, or a pipeline where the new record depends on the
    /// old one in a way that no filter decides. A pipeline costs the server several times as much.
    pub(crate) change: UpdateModifications,
    /// Whether to make a record where none is as asked for.
    pub(crate) upsert: bool,
}

/// What became of one update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Updated {
    /// No record was as asked for.
    Missed,
    /// A record was; whether anything in it changed.
    Matched { modified: bool },
    /// There was none, now there is.
    Inserted,
    /// There is one with this id, and it is not as asked for (upserts), or has this value that only one may
    /// have (inserts).
    Duplicate,
}

impl Connection {
    /// Updates records, in no particular order; one answer per update.
    pub(crate) async fn update_each(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        updates: Vec<Update>,
    ) -> Vec<Result<Updated>> {
        if self.bulk && updates.len() > 1 {
            self.update_in_bulk(operation, collection, updates).await
        } else {
            let one = |update| self.update_one(operation, collection, update);
            stream::iter(updates.into_iter().map(one)).buffered(SIDE_BY_SIDE).collect().await
        }
    }

    async fn update_one(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        update: Update,
    ) -> Result<Updated> {
        let Update { filter, change, upsert } = update;
        let call = collection.update_one(filter, change).upsert(upsert);
        match self.reach(operation, async { Ok(call.await) }).await? {
            Ok(result) => Ok(updated(&result)),
            Err(error) if error::code(&error) == Some(DUPLICATE_KEY) => Ok(Updated::Duplicate),
            Err(error) => Err(error::from_driver(operation, error)),
        }
    }

    async fn update_in_bulk(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        updates: Vec<Update>,
    ) -> Vec<Result<Updated>> {
        let count = updates.len();
        let namespace = collection.namespace();
        let models = updates.into_iter().map(|Update { filter, change, upsert }| {
            WriteModel::UpdateOne(
                UpdateOneModel::builder()
                    .namespace(namespace.clone())
                    .filter(filter)
                    .update(change)
                    .upsert(upsert)
                    .build(),
            )
        });
        self.write_in_bulk(operation, count, models).await
    }

    /// Deletes records, in no particular order; one answer per filter: `Missed`, or `Matched`.
    pub(crate) async fn delete_each(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        filters: Vec<Document>,
    ) -> Vec<Result<Updated>> {
        if self.bulk && filters.len() > 1 {
            let (count, namespace) = (filters.len(), collection.namespace());
            let models = filters.into_iter().map(|filter| {
                let model = DeleteOneModel::builder().namespace(namespace.clone()).filter(filter);
                WriteModel::DeleteOne(model.build())
            });
            self.write_in_bulk(operation, count, models).await
        } else {
            let one = async |filter| {
                let gone = self.run(operation, collection.delete_one(filter)).await?;
                Ok(deleted(&gone))
            };
            stream::iter(filters.into_iter().map(one)).buffered(SIDE_BY_SIDE).collect().await
        }
    }

    /// Makes records, in no particular order; one answer per record: `Inserted`, or `Duplicate`.
    pub(crate) async fn insert_each(
        &self,
        operation: &'static str,
        collection: &Collection<Document>,
        records: Vec<Document>,
    ) -> Vec<Result<Updated>> {
        if records.is_empty() {
            return Vec::new();
        }
        let count = records.len();
        let insert = collection.insert_many(records).ordered(false);
        match self.reach(operation, async { Ok(insert.await) }).await {
            Err(timeout) => vec![Err(timeout); count],
            Ok(Ok(_)) => vec![Ok(Updated::Inserted); count],
            Ok(Err(error)) => partly_inserted(operation, count, error),
        }
    }

    async fn write_in_bulk(
        &self,
        operation: &'static str,
        count: usize,
        models: impl IntoIterator<Item = WriteModel>,
    ) -> Vec<Result<Updated>> {
        let call = self.client().bulk_write(models).ordered(false).verbose_results();
        match self.reach(operation, async { Ok(call.await) }).await {
            Err(timeout) => vec![Err(timeout); count],
            Ok(Ok(done)) => answers(operation, count, &outcomes(&done), |_| None),
            Ok(Err(error)) => partial_answers(operation, count, error),
        }
    }
}

/// What became of the items that the server took.
fn outcomes(done: &VerboseBulkWriteResult) -> HashMap<usize, Updated> {
    let updates = done.update_results.iter().map(|(index, result)| (*index, updated(result)));
    let deletes = done.delete_results.iter().map(|(index, result)| (*index, deleted(result)));
    updates.chain(deletes).collect()
}

/// What a batch that failed in part, or as a whole, means for each of its items.
fn partial_answers(
    operation: &'static str,
    count: usize,
    error: mongodb::error::Error,
) -> Vec<Result<Updated>> {
    let whole = error::from_driver(operation, error.clone());
    let DriverError::BulkWrite(BulkWriteError {
        write_errors,
        partial_result,
        write_concern_errors,
        ..
    }) = *error.kind
    else {
        return vec![Err(whole); count];
    };
    // Written, but not as widely as it has to be: as good as unknown.
    if !write_concern_errors.is_empty() {
        return vec![Err(whole); count];
    }
    let done = match partial_result {
        Some(PartialBulkWriteResult::Verbose(done)) => outcomes(&done),
        _ => HashMap::new(),
    };
    answers(operation, count, &done, |index| match write_errors.get(&index) {
        Some(refused) if refused.code == DUPLICATE_KEY => Some(Ok(Updated::Duplicate)),
        Some(refused) => Some(Err(error::from_code(operation, refused.code, &refused.message))),
        None => Some(Err(whole.clone())),
    })
}

fn answers(
    operation: &'static str,
    count: usize,
    done: &HashMap<usize, Updated>,
    otherwise: impl Fn(usize) -> Option<Result<Updated>>,
) -> Vec<Result<Updated>> {
    let answer = |index| match done.get(&index) {
        Some(outcome) => Ok(*outcome),
        None => otherwise(index).unwrap_or_else(|| {
            let error = Error::new(ErrorKind::Corrupt, operation).with_backend(BACKEND);
            Err(error.with_detail("the server left an update of a batch unanswered"))
        }),
    };
    (0..count).map(answer).collect()
}

/// What an insert that failed in part, or as a whole, means for each of its records.
fn partly_inserted(
    operation: &'static str,
    count: usize,
    error: mongodb::error::Error,
) -> Vec<Result<Updated>> {
    let whole = error::from_driver(operation, error.clone());
    let DriverError::InsertMany(InsertManyError {
        write_errors: Some(refused),
        // Written, but not as widely as it has to be: as good as unknown.
        write_concern_error: None,
        ..
    }) = *error.kind
    else {
        return vec![Err(whole); count];
    };
    let mut answers = vec![Ok(Updated::Inserted); count];
    for refused in refused {
        if let Some(answer) = answers.get_mut(refused.index) {
            *answer = match refused.code {
                DUPLICATE_KEY => Ok(Updated::Duplicate),
                code => Err(error::from_code(operation, code, &refused.message)),
            };
        }
    }
    answers
}

fn updated(result: &UpdateResult) -> Updated {
    match (&result.upserted_id, result.matched_count) {
        (Some(_), _) => Updated::Inserted,
        (None, 0) => Updated::Missed,
        (None, _) => Updated::Matched { modified: result.modified_count > 0 },
    }
}

fn deleted(result: &DeleteResult) -> Updated {
    match result.deleted_count {
        0 => Updated::Missed,
        _ => Updated::Matched { modified: true },
    }
}
