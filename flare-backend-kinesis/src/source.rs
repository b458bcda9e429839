//! A stream as Flare's port wants it: reads the shards that [`Shards`] says, one after the other, and keeps an eye on
//! which there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::primitives::DateTime;
use aws_sdk_kinesis::types::{Record, ShardIteratorType};
use flare_core::model::{Checkpoint, Timestamp};
use flare_core::port::{
    Clock, Receipt, Source, SourceFacts, SourceLag, SourceMessage, SourceSettlement, SystemClock,
    Unsettled,
};
use flare_core::{Error, ErrorKind, Result};

use crate::position::Position;
use crate::shards::{ListedShard, ReadBatch, ReadPlan, ReadRecord, Shards};
use crate::{BACKEND, error};

/// Records that one question asks for at most: each may hold a megabyte, and an answer ten of them.
const MAX_BATCH: usize = 1_000;

/// How often the shards are listed while none of them ends: what is split ends, so this is for one that ended
/// before its children were listed.
const RELIST_EVERY: Duration = Duration::from_secs(60);

/// A consumer's place in a stream.
#[derive(Debug)]
pub(crate) struct KinesisSource {
    client: Client,
    stream: String,
    shards: Mutex<Shards>,
    clock: SystemClock,
    poll_every: Duration,
    /// Which shard is asked first: another one each time, as the first that has something is all that is given.
    turn: AtomicUsize,
    /// When the shards were listed last, by the monotonic clock.
    listed_at: Mutex<Duration>,
}

impl KinesisSource {
    /// Looks which shards there are, and goes on from the checkpoints.
    pub(crate) async fn open(
        client: Client,
        stream: &str,
        checkpoints: &[Checkpoint],
        first: &Position,
        poll_every: Duration,
    ) -> Result<Self> {
        let listed = list(&client, "open", stream).await?;
        let (clock, stream) = (SystemClock::new(), stream.to_owned());
        let listed_at = Mutex::new(clock.monotonic());
        let shards = Mutex::new(Shards::new(&listed, checkpoints, first)?);
        let turn = AtomicUsize::new(0);
        Ok(Self { client, stream, shards, clock, poll_every, turn, listed_at })
    }

    fn shards(&self) -> MutexGuard<'_, Shards> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the shards again.
    async fn relist(&self) -> Result<()> {
        self.took_list(&list(&self.client, "receive", &self.stream).await?);
        Ok(())
    }

    fn took_list(&self, listed: &[ListedShard]) {
        self.shards().relist(listed);
        let now = self.clock.monotonic();
        *self.listed_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn is_listed_lately(&self) -> bool {
        let listed_at = *self.listed_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.monotonic() < listed_at + RELIST_EVERY
    }

    /// Asks every shard that may be read, until one has something. Says also whether one of them, though it had
    /// nothing to give, is not at its end.
    async fn ask_all(&self, max: usize) -> Result<(Vec<SourceMessage>, bool)> {
        let mut plans = self.shards().readable();
        if !plans.is_empty() {
            let first = self.turn.fetch_add(1, Ordering::Relaxed) % plans.len();
            plans.rotate_left(first);
        }
        let mut more = false;
        for plan in plans {
            let Some(batch) = self.read(&plan, max).await? else {
                more = true;
                continue;
            };
            let (ends, behind) = (batch.next.is_none(), !batch.behind.is_zero());
            // From here to the return nothing is awaited: what was taken is not lost with a receive that is dropped.
            let messages = self.shards().took(&plan, batch);
            if !messages.is_empty() {
                return Ok((messages, false));
            }
            more |= behind;
            if ends {
                // Its children are read from now on.
                self.relist().await?;
                more = true;
            }
        }
        Ok((Vec::new(), more))
    }

    /// Reads one shard; nothing if its place has to be found anew.
    async fn read(&self, plan: &ReadPlan, max: usize) -> Result<Option<ReadBatch>> {
        let iterator = match &plan.iterator {
            Some(iterator) => iterator.clone(),
            None => match self.iterator(plan).await {
                Ok(iterator) => iterator,
                Err(error) if error.kind() == ErrorKind::NotFound => return self.gone(plan).await,
                Err(error) => return Err(error),
            },
        };
        let limit = i32::try_from(max).unwrap_or(i32::MAX);
        let asked = self.client.get_records().shard_iterator(iterator).limit(limit).send().await;
        match asked.map_err(|error| error::from_sdk("receive", &error)) {
            Ok(answer) => {
                let behind = answer.millis_behind_latest.unwrap_or(0);
                let behind = Duration::from_millis(u64::try_from(behind).unwrap_or(0));
                let records = answer.records.into_iter().map(read_record).collect();
                Ok(Some(ReadBatch { records, next: answer.next_shard_iterator, behind }))
            }
            // It was not used for five minutes.
            Err(error) if error.kind() == ErrorKind::Lost => {
                self.shards().expired(plan);
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => self.gone(plan).await,
            Err(error) => Err(error),
        }
    }

    /// The shard is no more, which is told apart from a stream that is no more by listing.
    async fn gone(&self, plan: &ReadPlan) -> Result<Option<ReadBatch>> {
        let listed = list(&self.client, "receive", &self.stream).await?;
        if listed.iter().any(|shard| shard.id == plan.shard) {
            let detail = format!("{} is listed, and cannot be read", plan.shard);
            return Err(Error::new(ErrorKind::Unavailable, "receive")
                .with_backend(BACKEND)
                .with_detail(detail));
        }
        self.shards().vanished(plan);
        self.took_list(&listed);
        Ok(None)
    }

    async fn iterator(&self, plan: &ReadPlan) -> Result<String> {
        let asked =
            self.client.get_shard_iterator().stream_name(&self.stream).shard_id(&plan.shard);
        let asked = match &plan.from {
            Position::Oldest => asked.shard_iterator_type(ShardIteratorType::TrimHorizon),
            Position::At(milliseconds) => asked
                .shard_iterator_type(ShardIteratorType::AtTimestamp)
                .timestamp(DateTime::from_millis(*milliseconds)),
            Position::After(number) => asked
                .shard_iterator_type(ShardIteratorType::AfterSequenceNumber)
                .starting_sequence_number(number),
            // Nothing is planned behind the end.
            Position::End => asked.shard_iterator_type(ShardIteratorType::Latest),
        };
        let answer = asked.send().await.map_err(|error| error::from_sdk("receive", &error))?;
        answer.shard_iterator.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "receive")
                .with_backend(BACKEND)
                .with_detail("Kinesis answered without an iterator")
        })
    }
}

/// All shards of a stream, those that are closed and still kept included.
async fn list(client: &Client, operation: &'static str, stream: &str) -> Result<Vec<ListedShard>> {
    let (mut listed, mut next) = (Vec::new(), None::<String>);
    loop {
        let asked = client.list_shards();
        // The next page is named by its token alone.
        let asked = match next {
            None => asked.stream_name(stream),
            Some(token) => asked.next_token(token),
        };
        let page = asked.send().await.map_err(|error| error::from_sdk(operation, &error))?;
        for shard in page.shards.unwrap_or_default() {
            let parents = [shard.parent_shard_id, shard.adjacent_parent_shard_id];
            let parents = parents.into_iter().flatten().collect();
            listed.push(ListedShard { id: shard.shard_id, parents });
        }
        next = page.next_token;
        if next.is_none() {
            return Ok(listed);
        }
    }
}

fn read_record(record: Record) -> ReadRecord {
    let arrived = record.approximate_arrival_timestamp.and_then(|at| at.to_millis().ok());
    ReadRecord {
        number: record.sequence_number,
        body: record.data.into_inner(),
        arrived: arrived.map(Timestamp::from_unix_millis),
    }
}

#[async_trait]
impl Source for KinesisSource {
    fn facts(&self) -> SourceFacts {
        SourceFacts::stream(MAX_BATCH)
    }

    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        let until = self.clock.monotonic() + wait;
        let max = max.min(MAX_BATCH);
        if max == 0 {
            return Ok(Vec::new());
        }
        loop {
            if self.shards().is_closed() {
                return Err(Error::new(ErrorKind::Lost, "receive")
                    .with_backend(BACKEND)
                    .with_detail("the source is closed"));
            }
            if !self.is_listed_lately() {
                self.relist().await?;
            }
            let (messages, more) = self.ask_all(max).await?;
            if !messages.is_empty() {
                return Ok(messages);
            }
            let left = until.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            if !more {
                self.clock.sleep(left.min(self.poll_every)).await;
            }
        }
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let shards = self.shards();
        receipts.into_iter().map(|receipt| shards.held("keep", receipt).map(drop)).collect()
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let mut shards = self.shards();
        let settle = |(receipt, to): (Receipt, SourceSettlement)| {
            shards.settle(&receipt, to).map_err(|error| Unsettled::new(error, receipt))
        };
        settlements.into_iter().map(settle).collect()
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        self.shards().checkpoints()
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        Ok(Some(SourceLag::Behind(self.shards().lag(self.clock.now()))))
    }

    async fn close(&self) {
        self.shards().close();
    }
}
