//! Takes how far versions have been spread; stores it with the documents.

use flare_core::Result;
use flare_core::model::{DocumentKey, PartitionId, Version};
use flare_core::port::{ClosePartition, Closed, OpenPartitions, Opened};

use super::super::PostgresRepository;
use super::lock::{Patience, State, distinct, lock, taken};
use crate::codec::document::{self, Head, moved};
use crate::connection::Value;
use crate::error;
use crate::fault::Worked;

/// Stores how far documents are; one that is gone and dispatched is a tombstone from now on.
const STORE: &str = "WITH d AS (UPDATE flare.documents d SET dispatched = v.dispatched, \
         dispatched_gone = v.dispatched_gone, undispatched = v.undispatched, open = v.open, moved = v.moved \
     FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::boolean[], $5::text[], $6::bytea[]) \
         v(n, dispatched, dispatched_gone, undispatched, open, moved) WHERE d.n = v.n \
     RETURNING d.n, d.gone, d.updated, d.undispatched) \
     INSERT INTO flare.tombstones (document, updated) \
         SELECT d.n, d.updated FROM d WHERE d.gone = 1 AND NOT d.undispatched \
         ON CONFLICT (document) DO UPDATE SET updated = excluded.updated";

/// A document's number, what it says, and what it is to say.
type Seen = (i64, Option<Head>, Option<Head>);

impl PostgresRepository {
    /// Stores open sets; the answer is the set that is stored.
    pub(super) async fn open(&self, opens: &[OpenPartitions]) -> Vec<Result<Opened>> {
        let keys = opens.iter().map(|open| &open.key).collect();
        self.change_heads("open_partitions", keys, |place, head| {
            let OpenPartitions { version, partitions, .. } = &opens[place];
            let Some(head) = head.filter(|head| head.version == *version) else {
                return Opened::Superseded;
            };
            if !head.is_undispatched() {
                return Opened::Dispatched;
            }
            Opened::Open(head.open.get_or_insert_with(|| partitions.clone()).clone())
        })
        .await
    }

    /// Removes partitions from open sets; the removal that empties one dispatches its version.
    pub(super) async fn close(&self, closes: &[ClosePartition]) -> Vec<Result<Closed>> {
        let keys = closes.iter().map(|close| &close.key).collect();
        self.change_heads("close_partitions", keys, |place, head| {
            let ClosePartition { version, partition, .. } = &closes[place];
            let Some(head) = head.filter(|head| head.version == *version) else {
                return Closed::Superseded;
            };
            take_out(head, *partition);
            if head.is_undispatched() { Closed::Open } else { Closed::Dispatched }
        })
        .await
    }

    /// Marks versions as spread to all partitions.
    pub(super) async fn mark(&self, versions: &[(DocumentKey, Version)]) -> Vec<Result<()>> {
        let keys = versions.iter().map(|(key, _)| key).collect();
        self.change_heads("mark_dispatched", keys, |place, head| {
            if let Some(head) = head {
                dispatch(head, versions[place].1);
            }
        })
        .await
    }

    /// Does something to each document, if it is there, and stores what changed; one answer each. Those that
    /// somebody has locked are come back to.
    async fn change_heads<T: Clone>(
        &self,
        operation: &'static str,
        keys: Vec<&DocumentKey>,
        change: impl Fn(usize, Option<&mut Head>) -> T,
    ) -> Vec<Result<T>> {
        let mut answers: Vec<Option<Result<T>>> = vec![None; keys.len()];
        let mut left: Vec<usize> = (0..keys.len()).collect();
        let clock = &self.database.clock;
        let give_up_at = clock.monotonic().saturating_add(Patience::LIMIT);
        for patience in Patience::TURNS {
            if left.is_empty() || clock.monotonic() >= give_up_at {
                break;
            }
            let some = || self.change_some(operation, patience, &keys, &left, &change);
            match self.database.attempts(operation, some).await {
                Ok(done) => {
                    for (place, answer) in left.iter().zip(done) {
                        answers[*place] = answer;
                    }
                }
                Err(error) if error::is_locked(&error) => {}
                Err(error) => left.iter().for_each(|it| answers[*it] = Some(Err(error.clone()))),
            }
            left.retain(|place| answers[*place].is_none());
        }
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(taken(operation)))).collect()
    }

    /// The same for some of them; nothing is answered for those that could not be had.
    async fn change_some<T>(
        &self,
        operation: &'static str,
        patience: Patience,
        keys: &[&DocumentKey],
        left: &[usize],
        change: &impl Fn(usize, Option<&mut Head>) -> T,
    ) -> Worked<Vec<Option<Result<T>>>> {
        let (keys, which) = distinct(left.iter().map(|place| keys[*place]));
        let mut session = self.database.session(operation).await?;
        let locked = lock(&mut session, operation, patience, &keys).await?;
        let states = locked.into_iter().map(|locked| match locked.state {
            State::Absent => Some(Ok((0, None, None))),
            State::Taken => None,
            State::Held { n, head } => Some(head.transpose().map(|head| (n, head.clone(), head))),
        });
        let mut states: Vec<Option<Result<Seen>>> = states.collect();
        let mut answers = Vec::with_capacity(which.len());
        for (place, which) in left.iter().zip(which) {
            answers.push(match &mut states[which] {
                Some(Ok((_, _, head))) => Some(Ok(change(*place, head.as_mut()))),
                Some(Err(error)) => Some(Err(error.clone())),
                None => None,
            });
        }
        let mut columns = Columns::default();
        for (n, before, after) in states.into_iter().flatten().flatten() {
            if let Some(head) = after.as_ref().filter(|_| before != after) {
                columns.push(n, head);
            }
        }
        if columns.n.is_empty() {
            session.roll_back().await?;
        } else {
            session.finish(STORE, &columns.values()).await?;
        }
        Ok(answers)
    }
}

fn take_out(head: &mut Head, partition: PartitionId) {
    let Some(open) = &mut head.open else { return };
    open.retain(|it| *it != partition);
    if open.is_empty() {
        dispatch(head, head.version);
    }
}

/// Raises what is dispatched; what was to be done before the version is told of is done with it.
fn dispatch(head: &mut Head, version: Version) {
    let before = head.dispatched;
    head.dispatched = head.dispatched.max(Some(version.min(head.version)));
    if head.dispatched != before && !head.is_undispatched() {
        head.open = None;
        head.moved_from = None;
    }
}

/// What is stored of how far they are, column by column.
#[derive(Default)]
struct Columns {
    n: Vec<i64>,
    dispatched: Vec<Option<i64>>,
    dispatched_gone: Vec<i16>,
    undispatched: Vec<bool>,
    open: Vec<Option<String>>,
    moved: Vec<Option<Vec<u8>>>,
}

impl Columns {
    fn push(&mut self, n: i64, head: &Head) {
        self.n.push(n);
        self.dispatched.push(head.dispatched.map(|version| version.revision().get()));
        self.dispatched_gone.push(head.dispatched.is_some_and(Version::is_gone).into());
        self.undispatched.push(head.is_undispatched());
        self.open.push(head.open.as_deref().map(document::open));
        self.moved.push(head.moved_from.map(moved));
    }

    fn values(&self) -> [&dyn Value; 6] {
        [
            &self.n,
            &self.dispatched,
            &self.dispatched_gone,
            &self.undispatched,
            &self.open,
            &self.moved,
        ]
    }
}
