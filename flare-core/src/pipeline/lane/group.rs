//! Takes what the lanes of one term have to store; gives it to the store in calls they share:
//! whoever comes while as many as allowed are under way goes with the next one, and all who wait
//! go together. Waits for nothing but the store.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Applied, Epoch, LaneState};
use crate::pipeline::context::Context;
use crate::port::{Repository, RowUpdate};

/// Calls of a kind under way at a time. More would make each of them smaller, fewer would have
/// the lanes wait for the answer to a large one.
const CALLS: usize = 2;

type Answers = Vec<Result<Applied>>;
type Call<T> = fn(Arc<dyn Repository>, Epoch, Vec<T>) -> BoxFuture<'static, Answers>;

/// What all lanes of a term store, fenced by its epoch.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(super) rows: Group<RowUpdate>,
    pub(super) lanes: Group<LaneState>,
}

impl Groups {
    pub(crate) fn new(context: &Context, epoch: Epoch) -> Self {
        Self {
            rows: Group::new(context, epoch, |repository, epoch, rows| {
                Box::pin(async move { repository.apply_rows(epoch, rows).await })
            }),
            lanes: Group::new(context, epoch, |repository, epoch, lanes| {
                Box::pin(async move { repository.store_lanes(epoch, lanes).await })
            }),
        }
    }
}

/// One kind of fenced write.
pub(super) struct Group<T> {
    repository: Arc<dyn Repository>,
    epoch: Epoch,
    limit: usize,
    call: Call<T>,
    turns: Semaphore,
    waiting: Mutex<VecDeque<Waiting<T>>>,
}

struct Waiting<T> {
    items: Vec<T>,
    answer: oneshot::Sender<Answers>,
}

impl<T> Group<T> {
    fn new(context: &Context, epoch: Epoch, call: Call<T>) -> Self {
        Self {
            repository: Arc::clone(&context.repository),
            epoch,
            limit: context.batch_limit(),
            call,
            turns: Semaphore::new(CALLS),
            waiting: Mutex::default(),
        }
    }

    /// Stores items, no more than fit into a batch; one answer per item.
    pub(super) async fn store(&self, items: Vec<T>) -> Answers {
        if let Ok(_turn) = self.turns.try_acquire() {
            // Nobody is waiting, or the turn would be theirs.
            return self.call(items).await;
        }
        let count = items.len();
        let (answer, mut answered) = oneshot::channel();
        self.lock().push_back(Waiting { items, answer });
        loop {
            tokio::select! {
                biased;
                answers = &mut answered => return answers.unwrap_or_else(|_| unknown(count)),
                Ok(_turn) = self.turns.acquire() => self.store_waiting().await,
            }
        }
    }

    /// Stores as much of what waits as goes into one call.
    async fn store_waiting(&self) {
        let mut items = Vec::new();
        let mut parts = Vec::new();
        {
            let mut waiting = self.lock();
            while let Some(next) = waiting.pop_front() {
                if !items.is_empty() && items.len() + next.items.len() > self.limit {
                    waiting.push_front(next);
                    break;
                }
                // Whoever is gone has lost the lane.
                if !next.answer.is_closed() {
                    parts.push((next.items.len(), next.answer));
                    items.extend(next.items);
                }
            }
        }
        if items.is_empty() {
            return;
        }
        let mut answers = self.call(items).await.into_iter();
        for (count, answer) in parts {
            // One who left meanwhile does not want to know.
            let _ = answer.send(answers.by_ref().take(count).collect());
        }
    }

    fn call(&self, items: Vec<T>) -> BoxFuture<'static, Answers> {
        (self.call)(Arc::clone(&self.repository), self.epoch, items)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Waiting<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever stored for us was dropped half-way.
fn unknown(count: usize) -> Answers {
    let error = Error::new(ErrorKind::Unavailable, "store").detail("the lane that stored it ended");
    (0..count).map(|_| Err(error.clone())).collect()
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("waiting", &self.lock().len()).finish_non_exhaustive()
    }
}
