//! Follows which slots this node has; gives each consumer of them that is active one task, and ends it before the
//! slot is another's. Reads the store beside that: a slow one delays changes of consumers, and none of ownership.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tracing::{Instrument, debug, info_span, warn};

use super::worker::ConsumerWorker;
use crate::error::Result;
use crate::model::{Consumer, ConsumerId, ConsumerStatus, Epoch, Generation};
use crate::observe;
use crate::ownership::{Released, SlotChange, SlotNumbers, Slots, Term};
use crate::pipeline::context::Context;
use crate::pipeline::ingest::Ingest;
use crate::pipeline::stage::chain;
use crate::pipeline::stop::{Stopper, stop};
use crate::tools::taken;

/// Changes that wait to be read.
const CHANGES: usize = 256;
/// How long something that failed is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// The consumers this runtime works.
pub(crate) struct Consumers {
    context: Arc<Context>,
    ingest: Arc<Ingest>,
    numbers: SlotNumbers,
    /// The slots that are this node's, and not being given up.
    slots: BTreeMap<u32, Term>,
    working: BTreeMap<ConsumerId, WorkedConsumer>,
    tasks: JoinSet<()>,
    by_task: HashMap<Id, ConsumerId>,
    /// What is to be read next, and from when on.
    wanted: BTreeMap<ConsumerId, Duration>,
    /// All of them are to be read, from then on.
    sweep_at: Option<Duration>,
    reading: Option<BoxFuture<'static, ConsumersRead>>,
    changed: mpsc::Receiver<Option<ConsumerId>>,
    change_sender: mpsc::Sender<Option<ConsumerId>>,
}

/// Tells the consumers of a runtime what to read again.
#[derive(Clone)]
pub(crate) struct ConsumersHandle(mpsc::Sender<Option<ConsumerId>>);

impl ConsumersHandle {
    /// A consumer has changed.
    pub(crate) async fn changed(&self, consumer: ConsumerId) {
        // Consumers that have ended need not know.
        let _ = self.0.send(Some(consumer)).await;
    }

    /// Any of them may have.
    pub(crate) async fn missed_changes(&self) {
        let _ = self.0.send(None).await;
    }
}

/// A consumer that is worked.
struct WorkedConsumer {
    slot: u32,
    generation: Generation,
    epoch: Epoch,
    stopper: Stopper,
    abort: AbortHandle,
    /// By when it has to end, by the monotonic clock, once it is told to.
    ends_by: Option<Duration>,
    /// Dropped when it has ended.
    _released: Vec<Released>,
}

/// What was read.
enum ConsumersRead {
    One(ConsumerId, Result<Option<Box<Consumer>>>),
    All(Result<Vec<Consumer>>),
}

impl Consumers {
    pub(crate) fn new(context: Arc<Context>, ingest: Arc<Ingest>) -> Self {
        let (change_sender, changed) = mpsc::channel(CHANGES);
        Self {
            numbers: context.slot_numbers(),
            context,
            ingest,
            slots: BTreeMap::new(),
            working: BTreeMap::new(),
            tasks: JoinSet::new(),
            by_task: HashMap::new(),
            wanted: BTreeMap::new(),
            sweep_at: None,
            reading: None,
            changed,
            change_sender,
        }
    }

    /// A way to tell them of changes.
    pub(crate) fn handle(&self) -> ConsumersHandle {
        ConsumersHandle(self.change_sender.clone())
    }

    /// Follows the ownership until its stream ends.
    pub(crate) async fn run(mut self, mut ownership: mpsc::Receiver<SlotChange>) {
        let context = Arc::clone(&self.context);
        loop {
            let now = context.clock.monotonic();
            self.end_overdue(now);
            self.begin_reading(now);
            let left = self.wakes_at(now).map(|at| at.saturating_sub(now));
            tokio::select! {
                biased;
                change = ownership.recv() => match change {
                    Some(change) => self.follow(change),
                    None => break,
                },
                Some(ended) = self.tasks.join_next_with_id() => self.take_end(ended),
                Some(changed) = self.changed.recv() => self.read_again(changed, now),
                read = taken(&mut self.reading) => self.take_read(read),
                () = context.sleep(left.unwrap_or(Duration::MAX)), if left.is_some() => {}
            }
            context.progress.set_consumers(self.working.len());
        }
        self.tasks.shutdown().await;
        context.progress.set_consumers(0);
    }

    fn follow(&mut self, change: SlotChange) {
        let now = self.context.clock.monotonic();
        match change {
            SlotChange::Granted { slots, term } => {
                // What is worked under another epoch ends before it is worked under this one.
                self.abort(|worked| slots.contains(worked.slot) && worked.epoch != term.epoch);
                self.slots.extend(slots.iter().map(|slot| (slot, term.clone())));
                self.sweep_at = Some(now);
            }
            SlotChange::Releasing { slots, until, done } => {
                self.leave(&slots);
                let ends_by = until.min(now + self.context.drain_limit.get());
                for worked in self.working.values_mut().filter(|it| slots.contains(it.slot)) {
                    worked.stop_by(ends_by);
                    worked._released.push(Arc::clone(&done));
                }
            }
            SlotChange::Lost { slots } => {
                self.leave(&slots);
                self.abort(|worked| slots.contains(worked.slot));
            }
        }
    }

    /// Has a consumer, or all of them, read again; what other nodes' slots have is not for this one.
    fn read_again(&mut self, changed: Option<ConsumerId>, now: Duration) {
        match changed {
            Some(id) if self.slots.contains_key(&self.numbers.of_consumer(id)) => {
                self.wanted.insert(id, now);
            }
            None if !self.slots.is_empty() => self.sweep_at = Some(now),
            _ => {}
        }
    }

    fn leave(&mut self, slots: &Slots) {
        self.slots.retain(|slot, _| !slots.contains(*slot));
        if self.slots.is_empty() {
            (self.sweep_at, self.reading) = (None, None);
            self.wanted.clear();
        }
    }

    fn abort(&self, which: impl Fn(&WorkedConsumer) -> bool) {
        let aborted = self.working.values().filter(|worked| which(worked));
        aborted.for_each(|worked| worked.abort.abort());
    }

    /// Ends what did not end in time.
    fn end_overdue(&self, now: Duration) {
        self.abort(|worked| worked.ends_by.is_some_and(|by| by <= now));
    }

    /// When there is something to do, if nothing else happens. What was to end by now was aborted, and says itself
    /// when it has: to look at it again at once would keep it from that.
    fn wakes_at(&self, now: Duration) -> Option<Duration> {
        let ends = self.working.values().filter_map(|worked| worked.ends_by);
        let ends = ends.filter(|by| *by > now).min();
        let reads = self.wanted.values().copied().chain(self.sweep_at).min();
        let reads = reads.filter(|_| self.reading.is_none());
        [ends, reads].into_iter().flatten().min()
    }

    /// Reads what is next, unless something is being read.
    fn begin_reading(&mut self, now: Duration) {
        if self.reading.is_some() || self.slots.is_empty() {
            return;
        }
        let due = self.wanted.iter().find(|(_, at)| **at <= now).map(|(id, _)| *id);
        if let Some(id) = due {
            self.wanted.remove(&id);
            // Its slot may be another node's by now.
            if self.slots.contains_key(&self.numbers.of_consumer(id)) {
                let context = Arc::clone(&self.context);
                let read = async move {
                    let read = context.repository.consumer(id).await;
                    ConsumersRead::One(id, read.map(|found| found.map(Box::new)))
                };
                self.reading = Some(read.boxed());
            }
        } else if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep_at = Some(now + self.context.settings.sweep_every);
            let (context, numbers) = (Arc::clone(&self.context), self.numbers);
            let slots: BTreeSet<u32> = self.slots.keys().copied().collect();
            let read = async move { ConsumersRead::All(read_all(&context, numbers, &slots).await) };
            self.reading = Some(read.boxed());
        }
    }

    fn take_read(&mut self, read: ConsumersRead) {
        let now = self.context.clock.monotonic();
        match read {
            ConsumersRead::One(_, Ok(Some(consumer))) => self.take(*consumer),
            ConsumersRead::One(id, Ok(None)) => self.stop(id, now),
            ConsumersRead::One(id, Err(error)) => match error.unreadable() {
                // It may ask for what this version does not know.
                Some(unreadable) => {
                    self.context.note_unreadable(unreadable);
                    self.stop(id, now);
                }
                None => {
                    debug!(consumer = %id, error = %chain(&error), "could not be read, will retry");
                    self.wanted.insert(id, now + AGAIN);
                }
            },
            ConsumersRead::All(Ok(consumers)) => {
                let there: BTreeSet<ConsumerId> = consumers.iter().map(|it| it.id).collect();
                let gone = self.working.keys().filter(|id| !there.contains(id));
                let gone: Vec<ConsumerId> = gone.copied().collect();
                gone.into_iter().for_each(|id| self.stop(id, now));
                consumers.into_iter().for_each(|consumer| self.take(consumer));
            }
            ConsumersRead::All(Err(error)) => {
                debug!(error = %chain(&error), "consumers could not be read, will retry");
                self.sweep_at = Some(now + AGAIN);
            }
        }
    }

    /// Does what follows from a consumer as it was read.
    fn take(&mut self, consumer: Consumer) {
        let now = self.context.clock.monotonic();
        let slot = self.numbers.of_consumer(consumer.id);
        let Some(term) = self.slots.get(&slot) else { return };
        let is_active = consumer.status == ConsumerStatus::Active;
        match self.working.get(&consumer.id) {
            Some(worked) if is_active && worked.generation == consumer.generation => {}
            // When it has ended it is read again, and begins as it is then.
            Some(_) => self.stop(consumer.id, now),
            None if is_active => {
                let term = term.clone();
                self.start(consumer, slot, term);
            }
            None => {}
        }
    }

    fn start(&mut self, consumer: Consumer, slot: u32, term: Term) {
        let (stopper, stop) = stop();
        let (id, generation, epoch) = (consumer.id, consumer.generation, term.epoch);
        let (context, ingest) = (Arc::clone(&self.context), Arc::clone(&self.ingest));
        let span = info_span!(observe::CONSUMER, consumer = %id, epoch = epoch.get());
        let worker = ConsumerWorker { context, ingest, consumer, slot, term, stop };
        let abort = self.tasks.spawn(worker.work().instrument(span));
        self.by_task.insert(abort.id(), id);
        let (ends_by, _released) = (None, Vec::new());
        let worked = WorkedConsumer { slot, generation, epoch, stopper, abort, ends_by, _released };
        self.working.insert(id, worked);
    }

    fn stop(&mut self, id: ConsumerId, now: Duration) {
        let ends_by = now + self.context.drain_limit.get();
        if let Some(worked) = self.working.get_mut(&id) {
            worked.stop_by(ends_by);
        }
    }

    fn take_end(&mut self, ended: std::result::Result<(Id, ()), JoinError>) {
        let task = match &ended {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        let Some(id) = self.by_task.remove(&task) else { return };
        if let Err(error) = ended
            && error.is_panic()
        {
            warn!(consumer = %id, %error, "the work of a consumer failed, and begins again");
        }
        let Some(worked) = self.working.remove(&id) else { return };
        if self.slots.contains_key(&worked.slot) {
            // What ended by itself must not make us spin.
            let after = if worked.ends_by.is_some() { Duration::ZERO } else { AGAIN };
            self.wanted.insert(id, self.context.clock.monotonic() + after);
        }
    }
}

impl WorkedConsumer {
    fn stop_by(&mut self, by: Duration) {
        self.stopper.stop();
        self.ends_by = Some(self.ends_by.map_or(by, |ends_by| ends_by.min(by)));
    }
}

/// The consumers of some slots; what cannot be read is noted and left out.
async fn read_all(
    context: &Context,
    numbers: SlotNumbers,
    slots: &BTreeSet<u32>,
) -> Result<Vec<Consumer>> {
    let mut scan = context.repository.scan_consumers(None);
    let mut found = Vec::new();
    while let Some(read) = scan.next().await {
        match read {
            Ok(consumer) if slots.contains(&numbers.of_consumer(consumer.id)) => {
                found.push(consumer)
            }
            Ok(_) => {}
            Err(error) => match error.unreadable() {
                Some(unreadable) => context.note_unreadable(unreadable),
                None => return Err(error),
            },
        }
    }
    Ok(found)
}
