//! Takes messages; stores those that no waiting one stands for, in one statement.

use std::collections::HashMap;

use flare_core::Result;
use flare_core::port::{Outgoing, Queue, QueueName};

use super::{PostgresQueue, named, unknown};
use crate::connection::Value;
use crate::fault::Worked;

const OPERATION: &str = "send";

/// Sends messages; of those with a key the one that waits stands for them, from the earlier time on. Whoever listens is
/// told of those that are due at once, and who sent them: what sent them knows already.
pub(crate) const SEND: &str = "WITH q AS (SELECT n FROM flare.queues WHERE name = $1 FOR KEY SHARE), \
     sent AS (INSERT INTO flare.messages AS m (queue, at, attempt, key, payload) \
         SELECT q.n, t.now + v.delay, 0, v.key, v.payload \
         FROM q CROSS JOIN (SELECT flare.now() AS now) t \
         CROSS JOIN unnest($2::bigint[], $3::text[], $4::bytea[]) WITH ORDINALITY v(delay, key, payload, i) \
         ORDER BY v.i \
         ON CONFLICT (queue, key) WHERE key IS NOT NULL AND receipt IS NULL \
         DO UPDATE SET at = least(m.at, excluded.at)) \
     SELECT CASE WHEN 0 >= ANY ($2::bigint[]) \
         AND EXISTS (SELECT 1 FROM flare.listening l WHERE l.until > flare.now()) \
         THEN pg_notify(rtrim('flare.', '.'), $1 || ' ' || $5) END FROM q";

/// Has the keys of a queue to itself for the rest of a transaction: whoever sends with keys and whoever lets messages
/// wait again change the same ones, in orders of their own. Sending without keys goes on beside it.
macro_rules! keys {
    () => {
        "SELECT n FROM flare.queues WHERE name = $1 FOR NO KEY UPDATE"
    };
}
pub(super) const KEYS: &str = keys!();

/// Has the keys to itself, and messages whose visibility has ended wait, as they did before they were received.
/// They are locked in the order in which whoever settles some locks them.
const RETURN: &str = concat!(
    "WITH q AS MATERIALIZED (",
    keys!(),
    "), l AS MATERIALIZED (SELECT m.n FROM q JOIN flare.messages m ON m.queue = q.n \
         WHERE m.key = ANY($2) AND m.receipt IS NOT NULL AND m.at <= (SELECT flare.now()) \
         ORDER BY m.n FOR UPDATE OF m) \
     UPDATE flare.messages m SET receipt = NULL FROM l \
     WHERE m.n = l.n AND m.receipt IS NOT NULL AND m.at <= (SELECT flare.now()) \
     AND NOT EXISTS (SELECT 1 FROM flare.messages o WHERE o.queue = m.queue AND o.key = m.key \
         AND o.receipt IS NULL) \
     AND m.n = (SELECT min(o.n) FROM flare.messages o WHERE o.queue = m.queue AND o.key = m.key \
         AND o.receipt IS NOT NULL AND o.at <= (SELECT flare.now()))"
);

impl PostgresQueue {
    /// Sends a batch; one answer each.
    pub(super) async fn send_batch(
        &self,
        queue: &QueueName,
        messages: &[Outgoing],
    ) -> Vec<Result<()>> {
        let facts = self.facts();
        if let Err(error) = facts.check_batch(OPERATION, messages.len()) {
            return vec![Err(named(error)); messages.len()];
        }
        let checked: Vec<Result<()>> =
            messages.iter().map(|message| facts.check(message).map_err(named)).collect();
        let good = messages.iter().zip(&checked).filter(|(_, checked)| checked.is_ok());
        let good: Vec<&Outgoing> = good.map(|(message, _)| message).collect();
        if good.is_empty() && !messages.is_empty() {
            return checked;
        }
        let name = queue.to_string();
        let sent = self.database.attempts(OPERATION, || self.send_once(queue, &name, &good)).await;
        self.pulse.ring(&name);
        let answer = |checked: Result<()>| checked.and_then(|()| sent.clone());
        checked.into_iter().map(answer).collect()
    }

    async fn send_once(&self, queue: &QueueName, name: &str, messages: &[&Outgoing]) -> Worked<()> {
        let (mut delays, mut keys, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
        // One statement changes a message once: those with the same key are one here already.
        let mut places: HashMap<&str, usize> = HashMap::new();
        for message in messages {
            let delay = i64::try_from(message.delay.as_nanos()).unwrap_or(i64::MAX);
            if let Some(key) = message.coalesce.as_deref() {
                if let Some(place) = places.get(key) {
                    delays[*place] = delay.min(delays[*place]);
                    continue;
                }
                places.insert(key, delays.len());
            }
            delays.push(delay);
            keys.push(message.coalesce.as_deref());
            payloads.push(&message.payload[..]);
        }
        let mut session = self.database.session(OPERATION).await?;
        let values: [&dyn Value; 5] = [&name, &delays, &keys, &payloads, &self.pulse.sender()];
        let sent = if places.is_empty() {
            session.query(SEND, &values).await?
        } else {
            let returning: Vec<&str> = places.into_keys().collect();
            session.begin(RETURN, &[&name, &returning]).await?;
            session.finish(SEND, &values).await?
        };
        if sent.is_empty() {
            return Err(unknown(OPERATION, queue).into());
        }
        Ok(())
    }
}
