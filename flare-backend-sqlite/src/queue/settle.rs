//! Takes receipts within the writer's transaction; settles or prolongs what they are good for.

use std::time::Duration;

use flare_core::port::{QueueName, Settlement};
use flare_core::{Error, ErrorKind, Result};
use rusqlite::params;

use super::number;
use crate::codec::time;
use crate::engine::Tx;
use crate::error;
use crate::fault::Worked;

/// Keeps messages invisible from now on; one answer each.
pub(super) fn extend(
    tx: &mut Tx<'_>,
    queue: &QueueName,
    tokens: &[Box<str>],
    visibility: Duration,
) -> Worked<Vec<Result<()>>> {
    const OPERATION: &str = "extend";
    let n = number(tx.connection, &queue.to_string())?;
    let mut hold =
        tx.sql("UPDATE messages SET at = ?4 WHERE n = ?2 AND receipt = ?3 AND queue = ?1")?;
    tx.each(OPERATION, tokens, |tx, token| {
        let (message, receipt) = parse(OPERATION, token)?;
        let until = time(tx.now + visibility);
        let held = hold.execute(params![n, message, receipt, until])? == 1;
        if held { Ok(()) } else { Err(lost(OPERATION).into()) }
    })
}

/// Settles a batch; one answer each. Until somebody else has a message a late receipt is still good for it:
/// the work was done, and doing it again would help nobody.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    queue: &QueueName,
    tokens: &[(Box<str>, Settlement)],
) -> Worked<Vec<Result<()>>> {
    const OPERATION: &str = "settle";
    let n = number(tx.connection, &queue.to_string())?;
    let mut done = tx.sql("DELETE FROM messages WHERE n = ?2 AND receipt = ?3 AND queue = ?1")?;
    let mut release = tx.sql(
        "UPDATE messages SET at = ?4, receipt = NULL, holder = NULL \
         WHERE n = ?2 AND receipt = ?3 AND queue = ?1",
    )?;
    let mut released = false;
    let settled = tx.each(OPERATION, tokens, |tx, (token, settlement)| {
        let (message, receipt) = parse(OPERATION, token)?;
        let changed = match settlement {
            Settlement::Done => done.execute(params![n, message, receipt])?,
            Settlement::Retry { after } => {
                released = true;
                release.execute(params![n, message, receipt, time(tx.now + *after)])?
            }
        };
        if changed == 1 { Ok(()) } else { Err(lost(OPERATION).into()) }
    })?;
    if released {
        tx.ring(queue);
    }
    Ok(settled)
}

fn parse(operation: &'static str, token: &str) -> Result<(i64, i64)> {
    let parsed = || {
        let (message, receipt) = token.split_once(':')?;
        Some((message.parse().ok()?, receipt.parse().ok()?))
    };
    parsed().ok_or_else(|| lost(operation))
}

fn lost(operation: &'static str) -> Error {
    let detail = "the message is settled, or somebody else's by now, or its queue is gone";
    error::of(ErrorKind::Lost, operation, detail)
}
