//! Takes what the queue port asks; gives it as single conditional writes of the server's, by the
//! server's clock. A message is a record; to receive it is to move its time into the future.

mod bells;
mod claim;
mod known;
mod receive;
mod schema;
mod send;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::port::{
    Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use futures::future::ready;
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::Collection;
use mongodb::bson::{Bson, Document, doc};

use crate::bulk::Update;
use crate::connection::Connection;
use crate::places::Party;
use crate::record::{self, Record};
use crate::schema::{self as area, Area};
use crate::server_clock::{ServerTime, Sight};
use crate::{BACKEND, MongoConfig, error};
use bells::Bells;
use known::Known;
use schema::{MESSAGES, QUEUES};

pub(crate) use schema::COLLECTIONS;

/// The queues on MongoDB.
#[derive(Debug)]
pub struct MongoQueue {
    connection: Connection,
    /// The same, for what an origin's puts announce.
    puts: Connection,
    queues: Collection<Document>,
    messages: Collection<Document>,
    known: Arc<Known>,
    bells: Arc<Bells>,
}

impl MongoQueue {
    /// Connects to a database that is set up.
    pub async fn connect(config: MongoConfig) -> Result<Self> {
        let connection = Connection::open(&config).await?;
        Self::on(connection, config.create_missing).await
    }

    pub(crate) async fn on(connection: Connection, create_missing: bool) -> Result<Self> {
        area::ready(&connection, Area::Queue, create_missing).await?;
        let known = Arc::new(Known::default());
        Ok(Self {
            queues: connection.collection(QUEUES),
            messages: connection.collection(MESSAGES),
            bells: Bells::new(connection.clone(), Arc::clone(&known)),
            known,
            puts: connection.used_by(Party::Puts),
            connection,
        })
    }

    /// What the server's clock says, if the queue is there, or was a moment ago.
    async fn server_time(
        &self,
        operation: &'static str,
        queue: &QueueName,
        connection: &Connection,
    ) -> Result<ServerTime> {
        let clock = &self.connection.clock;
        let asked = clock.monotonic();
        let name = queue.to_string();
        if let Some(time) = self.known.server_time(&name, asked) {
            return Ok(time);
        }
        let look =
            [doc! { "$match": { "_id": &name } }, doc! { "$project": { "now": record::now() } }];
        let found = self.first(operation, look, connection).await?;
        let found = found.ok_or_else(|| missing(operation, queue))?;
        let server = Record::new(operation, &found).number("now")?;
        let sight = Sight { asked, answered: clock.monotonic(), server };
        self.known.saw(&name, sight);
        Ok(sight.server_time(sight.answered))
    }

    /// The first record that a pipeline makes of the queues.
    async fn first(
        &self,
        operation: &'static str,
        pipeline: impl IntoIterator<Item = Document>,
        connection: &Connection,
    ) -> Result<Option<Document>> {
        let aggregate = self.queues.aggregate(pipeline);
        let first = async { aggregate.await?.try_next().await };
        connection.run(operation, Box::pin(first)).await
    }
}

#[async_trait]
impl Queue for MongoQueue {
    fn facts(&self) -> QueueFacts {
        let mut facts = QueueFacts::new(1_000, Duration::from_secs(7 * 24 * 3600), 1 << 20);
        facts.coalesces = true;
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        let created_at = doc! { "createdAt": { "$ifNull": ["$createdAt", record::now()] } };
        let update = Update {
            filter: doc! { "_id": queue.to_string() },
            change: vec![doc! { "$set": created_at }].into(),
            upsert: true,
        };
        // Whether we made it or somebody else did: it is there.
        let made = self.connection.update_each("create", &self.queues, vec![update]).await;
        made.into_iter().try_for_each(|it| it.map(|_| ()))
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        const OPERATION: &str = "delete";
        let name = queue.to_string();
        // First the queue: nobody puts anything into it while it is emptied.
        let gone = self.queues.delete_one(doc! { "_id": &name });
        self.connection.run(OPERATION, gone).await?;
        self.known.forget(&name);
        let emptied = self.messages.delete_many(doc! { "queue": &name });
        self.connection.run(OPERATION, emptied).await?;
        self.bells.ring(&name);
        Ok(())
    }

    fn list(&self) -> Scan<'_, QueueName> {
        const OPERATION: &str = "list";
        let find = async { self.connection.run(OPERATION, self.queues.find(doc! {})).await };
        // What is not named as queues of ours are is none of ours.
        let name = |found: Document| found.get_str("_id").ok()?.parse().ok();
        let names = move |found: mongodb::Cursor<Document>| {
            let found = found.map_err(|error| error::from_driver(OPERATION, error));
            found.try_filter_map(move |found| ready(Ok(name(found))))
        };
        stream::once(find).map_ok(names).try_flatten().boxed()
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        const OPERATION: &str = "depth";
        let name = queue.to_string();
        let ready = doc! { "$lte": ["$at", record::now()] };
        let out = doc! { "$gt": ["$receipt", Bson::Null] };
        let in_flight = doc! { "$and": [{ "$not": [&ready] }, out] };
        let count = |which: Document| doc! { "$sum": { "$cond": [which, 1, 0] } };
        let pipeline = [
            doc! { "$match": { "_id": &name } },
            doc! { "$lookup": {
                "from": self.messages.name(),
                "pipeline": [
                    { "$match": { "queue": &name } },
                    { "$group": {
                        "_id": Bson::Null,
                        "all": { "$sum": 1 },
                        "ready": count(ready),
                        "inFlight": count(in_flight),
                    } },
                ],
                "as": "depth",
            } },
            doc! { "$set": { "depth": { "$first": "$depth" } } },
        ];
        let counted = self.first(OPERATION, pipeline, &self.connection).await?;
        let counted = counted.ok_or_else(|| missing(OPERATION, queue))?;
        let Some(depth) = Record::new(OPERATION, &counted).inner_if_any("depth")? else {
            return Ok(QueueDepth::exact(0, 0, 0));
        };
        let (all, ready): (u64, u64) = (depth.small("all")?, depth.small("ready")?);
        let in_flight: u64 = depth.small("inFlight")?;
        Ok(QueueDepth::exact(ready, all.saturating_sub(ready + in_flight), in_flight))
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        self.send_each(queue, messages).await
    }

    async fn receive(&self, queue: &QueueName, request: Receive) -> Result<Vec<Incoming>> {
        let max = request.max.min(self.facts().max_batch);
        if request.wait.is_zero() {
            return self.take(queue, max, request.visibility).await;
        }
        let clock = &self.connection.clock;
        let give_up_at = clock.now() + request.wait;
        let name = queue.to_string();
        let listener = self.bells.listen(&name);
        // Where there was something the last time there may be more. Elsewhere the poll, which asks
        // for all who wait at once, says when to look.
        let mut look = self.bells.is_busy(&name);
        loop {
            // Listening starts before looking: what is sent in between is not missed.
            let rung = listener.rung().notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            if look {
                let received = self.take(queue, max, request.visibility).await?;
                self.bells.found(&name, !received.is_empty());
                if !received.is_empty() || max == 0 || clock.now() >= give_up_at {
                    return Ok(received);
                }
            }
            tokio::select! {
                biased;
                () = &mut rung => look = true,
                () = clock.sleep_until(give_up_at) => {
                    // Polls went through, and told of nothing.
                    if self.known.was_seen(&name, clock.monotonic()) {
                        return Ok(Vec::new());
                    }
                    look = true;
                }
            }
        }
    }

    async fn extend(
        &self,
        _queue: &QueueName,
        receipts: Vec<&Receipt>,
        visibility: Duration,
    ) -> Vec<Result<()>> {
        self.extend_each(receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.settle_each(queue, settlements).await
    }
}

fn missing(operation: &'static str, queue: &QueueName) -> Error {
    let detail = format!("there is no queue {queue}");
    Error::new(ErrorKind::NotFound, operation).with_backend(BACKEND).with_detail(detail)
}

/// The time at which `pause` from now will have passed, in a pipeline.
fn after(pause: Duration) -> Bson {
    /// A century: what is beyond never comes, and the sum stays a whole number.
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let nanos = i64::try_from(pause.min(LONGEST).as_nanos()).unwrap_or(i64::MAX);
    doc! { "$add": [record::now(), nanos] }.into()
}
