//! Takes inputs that documents are pulled from; gives them by id, with their owners' [`states`] and their
//! [`rejects`]. Whether the consumer is there is looked up in the transaction that writes for it, so that nothing
//! outlives it.

mod rejects;
mod states;

use async_trait::async_trait;
use flare_core::Result;
use flare_core::model::{
    Applied, Consumer, ConsumerId, ConsumerState, Epoch, Generation, Reject, RejectId, Timestamp,
};
use flare_core::port::{ConsumerStore, Listing, Page, Replaced, Scan};
use rusqlite::{Connection, OptionalExtension, params};

use super::SqliteRepository;
use super::documents::pages;
use crate::codec::consumer::{COLUMNS, StoredConsumer, record, state as state_record};
use crate::codec::reject::record as reject_record;
use crate::codec::{count, counted};
use crate::engine::{Effort, Reader, Tx};
use crate::fault::Worked;

/// Consumers of a page of a scan.
const PAGE: usize = 256;

#[async_trait]
impl ConsumerStore for SqliteRepository {
    async fn insert_consumer(&self, consumer: Consumer) -> Result<Consumer> {
        let effort = Effort::durable("insert_consumer");
        self.engine.write(effort, move |tx| insert(tx, &consumer)).await
    }

    async fn consumer(&self, id: ConsumerId) -> Result<Option<Consumer>> {
        let read = move |reader: &Reader<'_>| {
            let found = stored(reader.connection, id)?;
            Ok(found.map(|found| found.consumer("consumer")).transpose()?)
        };
        self.engine.read("consumer", read).await
    }

    async fn list_consumers(&self, page: Page) -> Result<Listing<Consumer>> {
        const OPERATION: &str = "list_consumers";
        let read = move |reader: &Reader<'_>| {
            let total = reader.sql("SELECT count(*) FROM consumers")?.query_row([], counted)?;
            let sql = format!("SELECT {COLUMNS} FROM consumers ORDER BY id LIMIT ?1 OFFSET ?2");
            let mut list = reader.sql(&sql)?;
            let offset = i64::try_from(page.offset).unwrap_or(i64::MAX);
            let found = list.query_map(params![page.limit, offset], StoredConsumer::of)?;
            let found: Vec<StoredConsumer> = found.collect::<rusqlite::Result<_>>()?;
            let read = found.iter().map(|found| found.consumer(OPERATION));
            Ok(Listing::of_read(read, total)?)
        };
        self.engine.read(OPERATION, read).await
    }

    fn scan_consumers(&self, after: Option<ConsumerId>) -> Scan<'_, Consumer> {
        const OPERATION: &str = "scan_consumers";
        let start = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
        pages(start, move |after| {
            let read = move |reader: &Reader<'_>| {
                let sql = format!(
                    "SELECT {COLUMNS} FROM consumers WHERE id > ?1 ORDER BY id LIMIT {PAGE}"
                );
                let mut find = reader.sql(&sql)?;
                let found = find.query_map([after], StoredConsumer::of)?;
                let found: Vec<StoredConsumer> = found.collect::<rusqlite::Result<_>>()?;
                let last = found.last().filter(|_| found.len() == PAGE);
                let next = last.map(|last| last.id().to_vec());
                Ok((found.iter().map(|found| found.consumer(OPERATION)).collect(), next))
            };
            Box::pin(self.engine.read(OPERATION, read))
        })
    }

    async fn replace_consumer(
        &self,
        generation: Generation,
        consumer: Consumer,
    ) -> Result<Replaced<Consumer>> {
        let replace = move |tx: &mut Tx<'_>| replace(tx, generation, &consumer);
        self.engine.write(Effort::durable("replace_consumer"), replace).await
    }

    async fn remove_consumer(&self, id: ConsumerId, at: Option<Generation>) -> Result<bool> {
        self.engine.write(Effort::durable("remove_consumer"), move |tx| remove(tx, id, at)).await
    }

    async fn store_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
        state: ConsumerState,
    ) -> Result<Applied> {
        const OPERATION: &str = "store_consumer_state";
        let text = state_record(OPERATION, &state)?;
        let effort = Effort::durable(OPERATION).bytes(text.len());
        self.engine.write(effort, move |tx| states::store(tx, epoch, id, &text)).await
    }

    async fn claim_consumer_state(
        &self,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        let effort = Effort::durable("claim_consumer_state");
        self.engine.write(effort, move |tx| states::claim(tx, epoch, id)).await
    }

    async fn consumer_states(
        &self,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        self.engine.read("consumer_states", move |reader| states::of(reader, &ids)).await
    }

    async fn insert_rejects(&self, rejects: Vec<Reject>, most: usize) -> Result<()> {
        const OPERATION: &str = "insert_rejects";
        let records = rejects.iter().map(|reject| reject_record(OPERATION, reject));
        let records: Vec<String> = records.collect::<Result<_>>()?;
        let bytes = records.iter().map(String::len).sum();
        let effort = Effort::durable(OPERATION).of(rejects.len()).bytes(bytes);
        let insert = move |tx: &mut Tx<'_>| rejects::insert(tx, &rejects, &records, most);
        self.engine.write(effort, insert).await
    }

    async fn list_rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        let read = move |reader: &Reader<'_>| rejects::list(reader, consumer, page);
        self.engine.read("list_rejects", read).await
    }

    async fn rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<Vec<Reject>> {
        let read = move |reader: &Reader<'_>| rejects::find(reader, consumer, &ids);
        self.engine.read("rejects", read).await
    }

    async fn remove_rejects(&self, consumer: ConsumerId, ids: Vec<RejectId>) -> Result<()> {
        let effort = Effort::durable("remove_rejects").of(ids.len());
        self.engine.write(effort, move |tx| rejects::remove(tx, consumer, &ids)).await
    }

    async fn expire_rejects(
        &self,
        consumer: ConsumerId,
        before: Timestamp,
        limit: usize,
    ) -> Result<u64> {
        let effort = Effort::durable("expire_rejects").of(limit.min(1_000));
        self.engine.write(effort, move |tx| rejects::expire(tx, consumer, before, limit)).await
    }
}

fn stored(connection: &Connection, id: ConsumerId) -> rusqlite::Result<Option<StoredConsumer>> {
    let sql = format!("SELECT {COLUMNS} FROM consumers WHERE id = ?1");
    let mut find = connection.prepare_cached(&sql)?;
    find.query_row([id.as_bytes()], StoredConsumer::of).optional()
}

/// The number that states and rejects know a consumer by, if it is there: it need not be one that can be read.
fn number(connection: &Connection, id: ConsumerId) -> rusqlite::Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT n FROM consumers WHERE id = ?1")?;
    find.query_row([id.as_bytes()], |row| row.get(0)).optional()
}

fn insert(tx: &mut Tx<'_>, given: &Consumer) -> Worked<Consumer> {
    const OPERATION: &str = "insert_consumer";
    if let Some(stored) = stored(tx.connection, given.id)? {
        return Ok(stored.consumer(OPERATION)?);
    }
    let text = record(OPERATION, given)?;
    let mut insert =
        tx.sql("INSERT INTO consumers (id, resource, generation, record) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![
        given.id.as_bytes(),
        given.resource.as_bytes(),
        count(given.generation.get()),
        text,
    ])?;
    Ok(given.clone())
}

fn replace(
    tx: &mut Tx<'_>,
    generation: Generation,
    given: &Consumer,
) -> Worked<Replaced<Consumer>> {
    const OPERATION: &str = "replace_consumer";
    let Some(stored) = stored(tx.connection, given.id)? else { return Ok(Replaced::Missing) };
    let stored = stored.consumer(OPERATION)?;
    if stored.generation != generation {
        return Ok(Replaced::Conflict(stored));
    }
    let next = stored.replaced_by(given.clone());
    let text = record(OPERATION, &next)?;
    let mut update = tx.sql("UPDATE consumers SET generation = ?2, record = ?3 WHERE id = ?1")?;
    update.execute(params![next.id.as_bytes(), count(next.generation.get()), text])?;
    Ok(Replaced::Done(next))
}

/// Forgets a consumer, unless it is at another generation than the one named; tells whether it is gone.
fn remove(tx: &mut Tx<'_>, id: ConsumerId, at: Option<Generation>) -> Worked<bool> {
    let Some(n) = number(tx.connection, id)? else { return Ok(true) };
    let at = at.map(|at| count(at.get()));
    let sql = "DELETE FROM consumers WHERE n = ?1 AND generation = ifnull(?2, generation)";
    if tx.sql(sql)?.execute(params![n, at])? == 0 {
        return Ok(false);
    }
    tx.sql("DELETE FROM consumer_states WHERE consumer = ?1")?.execute([n])?;
    tx.sql("DELETE FROM rejects WHERE consumer = ?1")?.execute([n])?;
    tx.after.freed = true;
    Ok(true)
}
