//! Takes messages that can be received out of a queue, for as long as they are the receiver's alone.

use std::time::Duration;

use bytes::Bytes;
use flare_core::Result;
use flare_core::port::{Incoming, Queue, QueueName, Receipt, Receive};

use super::{PostgresQueue, unknown};
use crate::codec::limit;
use crate::connection::Value;
use crate::fault::Worked;

const OPERATION: &str = "receive";

/// Takes what is due, and says when the next is. A receipt that is lost with the server is a message that is
/// received again, so nobody waits for the disk.
const TAKE: &str = "WITH q AS (SELECT n, flare.now() AS now, nextval('flare.receipts') AS receipt, \
         set_config('synchronous_commit', 'off', true) FROM flare.queues WHERE name = $1), \
     due AS (SELECT m.n FROM q JOIN flare.messages m ON m.queue = q.n WHERE m.at <= q.now \
         ORDER BY m.at, m.n LIMIT $2 FOR UPDATE OF m SKIP LOCKED), \
     taken AS (UPDATE flare.messages m SET at = q.now + $3, receipt = q.receipt, attempt = m.attempt + 1 \
         FROM q, due WHERE m.n = due.n RETURNING m.n, m.attempt, m.payload) \
     SELECT t.n, t.attempt, t.payload, q.receipt, \
         (SELECT min(m.at) FROM flare.messages m WHERE m.queue = q.n) - q.now \
     FROM q LEFT JOIN taken t ON true ORDER BY t.n";

/// What was there.
struct Taken {
    messages: Vec<Incoming>,
    /// How long until something more can be received, if anything can.
    next: Option<Duration>,
}

impl PostgresQueue {
    pub(super) async fn receive_some(
        &self,
        queue: &QueueName,
        request: Receive,
    ) -> Result<Vec<Incoming>> {
        let name = queue.to_string();
        let clock = &self.database.clock;
        let give_up_at = clock.monotonic().saturating_add(request.wait);
        let max = request.max.min(self.facts().max_batch);
        let take = || self.take(queue, &name, max, request.visibility);
        if request.wait.is_zero() {
            return Ok(self.database.attempts(OPERATION, take).await?.messages);
        }
        let listener = self.pulse.listen(&name);
        // Whoever waits for long enough is told by a poll: a queue that is known to be empty is not looked at.
        let is_told = request.wait >= self.database.poll_every * 2;
        loop {
            // Listening starts before looking: what happens in between is not missed.
            let rung = listener.rung().notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let quiet = listener.quiet().filter(|quiet| {
                is_told && quiet.until.is_none_or(|until| until > clock.monotonic())
            });
            let until = match quiet {
                Some(quiet) => quiet.until,
                None => {
                    let rings = listener.rings();
                    let taken = self.database.attempts(OPERATION, take).await?;
                    if !taken.messages.is_empty() {
                        return Ok(taken.messages);
                    }
                    let until = taken.next.map(|next| clock.monotonic().saturating_add(next));
                    listener.found_nothing(rings, until);
                    until
                }
            };
            let now = clock.monotonic();
            if now >= give_up_at {
                return Ok(Vec::new());
            }
            let pause = until.map_or(give_up_at, |until| until.min(give_up_at)).saturating_sub(now);
            tokio::select! {
                () = rung => {}
                () = clock.sleep(pause.max(Duration::from_millis(1))) => {}
            }
        }
    }

    async fn take(
        &self,
        queue: &QueueName,
        name: &str,
        max: usize,
        visibility: Duration,
    ) -> Worked<Taken> {
        let visibility = i64::try_from(visibility.as_nanos()).unwrap_or(i64::MAX / 2);
        let values: [&dyn Value; 3] = [&name, &limit(max), &visibility];
        let rows = self.database.all(OPERATION, TAKE, &values).await?;
        let first = rows.first().ok_or_else(|| unknown(OPERATION, queue))?;
        let next: Option<i64> = first.try_get(4)?;
        let next = next.map(|next| Duration::from_nanos(next.max(0).unsigned_abs()));
        let mut messages = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(n) = row.try_get::<_, Option<i64>>(0)? else { continue };
            let (attempt, payload): (i64, Vec<u8>) = (row.try_get(1)?, row.try_get(2)?);
            let receipt: i64 = row.try_get(3)?;
            let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
            let token = Receipt::new(format!("{n}:{receipt}"));
            messages.push(Incoming::new(Bytes::from(payload), attempt, token));
        }
        Ok(Taken { messages, next })
    }
}
