//! A stream of a few shards that knows nothing of what is done: each source has its own place in every shard,
//! and says up to where all is settled.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::{Checkpoint, Timestamp};
use flare_core::port::{
    Outgoing, Receipt, Source, SourceFacts, SourceLag, SourceMessage, SourceOpening,
    SourceSettlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

use super::{Messages, Topic, full, lost, numbers, settle_each};
use crate::{BACKEND, lock};

const SHARDS: usize = 4;

/// All that was ever published to a stream.
#[derive(Debug, Default)]
pub(super) struct StreamRecords {
    shards: [Vec<StreamRecord>; SHARDS],
    published: usize,
    /// Counts how often all connections were lost.
    connection: u64,
}

#[derive(Debug)]
struct StreamRecord {
    body: Bytes,
    sent_at: Timestamp,
}

impl StreamRecords {
    pub(super) fn publish(&mut self, message: Outgoing, now: Timestamp) -> Result<()> {
        full(self.published)?;
        let shard = match &message.group {
            Some(group) => {
                let mut hasher = DefaultHasher::new();
                group.hash(&mut hasher);
                hasher.finish() as usize % SHARDS
            }
            None => self.published % SHARDS,
        };
        self.published += 1;
        self.shards[shard].push(StreamRecord { body: message.payload, sent_at: now });
        Ok(())
    }

    pub(super) fn disconnect(&mut self) {
        self.connection += 1;
    }
}

/// A consumer's place in a stream.
#[derive(Debug)]
pub(super) struct MemoryStreamSource {
    topic: Arc<Topic>,
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    shards: [ShardPlace; SHARDS],
    /// Numbers receipts: each is used once.
    last: u64,
    connection: u64,
    closed: bool,
}

/// The next record of a shard, and the receipts of those before it that are not settled.
#[derive(Debug, Default)]
struct ShardPlace {
    next: u64,
    open: BTreeMap<u64, u64>,
}

impl ShardPlace {
    /// Up to where everything is settled.
    fn settled(&self) -> u64 {
        self.open.first_key_value().map_or(self.next, |(record, _)| *record)
    }

    /// Goes on with this record, which may be one that was given before.
    fn go_back(&mut self, record: u64) {
        self.next = record;
        self.open.split_off(&record);
    }
}

impl Places {
    /// What was under way when the connection was lost is given again.
    fn connect(&mut self, connection: u64) {
        if self.connection != connection {
            self.connection = connection;
            self.shards.iter_mut().for_each(|place| place.go_back(place.settled()));
        }
    }

    fn receive(&mut self, stream: &StreamRecords, max: usize) -> Vec<SourceMessage> {
        let mut received = Vec::new();
        for (shard, (place, records)) in self.shards.iter_mut().zip(&stream.shards).enumerate() {
            let rest = records.iter().skip(place.next as usize).take(max - received.len());
            for record in rest {
                self.last += 1;
                let at = place.next;
                let token = Receipt::new(format!("{shard}:{at}:{}", self.last));
                let given = SourceMessage::new(format!("{shard}:{at}"), record.body.clone(), token);
                received.push(given.sent_at(record.sent_at));
                place.open.insert(at, self.last);
                place.next += 1;
            }
        }
        received
    }

    fn settle(&mut self, receipt: &Receipt, to: SourceSettlement) -> Result<()> {
        let place = self.held("settle", receipt)?;
        match (place, to) {
            ((place, record), SourceSettlement::Done) => {
                place.open.remove(&record);
            }
            ((place, record), SourceSettlement::Return) => place.go_back(record),
            (_, SourceSettlement::Leave) => {
                return Err(Error::new(ErrorKind::Unsupported, "settle")
                    .with_backend(BACKEND)
                    .with_detail("nothing can be left in a stream"));
            }
        }
        Ok(())
    }

    fn held(
        &mut self,
        operation: &'static str,
        receipt: &Receipt,
    ) -> Result<(&mut ShardPlace, u64)> {
        let lost = || lost(operation);
        let [shard, record, number] = numbers(receipt).ok_or_else(lost)?;
        if self.closed {
            return Err(lost());
        }
        let place = self.shards.get_mut(shard as usize).ok_or_else(lost)?;
        match place.open.get(&record) {
            Some(open) if *open == number => Ok((place, record)),
            _ => Err(lost()),
        }
    }
}

impl MemoryStreamSource {
    pub(super) fn open(topic: Arc<Topic>, opening: &SourceOpening) -> Self {
        let latest = matches!(opening.settings.optional("from"), Ok(Some("latest")));
        let (connection, ends) = with_stream(&topic, |stream| {
            (stream.connection, stream.shards.each_ref().map(|records| records.len() as u64))
        });
        let mut shards: [ShardPlace; SHARDS] = Default::default();
        for (shard, place) in shards.iter_mut().enumerate() {
            let told = opening.position(&shard.to_string()).and_then(|place| place.parse().ok());
            let first = if latest { ends[shard] } else { 0 };
            place.next = told.unwrap_or(first).min(ends[shard]);
        }
        let places = Places { shards, last: 0, connection, closed: false };
        Self { topic, places: Mutex::new(places) }
    }

    /// Its places, as they are on the connection there is now.
    fn connected<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut Places) -> Result<T>,
    ) -> Result<T> {
        self.topic.away.check(operation)?;
        let connection = with_stream(&self.topic, |stream| stream.connection);
        let mut places = lock(&self.places);
        places.connect(connection);
        work(&mut places)
    }
}

/// Works on the records of a topic that is a stream; a topic never becomes another kind.
fn with_stream<T: Default>(topic: &Topic, work: impl FnOnce(&StreamRecords) -> T) -> T {
    match &*lock(&topic.messages) {
        Messages::Stream(stream) => work(stream),
        Messages::Queue(_) => T::default(),
    }
}

#[async_trait]
impl Source for MemoryStreamSource {
    fn facts(&self) -> SourceFacts {
        SourceFacts::stream(100)
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        let max = max.min(self.facts().max_batch);
        let take = |messages: &mut Messages, _| {
            let Messages::Stream(stream) = messages else { return Ok(Vec::new()) };
            let mut places = lock(&self.places);
            if places.closed {
                return Err(lost("receive").with_detail("the source is closed"));
            }
            places.connect(stream.connection);
            Ok(places.receive(stream, max))
        };
        self.topic.receive(self.topic.time.now() + wait, take, |_| None).await
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let keep =
            |receipt| self.connected("keep", |places| places.held("keep", receipt).map(drop));
        receipts.into_iter().map(keep).collect()
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let results = settle_each(settlements, |receipt, to| {
            self.connected("settle", |places| places.settle(receipt, to))
        });
        self.topic.changed.notify_waiters();
        results
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let places = lock(&self.places);
        let told = |(shard, place): (usize, &ShardPlace)| {
            Checkpoint::new(shard.to_string(), place.settled().to_string())
        };
        places.shards.iter().enumerate().map(told).collect()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        let ends = with_stream(&self.topic, |stream| {
            stream.shards.each_ref().map(|records| records.len() as u64)
        });
        self.connected("lag", |places| {
            let behind = places.shards.iter().zip(ends);
            let behind = behind.map(|(place, end)| end - place.next + place.open.len() as u64);
            Ok(Some(SourceLag::Messages(behind.sum())))
        })
    }

    async fn close(&self) {
        lock(&self.places).closed = true;
        self.topic.changed.notify_waiters();
    }
}
