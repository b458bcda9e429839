//! Takes receipts; settles or prolongs what they are good for. Until somebody else has a message a late receipt
//! is still good for it: the work was done, and doing it again would help nobody.

use std::collections::HashSet;
use std::time::Duration;

use flare_core::port::{QueueName, Receipt, Settlement};
use flare_core::{Error, ErrorKind, Result};
use tokio_postgres::Row;

use super::PostgresQueue;
use super::send::KEYS;
use crate::connection::Value;
use crate::error;
use crate::fault::Worked;

/// Messages under their receipts, locked in an order that is the same for everybody.
macro_rules! held {
    () => {
        "WITH l AS (SELECT m.n FROM flare.messages m JOIN flare.queues q ON q.n = m.queue AND q.name = $1 \
             JOIN unnest($2::bigint[], $3::bigint[]) k(n, receipt) ON m.n = k.n AND m.receipt = k.receipt \
             ORDER BY m.n FOR UPDATE OF m) "
    };
}

const EXTEND: &str = concat!(
    held!(),
    "UPDATE flare.messages m SET at = (SELECT flare.now()) + $4 FROM l WHERE m.n = l.n RETURNING m.n"
);

const DONE: &str =
    concat!(held!(), "DELETE FROM flare.messages m USING l WHERE m.n = l.n RETURNING m.n");

/// Lets messages wait again. One whose key another one waits with by now is absorbed by that, unless that is
/// received at this very moment: what was to be done again may have come too late for it.
const RELEASE: &str = "WITH l AS (SELECT m.n, m.queue, m.key, k.after + flare.now() AS at \
         FROM flare.messages m JOIN flare.queues q ON q.n = m.queue AND q.name = $1 \
         JOIN unnest($2::bigint[], $3::bigint[], $4::bigint[]) k(n, receipt, after) \
             ON m.n = k.n AND m.receipt = k.receipt \
         ORDER BY m.n FOR UPDATE OF m), \
     waiting AS MATERIALIZED (SELECT l.n, l.at, o.n AS other FROM l JOIN flare.messages o \
         ON o.queue = l.queue AND o.key = l.key AND o.receipt IS NULL FOR UPDATE OF o), \
     hastened AS (UPDATE flare.messages m SET at = least(m.at, w.at) \
         FROM (SELECT other, min(at) AS at FROM waiting GROUP BY other) w WHERE m.n = w.other), \
     absorbed AS (DELETE FROM flare.messages m USING waiting w WHERE m.n = w.n), \
     again AS (SELECT n, row_number() OVER (PARTITION BY queue, key ORDER BY at, n) AS place, \
         min(at) OVER (PARTITION BY queue, key) AS at, l.at AS own, key \
         FROM l WHERE n NOT IN (SELECT n FROM waiting)), \
     twice AS (DELETE FROM flare.messages m USING again a \
         WHERE m.n = a.n AND a.key IS NOT NULL AND a.place > 1), \
     released AS (UPDATE flare.messages m SET receipt = NULL, \
             at = CASE WHEN a.key IS NULL THEN a.own ELSE a.at END \
         FROM again a WHERE m.n = a.n AND (a.key IS NULL OR a.place = 1)) \
     SELECT n FROM l";

impl PostgresQueue {
    /// Keeps messages invisible from now on; one answer each.
    pub(super) async fn hold(
        &self,
        queue: &QueueName,
        receipts: &[&Receipt],
        visibility: Duration,
    ) -> Result<Vec<Result<()>>> {
        const OPERATION: &str = "extend";
        let (name, time) = (queue.to_string(), nanos(visibility));
        let parsed: Vec<Option<(i64, i64)>> = receipts.iter().map(|it| parse(it.token())).collect();
        let (numbers, tokens): (Vec<i64>, Vec<i64>) = parsed.iter().flatten().copied().unzip();
        let hold = || async {
            let values: [&dyn Value; 4] = [&name, &numbers, &tokens, &time];
            changed(&self.database.all(OPERATION, EXTEND, &values).await?)
        };
        let held = self.database.attempts(OPERATION, hold).await?;
        let answer = |it: Option<(i64, i64)>| match it.filter(|(n, _)| held.contains(n)) {
            Some(_) => Ok(()),
            None => Err(lost(OPERATION)),
        };
        Ok(parsed.into_iter().map(answer).collect())
    }

    /// Settles a batch; one answer each.
    pub(super) async fn settle_batch(
        &self,
        queue: &QueueName,
        settlements: &[(Receipt, Settlement)],
    ) -> Result<Vec<Result<()>>> {
        const OPERATION: &str = "settle";
        let name = queue.to_string();
        let done = || self.settle_once(&name, settlements);
        let settled = self.database.attempts(OPERATION, done).await?;
        if settlements.iter().any(|(_, how)| matches!(how, Settlement::Retry { .. })) {
            self.pulse.ring(&name);
        }
        let answer = |(receipt, _): &(Receipt, Settlement)| {
            let good = parse(receipt.token()).is_some_and(|(n, _)| settled.contains(&n));
            if good { Ok(()) } else { Err(lost(OPERATION)) }
        };
        Ok(settlements.iter().map(answer).collect())
    }

    async fn settle_once(
        &self,
        name: &str,
        settlements: &[(Receipt, Settlement)],
    ) -> Worked<HashSet<i64>> {
        const OPERATION: &str = "settle";
        let (mut done, mut released) = (Columns::default(), Columns::default());
        for (receipt, settlement) in settlements {
            let Some(parsed) = parse(receipt.token()) else { continue };
            match settlement {
                Settlement::Done => done.push(parsed, 0),
                Settlement::Retry { after } => released.push(parsed, nanos(*after)),
            }
        }
        let mut session = self.database.session(OPERATION).await?;
        let mut settled = HashSet::new();
        if !done.numbers.is_empty() {
            let values: [&dyn Value; 3] = [&name, &done.numbers, &done.receipts];
            settled.extend(changed(&session.query(DONE, &values).await?)?);
        }
        if !released.numbers.is_empty() {
            let values: [&dyn Value; 4] =
                [&name, &released.numbers, &released.receipts, &released.after];
            session.begin(KEYS, &[&name]).await?;
            settled.extend(changed(&session.finish(RELEASE, &values).await?)?);
        }
        Ok(settled)
    }
}

#[derive(Default)]
struct Columns {
    numbers: Vec<i64>,
    receipts: Vec<i64>,
    after: Vec<i64>,
}

impl Columns {
    fn push(&mut self, (number, receipt): (i64, i64), after: i64) {
        self.numbers.push(number);
        self.receipts.push(receipt);
        self.after.push(after);
    }
}

fn changed(rows: &[Row]) -> Worked<HashSet<i64>> {
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<_, _>>()?)
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX / 2)
}

fn parse(token: &str) -> Option<(i64, i64)> {
    let (message, receipt) = token.split_once(':')?;
    Some((message.parse().ok()?, receipt.parse().ok()?))
}

fn lost(operation: &'static str) -> Error {
    let detail = "the message is settled, or somebody else's by now, or its queue is gone";
    error::of(ErrorKind::Lost, operation, detail)
}
