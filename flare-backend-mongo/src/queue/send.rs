//! Takes messages; gives each a record, unless a waiting one says the same. One insert for all;
//! the server refuses those that are absorbed, and what absorbed them is due as early as they were.

use std::collections::{BTreeMap, HashMap};

use flare_core::port::{Outgoing, Queue, QueueName};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, stream};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};

use super::MongoQueue;
use crate::bulk::Updated;
use crate::connection::Connection;
use crate::server_clock::ServerTime;
use crate::{BACKEND, record};

const OPERATION: &str = "send";
/// How many different due times are looked after at a time.
const SIDE_BY_SIDE: usize = 16;

impl MongoQueue {
    pub(super) async fn send_each(
        &self,
        queue: &QueueName,
        messages: Vec<Outgoing>,
    ) -> Vec<Result<()>> {
        let connection = self.sender(queue);
        let time = match self.facts().check_batch(OPERATION, messages.len()) {
            Ok(()) => self.server_time(OPERATION, queue, connection).await,
            Err(error) => Err(error),
        };
        let time = match time {
            Ok(time) => time,
            Err(error) => return vec![Err(error); messages.len()],
        };
        let mut batch = Batch::default();
        let places: Vec<Result<usize>> = messages
            .into_iter()
            .map(|message| self.facts().check(&message).map(|()| batch.add(message)))
            .collect();
        let name = queue.to_string();
        let sent = self.write(connection, &name, time, &batch.messages).await;
        let mut at_once = batch.messages.iter().zip(&sent);
        if at_once.any(|(message, sent)| message.delay.is_zero() && sent.is_ok()) {
            self.bells.ring(&name);
        }
        let answer = |place: usize| sent.get(place).cloned().unwrap_or_else(|| Err(unanswered()));
        places.into_iter().map(|place| place.and_then(answer)).collect()
    }

    /// Writes messages with different keys; one answer each.
    async fn write(
        &self,
        connection: &Connection,
        queue: &str,
        time: ServerTime,
        messages: &[Outgoing],
    ) -> Vec<Result<()>> {
        if messages.is_empty() {
            return Vec::new();
        }
        let records = messages.iter().map(|message| message_record(queue, time, message)).collect();
        let mut answers = connection.insert_each(OPERATION, &self.messages, records).await;
        let mut absorbed: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (place, (answer, message)) in answers.iter().zip(messages).enumerate() {
            if matches!(answer, Ok(Updated::Duplicate)) {
                absorbed.entry(time.after(message.delay)).or_default().push(place);
            }
        }
        let hasten = async |(at, places): (i64, Vec<usize>)| {
            let keys = places.iter().filter_map(|place| absorbing(queue, messages.get(*place)?));
            (self.hasten(connection, keys.collect(), at).await, places)
        };
        let mut hastened = stream::iter(absorbed).map(hasten).buffer_unordered(SIDE_BY_SIDE);
        while let Some((hastened, places)) = hastened.next().await {
            let Err(error) = hastened else { continue };
            for place in places {
                if let Some(answer) = answers.get_mut(place) {
                    *answer = Err(error.clone());
                }
            }
        }
        drop(hastened);
        answers.into_iter().map(|answer| answer.map(|_| ())).collect()
    }

    /// Makes messages that absorb these due at `at`, if they are not earlier. Those that were
    /// received since they absorbed are past it.
    async fn hasten(&self, connection: &Connection, absorbing: Vec<String>, at: i64) -> Result<()> {
        let later = doc! { "absorbs": { "$in": absorbing }, "at": { "$gt": at } };
        let hasten = self.messages.update_many(later, doc! { "$set": { "at": at } });
        connection.run(OPERATION, hasten).await.map(|_| ())
    }

    /// As whom a queue is sent to: what is put is announced there, and nothing else often.
    fn sender(&self, queue: &QueueName) -> &Connection {
        match queue {
            QueueName::Partition => &self.puts,
            _ => &self.connection,
        }
    }
}

/// Messages to write, at most one per key.
#[derive(Default)]
struct Batch {
    messages: Vec<Outgoing>,
    by_key: HashMap<String, usize>,
}

impl Batch {
    /// Adds a message, or has the one with its key stand for it; gives the place in the batch.
    fn add(&mut self, message: Outgoing) -> usize {
        let place = self.messages.len();
        if let Some(key) = &message.coalesce {
            let place = *self.by_key.entry(key.clone()).or_insert(place);
            if let Some(first) = self.messages.get_mut(place) {
                first.delay = first.delay.min(message.delay);
                return place;
            }
        }
        self.messages.push(message);
        place
    }
}

fn message_record(queue: &str, time: ServerTime, message: &Outgoing) -> Document {
    let mut record = doc! {
        "_id": ObjectId::new(),
        "queue": queue,
        "at": time.after(message.delay),
        "payload": record::bytes(&message.payload),
        "attempt": 0,
    };
    if let Some(key) = absorbing(queue, message) {
        record.insert("key", &key);
        record.insert("absorbs", key);
    }
    record
}

/// What only one waiting message of all may say that it absorbs. Names of queues have no spaces.
fn absorbing(queue: &str, message: &Outgoing) -> Option<String> {
    message.coalesce.as_ref().map(|key| format!("{queue} {key}"))
}

fn unanswered() -> Error {
    let error = Error::new(ErrorKind::Internal, OPERATION).with_backend(BACKEND);
    error.with_detail("a message of a batch was left unanswered")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn equal_keys_of_a_batch_are_one_message_due_at_the_earlier_time() {
        let mut batch = Batch::default();
        let keyed = |payload: &'static str, delay| {
            Outgoing::new(payload).coalesce("k").delay(seconds(delay))
        };
        let messages = [Outgoing::new("a"), keyed("b", 3), Outgoing::new("c"), keyed("d", 2)];
        assert_eq!(messages.map(|message| batch.add(message)), [0, 1, 2, 1]);
        assert_eq!(batch.messages.len(), 3);
        let second = &batch.messages[1];
        assert_eq!((&second.payload[..], second.delay), (&b"b"[..], seconds(2)));
    }
}
