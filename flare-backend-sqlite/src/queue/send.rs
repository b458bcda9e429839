//! Takes messages within the writer's transaction; stores those that no waiting one stands for.

use flare_core::Result;
use flare_core::port::{Outgoing, QueueFacts, QueueName};
use rusqlite::{OptionalExtension, params};

use super::known;
use crate::codec::time;
use crate::engine::Tx;
use crate::fault::Worked;

const OPERATION: &str = "send";

/// Sends a batch; one answer each.
pub(super) fn send(
    tx: &mut Tx<'_>,
    facts: &QueueFacts,
    queue: &QueueName,
    messages: &[Outgoing],
) -> Worked<Vec<Result<()>>> {
    let n = known(tx.connection, OPERATION, queue)?;
    let mut insert = tx.sql(
        "INSERT INTO messages (n, queue, at, attempt, key, payload) VALUES (?1, ?2, ?3, 0, ?4, ?5)",
    )?;
    // One that is in flight absorbs nothing: what it stands for may have been read already.
    let mut waiting = tx.sql(
        "SELECT n, at FROM messages WHERE queue = ?1 AND key = ?2 AND (receipt IS NULL OR at <= ?3) \
         LIMIT 1",
    )?;
    let mut hasten = tx.sql("UPDATE messages SET at = ?2 WHERE n = ?1")?;
    let sent = tx.each(OPERATION, messages, |tx, message| {
        facts.check(message).map_err(|error| error.with_backend(crate::BACKEND))?;
        let (at, now) = (time(tx.now + message.delay), time(tx.now));
        if let Some(key) = &message.coalesce {
            let absorbing: Option<(i64, i64)> = waiting
                .query_row(params![n, key, now], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some((absorbing, waits)) = absorbing {
                if at < waits {
                    hasten.execute([absorbing, at])?;
                }
                return Ok(());
            }
        }
        let serial = tx.serial()?;
        insert.execute(params![serial, n, at, message.coalesce, &message.payload[..]])?;
        Ok(())
    })?;
    if sent.iter().any(Result::is_ok) {
        tx.ring(queue);
    }
    Ok(sent)
}
