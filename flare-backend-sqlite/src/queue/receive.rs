//! Takes messages that can be received out of a queue for as long as they are the receiver's alone, within the
//! writer's transaction.

use std::time::Duration;

use bytes::Bytes;
use flare_core::Result;
use flare_core::port::{Incoming, QueueName, Receipt};
use rusqlite::{OptionalExtension, params};

use super::{SqliteQueue, known};
use crate::codec::time;
use crate::engine::{Effort, Tx};
use crate::fault::Worked;
use crate::repository::limit;

/// What was there.
pub(super) struct Taken {
    pub(super) messages: Vec<Incoming>,
    /// How long until something more can be received, if anything can.
    pub(super) next: Option<Duration>,
}

impl SqliteQueue {
    /// Takes what can be received now.
    pub(super) async fn take(
        &self,
        queue: &QueueName,
        max: usize,
        visibility: Duration,
    ) -> Result<Taken> {
        let queue = queue.clone();
        let holder = self.engine.holder();
        let take = move |tx: &mut Tx<'_>| take(tx, &queue, max, visibility, holder);
        let effort = Effort::fleeting("receive").of(max.min(100)).for_caller();
        self.engine.write(effort, take).await
    }
}

fn take(
    tx: &mut Tx<'_>,
    queue: &QueueName,
    max: usize,
    visibility: Duration,
    holder: i64,
) -> Worked<Taken> {
    let n = known(tx.connection, "receive", queue)?;
    let now = time(tx.now);
    let mut due = tx.sql(
        "SELECT n, attempt, payload FROM messages WHERE queue = ?1 AND at <= ?2 ORDER BY at LIMIT ?3",
    )?;
    let found =
        due.query_map([n, now, limit(max)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let found: Vec<(i64, u32, Vec<u8>)> = found.collect::<rusqlite::Result<_>>()?;
    if found.is_empty() {
        let mut later = tx.sql("SELECT min(at) FROM messages WHERE queue = ?1")?;
        let at: Option<i64> = later.query_row([n], |row| row.get(0)).optional()?.flatten();
        let next = at.map(|at| Duration::from_nanos(at.saturating_sub(now).unsigned_abs()));
        return Ok(Taken { messages: Vec::new(), next });
    }
    let receipt = tx.serial()?;
    let until = time(tx.now + visibility);
    let mut hold = tx
        .sql("UPDATE messages SET at = ?2, receipt = ?3, attempt = ?4, holder = ?5 WHERE n = ?1")?;
    let mut messages = Vec::with_capacity(found.len());
    for (message, attempt, payload) in found {
        let attempt = attempt.saturating_add(1);
        hold.execute(params![message, until, receipt, attempt, holder])?;
        let token = Receipt::new(format!("{message}:{receipt}"));
        messages.push(Incoming::new(Bytes::from(payload), attempt, token));
    }
    Ok(Taken { messages, next: None })
}
