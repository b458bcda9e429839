//! Takes messages; gives each to one receiver at a time until it is settled. Across processes, by the file;
//! within this one whoever waits is woken by the commit itself.
//!
//! Commits of the queue alone do not wait for the disk: a message may be lost with the machine's power, never
//! with a process, and a queue is a wake-up, never the truth.

mod receive;
mod send;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::model::Timestamp;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};
use rusqlite::{Connection, OptionalExtension, params};

use crate::codec::time;
use crate::engine::{Effort, Engine, Reader, Tx};
use crate::error;
use crate::fault::Worked;
use receive::Taken;

/// The longest delay of a message.
const MAX_DELAY: Duration = Duration::from_hours(7 * 24);
const MAX_BATCH: usize = 1_000;
const MAX_PAYLOAD: usize = 1 << 20;
/// Each is a queue that somebody waits for all the time; one process alone needs few.
const SLOTS: u32 = 256;

/// Queues in a file.
#[derive(Debug)]
pub struct SqliteQueue {
    engine: Arc<Engine>,
}

impl SqliteQueue {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

#[async_trait]
impl Queue for SqliteQueue {
    fn facts(&self) -> QueueFacts {
        let mut facts = QueueFacts::new(MAX_BATCH, MAX_DELAY, MAX_PAYLOAD);
        facts.coalesces = true;
        facts.slots = SLOTS;
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        let name = queue.to_string();
        let create = move |tx: &mut Tx<'_>| {
            if number(tx.connection, &name)?.is_none() {
                tx.sql("INSERT INTO queues (name) VALUES (?1)")?.execute([&name])?;
            }
            Ok(())
        };
        self.engine.write(Effort::fleeting("create"), create).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        let queue = queue.clone();
        let delete = move |tx: &mut Tx<'_>| {
            if let Some(n) = number(tx.connection, &queue.to_string())? {
                tx.sql("DELETE FROM messages WHERE queue = ?1")?.execute([n])?;
                tx.sql("DELETE FROM queues WHERE n = ?1")?.execute([n])?;
                tx.ring(&queue);
            }
            Ok(())
        };
        self.engine.write(Effort::fleeting("delete"), delete).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        let read = |reader: &Reader<'_>| {
            let mut names = reader.sql("SELECT name FROM queues")?;
            let names = names.query_map([], |row| row.get(0))?;
            Ok(names.collect::<rusqlite::Result<Vec<String>>>()?)
        };
        let names = async move {
            let names = self.engine.read("list", read).await;
            let names: Vec<Result<QueueName>> = match names {
                // What has no name of ours nobody here made.
                Ok(names) => names.iter().filter_map(|name| name.parse().ok()).map(Ok).collect(),
                Err(error) => vec![Err(error)],
            };
            stream::iter(names)
        };
        stream::once(names).flatten().boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        let queue = queue.clone();
        let count = move |reader: &Reader<'_>| {
            let n = known(reader.connection, "depth", &queue)?;
            let mut count = reader.sql(
                "SELECT count(*) FILTER (WHERE at <= ?2), \
                 count(*) FILTER (WHERE at > ?2 AND receipt IS NULL), \
                 count(*) FILTER (WHERE at > ?2 AND receipt IS NOT NULL) \
                 FROM messages WHERE queue = ?1",
            )?;
            let now = time(reader.now()?);
            let read = |row: &rusqlite::Row<'_>| {
                let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                Ok(QueueDepth::exact(count(0)?, count(1)?, count(2)?))
            };
            Ok(count.query_row([n, now], read)?)
        };
        self.engine.read("depth", count).await
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        let (items, facts) = (messages.len(), self.facts());
        if let Err(error) = facts.check_batch("send", items) {
            return vec![Err(error.with_backend(crate::BACKEND)); items];
        }
        let bytes = messages.iter().map(|message| message.payload.len()).sum();
        let effort = Effort::fleeting("send").of(items).bytes(bytes);
        let queue = queue.clone();
        let send = move |tx: &mut Tx<'_>| send::send(tx, &facts, &queue, &messages);
        match self.engine.write(effort, send).await {
            Ok(sent) => sent,
            Err(error) => vec![Err(error); items],
        }
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        let max = request.max.min(MAX_BATCH);
        let clock = self.engine.machine().clock();
        let until = clock.monotonic().saturating_add(request.wait);
        loop {
            // Listening starts before looking: what is sent in between is not missed.
            let listener = self.engine.signals().bells.listen(queue);
            let rung = listener.rung().notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let Taken { messages, next } = self.take(queue, max, request.visibility).await?;
            let left = until.saturating_sub(clock.monotonic());
            if !messages.is_empty() || left.is_zero() || max == 0 {
                return Ok(messages);
            }
            let pause = next.map_or(left, |next| next.min(left));
            tokio::select! {
                biased;
                () = &mut rung => {}
                () = clock.sleep(pause) => {}
            }
        }
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        let items = receipts.len();
        if let Err(error) = self.facts().check_batch("extend", items) {
            return vec![Err(error.with_backend(crate::BACKEND)); items];
        }
        let tokens: Vec<Box<str>> = receipts.iter().map(|receipt| receipt.token().into()).collect();
        let effort = Effort::fleeting("extend").of(items);
        let queue = queue.clone();
        let extend = move |tx: &mut Tx<'_>| settle::extend(tx, &queue, &tokens, visibility);
        match self.engine.write(effort, extend).await {
            Ok(extended) => extended,
            Err(error) => vec![Err(error); items],
        }
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let items = settlements.len();
        let tokens: Vec<(Box<str>, Settlement)> =
            settlements.iter().map(|(receipt, how)| (receipt.token().into(), *how)).collect();
        let (effort, name) = (Effort::fleeting("settle").of(items), queue.clone());
        let settled = match self.facts().check_batch("settle", items) {
            Err(error) => Err(error.with_backend(crate::BACKEND)),
            Ok(()) => {
                let settle = move |tx: &mut Tx<'_>| settle::settle(tx, &name, &tokens);
                self.engine.write(effort, settle).await
            }
        };
        let settled = settled.unwrap_or_else(|error| vec![Err(error); items]);
        let back = |((receipt, _), settled): ((Receipt, Settlement), Result<()>)| {
            settled.map_err(|error| Unsettled::new(error, receipt))
        };
        settlements.into_iter().zip(settled).map(back).collect()
    }
}

/// The number of a queue, if it is there.
fn number(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut find = connection.prepare_cached("SELECT n FROM queues WHERE name = ?1")?;
    find.query_row([name], |row| row.get(0)).optional()
}

/// The number of a queue that has to be there.
fn known(connection: &Connection, operation: &'static str, queue: &QueueName) -> Worked<i64> {
    let found = number(connection, &queue.to_string())?;
    Ok(found.ok_or_else(|| missing(operation, queue))?)
}

fn missing(operation: &'static str, queue: &QueueName) -> Error {
    error::of(ErrorKind::NotFound, operation, format!("there is no queue {queue}"))
}

/// Gives back what a dead holder had out, to be received from `now` on; gives the queues that it is in.
pub(crate) fn give_back(
    connection: &Connection,
    holder: i64,
    now: Timestamp,
) -> rusqlite::Result<Vec<QueueName>> {
    let mut find = connection.prepare_cached(
        "SELECT DISTINCT name FROM messages JOIN queues ON queues.n = queue WHERE holder = ?1",
    )?;
    let names = find.query_map([holder], |row| row.get(0))?;
    let names: Vec<String> = names.collect::<rusqlite::Result<_>>()?;
    let mut release = connection.prepare_cached(
        "UPDATE messages SET at = min(at, ?2), receipt = NULL, holder = NULL WHERE holder = ?1",
    )?;
    release.execute(params![holder, time(now)])?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

/// The earliest time of a message of each queue that has any, found by skipping from queue to queue in the
/// index, however much is in them.
pub(crate) fn first_of_each(connection: &Connection) -> rusqlite::Result<Vec<(String, i64)>> {
    let mut next = connection.prepare_cached(
        "SELECT queue, at FROM messages WHERE queue > ?1 ORDER BY queue, at LIMIT 1",
    )?;
    let mut name = connection.prepare_cached("SELECT name FROM queues WHERE n = ?1")?;
    let (mut found, mut last) = (Vec::new(), i64::MIN);
    loop {
        let first: Option<(i64, i64)> =
            next.query_row(params![last], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((queue, at)) = first else { return Ok(found) };
        last = queue;
        let name: Option<String> = name.query_row([queue], |row| row.get(0)).optional()?;
        found.extend(name.map(|name| (name, at)));
    }
}
