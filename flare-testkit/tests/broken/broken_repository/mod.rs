//! Takes a repository that keeps its contract; gives one that breaks it in one way.

mod audit;
mod consumers;
mod documents;
mod fault;
mod jobs;
mod resources;
mod rows;
mod subscriptions;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard};

use flare_core::Result;
use flare_core::model::{
    ConsumerId, ConsumerState, Content, DocumentKey, DocumentUrl, Epoch, LaneState, MovedFrom,
    Reject, Resource, SubscriptionId,
};
use flare_core::port::{Repository, RepositoryFacts, Scan};
use futures::{StreamExt, TryStreamExt, stream};

pub(crate) use fault::Fault;

/// A repository with one deliberate fault.
#[derive(Debug)]
pub(crate) struct BrokenRepository {
    inner: Arc<dyn Repository>,
    fault: Fault,
    memory: Mutex<Memory>,
    /// Effects on rows that are under way.
    applying: AtomicU32,
}

/// What faults remember.
#[derive(Debug, Default)]
struct Memory {
    inserted: Vec<Resource>,
    matches: HashMap<DocumentUrl, Vec<Resource>>,
    contents: HashMap<DocumentKey, Content>,
    notes: HashMap<DocumentKey, Option<MovedFrom>>,
    spread_to: BTreeSet<SubscriptionId>,
    drawn: Option<Epoch>,
    ghosts: u64,
    outlived: Vec<LaneState>,
    consumers: BTreeSet<ConsumerId>,
    left_states: Vec<(ConsumerId, Epoch, ConsumerState)>,
    left_rejects: Vec<Reject>,
}

impl BrokenRepository {
    pub(crate) fn new(inner: Arc<dyn Repository>, fault: Fault) -> Self {
        Self { inner, fault, memory: Mutex::default(), applying: AtomicU32::new(0) }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap()
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl Repository for BrokenRepository {
    fn facts(&self) -> RepositoryFacts {
        self.inner.facts()
    }
}

/// One more than asked for, if that is the fault.
fn one_more(limit: usize, faulty: bool) -> usize {
    limit + usize::from(faulty)
}

/// A scan that is read whole and then changed.
fn changed<'a, T: Send + 'a>(
    scan: Scan<'a, T>,
    change: impl FnOnce(&mut Vec<T>) + Send + 'a,
) -> Scan<'a, T> {
    let read = async move {
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        for item in scan.collect::<Vec<_>>().await {
            match item {
                Ok(item) => items.push(item),
                Err(error) if error.unreadable().is_some() => errors.push(Err(error)),
                Err(error) => return Err(error),
            }
        }
        change(&mut items);
        Ok(stream::iter(items.into_iter().map(Ok).chain(errors)))
    };
    stream::once(read).try_flatten().boxed()
}

/// The only item of an answer to one key.
fn first<T>(answer: Result<Vec<Option<T>>>) -> Result<Option<T>> {
    answer.map(|mut items| items.pop().flatten())
}

/// A scan that ends at what cannot be read.
fn ending<'a, T: Send + 'a>(scan: Scan<'a, T>) -> Scan<'a, T> {
    let mut ended = false;
    let going_on = move |item: &Result<T>| {
        let goes_on = !ended;
        ended |= item.is_err();
        futures::future::ready(goes_on)
    };
    scan.take_while(going_on).boxed()
}
