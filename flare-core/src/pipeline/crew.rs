//! Takes the queue of a stage; gives workers that take batches of tasks from it, work on the
//! resources of a batch side by side and settle each task as soon as its resource is done. What one
//! resource has to do keeps no other waiting: who may begin with what is decided in `shares`, and what
//! has to wait goes back to the queue as few, fresh messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::task::JoinSet;
use tracing::{Instrument, Span, debug_span, warn};

use super::context::Context;
use super::load::TaskLoad;
use super::outstanding::Outstanding;
use super::partition::partition;
use super::progress::Pulse;
use super::spread::spread_load;
use super::stage::{TaskSource, WAIT, chain, pause_after};
use super::stop::Stop;
use super::turn::{Begun, Floor, SOON, Turn};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{DocumentKey, ResourceId};
use crate::observe;
use crate::port::task::Task;
use crate::port::{Incoming, Outgoing, QueueName, Receipt, Settlement};

/// This many messages at once: a second worker is worth its requests.
const BUSY: usize = 10;

/// A stage between queues.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stage {
    /// Finds the partitions that have to spread documents.
    Partition,
    /// Writes the rows of partitions.
    Spread,
}

impl Stage {
    fn queue(self) -> QueueName {
        match self {
            Self::Partition => QueueName::Partition,
            Self::Spread => QueueName::Spread,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Spread => "spread",
        }
    }

    fn span(self, tasks: usize) -> Span {
        match self {
            Self::Partition => debug_span!(observe::PARTITION, tasks),
            Self::Spread => debug_span!(observe::SPREAD, tasks),
        }
    }

    /// Whether a task is one of this stage's.
    fn accepts(self, task: &Task) -> bool {
        matches!(
            (self, task),
            (Self::Partition, Task::Partition { .. }) | (Self::Spread, Task::Spread { .. })
        )
    }

    async fn work(
        self,
        turn: &Turn<'_>,
        known: &mut Outstanding,
        load: &mut TaskLoad,
    ) -> Result<()> {
        match self {
            Self::Spread => spread_load(turn, known, load).await,
            Self::Partition => {
                let Some((whole, mut documents)) = load.take_part(0) else { return Ok(()) };
                let done = partition(turn, known, &mut documents).await;
                load.put_back(whole, documents);
                done
            }
        }
    }
}

/// Starts the workers of a stage: as many as the settings say, and one for what they leave undone.
pub(crate) fn start(context: &Arc<Context>, stage: Stage, loops: &mut JoinSet<()>, stop: &Stop) {
    let source = TaskSource::new(Arc::clone(context), stage.queue());
    let floor = Arc::new(Floor::new(context.settings.workers));
    for _ in 0..=context.settings.workers.max(1) {
        let pulse = context.pulse(stage.name());
        let (source, floor) = (source.clone(), Arc::clone(&floor));
        loops.spawn(StageWorker { stage, source, floor, pulse, stop: stop.clone() }.run());
    }
}

struct StageWorker {
    stage: Stage,
    source: TaskSource,
    floor: Arc<Floor>,
    pulse: Pulse,
    stop: Stop,
}

/// A task, and the message it came in.
type Message = (Task, Receipt, u32);

/// Messages by what their tasks are about.
type ByResource = BTreeMap<ResourceId, Vec<Message>>;

/// Messages of one resource, and what came of them.
struct WorkDone {
    messages: Vec<(Receipt, u32)>,
    outcome: Result<()>,
}

impl StageWorker {
    /// Works on tasks until told to stop. One worker at a time waits for messages; the others wait
    /// for it to have something to do. So an idle queue costs one request in as long as a request may
    /// wait.
    async fn run(mut self) {
        let (source, floor) = (self.source.clone(), Arc::clone(&self.floor));
        while !self.stop.is_requested() {
            let listening = async {
                let ear = floor.ear.lock().await;
                floor.has_room(source.context()).await;
                ear
            };
            let ear = tokio::select! {
                biased;
                () = self.stop.requested() => return,
                ear = listening => ear,
            };
            let Some(messages) = self.listen().await else { return };
            if !messages.is_empty() {
                self.pulse.works();
                self.handle(messages, ear).await;
            }
            self.pulse.rests();
        }
    }

    /// Waits for messages, for as long as a request may wait; `None` if it is to stop. A queue that fails
    /// is asked again by the same worker until it answers: that one alone knows how long it has failed.
    async fn listen(&mut self) -> Option<Vec<Incoming>> {
        let (source, mut failures) = (self.source.clone(), 0);
        while !self.stop.is_requested() {
            let asked = source.context().clock.monotonic();
            let received = tokio::select! {
                biased;
                () = self.stop.requested() => return None,
                received = source.receive(WAIT) => received,
                // It would wait at the one that vanished for as long as it meant to.
                () = source.is_made_again() => continue,
            };
            match received {
                Ok(messages) => return Some(messages),
                Err(error) => {
                    failures += 1;
                    // There may be any amount of work that it cannot see.
                    self.pulse.works();
                    source.recover(&error, asked, failures, &mut self.stop).await;
                    // One that is there again is asked at once, and may have vanished once more: others run
                    // meanwhile.
                    tokio::task::yield_now().await;
                }
            }
        }
        None
    }

    /// Works on messages. Others listen meanwhile if there may be more, or this takes long; else what
    /// comes in the meantime is taken together.
    async fn handle(&self, messages: Vec<Incoming>, ear: tokio::sync::MutexGuard<'_, ()>) {
        let context = self.source.context();
        let many = self.are_many(&messages);
        let mut work = pin!(self.work(messages));
        if !many {
            tokio::select! {
                biased;
                () = &mut work => return,
                () = context.sleep(SOON) => {}
            }
        }
        drop(ear);
        work.await;
    }

    /// Whether there may be more where these came from.
    fn are_many(&self, messages: &[Incoming]) -> bool {
        messages.len() >= BUSY.min(self.source.context().settings.batch)
    }

    async fn work(&self, messages: Vec<Incoming>) {
        let many = self.are_many(&messages);
        let (groups, settled) = self.sort(messages);
        let begun = self.floor.begin(self.source.context(), groups.keys().copied());
        let (mine, others): (ByResource, ByResource) =
            groups.into_iter().partition(|(resource, _)| begun.resources.contains(resource));
        if mine.is_empty() && many {
            self.floor.search_on();
        }
        // What others are at goes back at once, without a look at how far it is: what waits behind
        // it in the queue has waited for that long enough.
        tokio::join!(self.work_on(mine, settled, begun), self.give_all_back(others));
    }

    /// Works on what is still to be done of these, and settles the rest.
    async fn work_on(
        &self,
        mut groups: ByResource,
        mut settled: Vec<(Receipt, Settlement)>,
        mut begun: Begun<'_>,
    ) {
        if groups.is_empty() {
            drop(begun);
            return self.source.settle(settled).await;
        }
        // The store sees by itself what is left of those that it spreads at once.
        let at_once = |resource: &ResourceId| {
            matches!(self.stage, Stage::Partition)
                && self.source.context().spreads_at_once(*resource)
        };
        let unread: Vec<ResourceId> = groups.keys().copied().filter(at_once).collect();
        let keys: BTreeSet<DocumentKey> = groups
            .iter()
            .filter(|(resource, _)| !unread.contains(resource))
            .flat_map(|(_, messages)| messages)
            .flat_map(|(task, ..)| task.documents())
            .map(|(key, _)| key)
            .collect();
        let known = {
            let receipts = groups.values().flatten().map(|(_, receipt, _)| receipt);
            let read = Outstanding::read(self.source.context(), keys);
            self.source.keeping(receipts.collect(), read).await
        };
        let known = known.map(|mut known| {
            known.extend(unread.into_iter().map(|it| (it, Outstanding::unread(it))));
            known
        });
        let mut known = match known {
            Ok(known) => known,
            Err(error) => {
                let messages = groups.into_values().flatten();
                let messages = messages.map(|(_, receipt, attempt)| (receipt, attempt)).collect();
                settled.extend(self.settlements(WorkDone { messages, outcome: Err(error) }));
                return self.source.settle(settled).await;
            }
        };
        self.pulse.advances();
        groups.retain(|resource, messages| {
            let owes = |message: &Message| owes(known.get(resource), &message.0);
            let (left, done) = std::mem::take(messages).into_iter().partition(owes);
            *messages = left;
            let done: Vec<Message> = done;
            settled.extend(done.into_iter().map(|(_, receipt, _)| (receipt, Settlement::Done)));
            if messages.is_empty() {
                begun.done(*resource);
            }
            !messages.is_empty()
        });
        self.side_by_side(groups, &mut known, settled, begun).await;
    }

    /// Works on each resource for itself, and settles what is done now and then.
    async fn side_by_side(
        &self,
        groups: ByResource,
        known: &mut HashMap<ResourceId, Outstanding>,
        mut settled: Vec<(Receipt, Settlement)>,
        mut begun: Begun<'_>,
    ) {
        let mut working: FuturesUnordered<BoxFuture<'_, (ResourceId, WorkDone)>> =
            FuturesUnordered::new();
        for (resource, messages) in groups {
            let named = move |worked| (resource, worked);
            working.push(match known.remove(&resource) {
                Some(known) => self.turn(resource, known, messages).map(named).boxed(),
                None => self.give_back(resource, messages).map(named).boxed(),
            });
        }
        let mut settling: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                worked = working.next() => match worked {
                    Some((resource, worked)) => {
                        begun.done(resource);
                        settled.extend(self.settlements(worked));
                    }
                    None => break,
                },
                Some(()) = settling.next() => {}
                // Not one by one: most are done at the same time.
                () = self.source.context().sleep(SOON), if !settled.is_empty() => {
                    settling.push(self.source.settle(std::mem::take(&mut settled)).boxed());
                }
            }
        }
        drop(begun);
        settling.push(self.source.settle(settled).boxed());
        while settling.next().await.is_some() {}
    }

    /// Gives back what this worker may not begin with.
    async fn give_all_back(&self, groups: ByResource) {
        let given =
            groups.into_iter().map(|(resource, messages)| self.give_back(resource, messages));
        let given = join_all(given).await.into_iter().flat_map(|worked| self.settlements(worked));
        self.source.settle(given.collect()).await;
    }

    /// Has a turn at a resource; what is left after it goes back to the queue.
    async fn turn(
        &self,
        resource: ResourceId,
        mut known: Outstanding,
        messages: Vec<Message>,
    ) -> WorkDone {
        let context = self.source.context();
        let (mut load, messages) = loaded(resource, messages);
        let span = self.stage.span(messages.len());
        let work = async {
            load.keep(|url, version, partition| known.has(url, version, partition));
            let (claimed, others) = self.floor.claim(&mut load);
            let turn = Turn::new(context, &self.floor, &self.pulse, resource);
            self.stage.work(&turn, &mut known, &mut load).await?;
            drop(claimed);
            if !others.is_empty() {
                let after = self.floor.back_after(context, resource, others.len());
                self.send_back(others, after).await?;
            }
            self.send_back(load, Duration::ZERO).await
        };
        let receipts = messages.iter().map(|(receipt, _)| receipt).collect();
        let outcome = self.source.keeping(receipts, work.instrument(span)).await;
        WorkDone { messages, outcome }
    }

    /// Gives tasks back for which no worker is free: as new messages, which are fewer and know of no
    /// failed attempt. What did fail before keeps its message, and its count.
    async fn give_back(&self, resource: ResourceId, messages: Vec<Message>) -> WorkDone {
        let (fresh, failed): (Vec<Message>, Vec<Message>) =
            messages.into_iter().partition(|(.., attempt)| *attempt <= 1);
        let (load, messages) = loaded(resource, fresh);
        let failing: usize = failed.iter().map(|(task, ..)| task.documents().count()).sum();
        let waiting = load.len() + failing;
        let after = self.floor.back_after(self.source.context(), resource, waiting);
        let outcome = self.send_back(load, after).await;
        let wait = failed.into_iter().map(|(_, receipt, _)| (receipt, Settlement::Retry { after }));
        self.source.settle(wait.collect()).await;
        WorkDone { messages, outcome }
    }

    async fn send_back(&self, load: TaskLoad, after: Duration) -> Result<()> {
        let tasks = load.into_tasks().into_iter();
        let messages: Result<Vec<Outgoing>> =
            tasks.map(|task| Ok(Outgoing::new(task.encode()?).delay(after))).collect();
        match messages? {
            messages if messages.is_empty() => Ok(()),
            messages => self.source.context().announce(&self.stage.queue(), messages).await,
        }
    }

    /// Tasks by resource; and what becomes of messages that have none.
    fn sort(&self, messages: Vec<Incoming>) -> (ByResource, Vec<(Receipt, Settlement)>) {
        let (context, queue) = (self.source.context(), self.stage.queue());
        let mut groups = ByResource::new();
        let mut settled = Vec::new();
        for Incoming { payload, attempt, receipt, .. } in messages {
            match Task::decode(&payload) {
                Ok(Task::Restored) => {
                    context.tasks_lost.notify_one();
                    settled.push((receipt, Settlement::Done));
                }
                Ok(task) => {
                    match TaskLoad::resource_of(&task).filter(|_| self.stage.accepts(&task)) {
                        Some(resource) => {
                            groups.entry(resource).or_default().push((task, receipt, attempt));
                        }
                        None => {
                            let misplaced = Error::new(ErrorKind::Internal, self.stage.name());
                            let outcome = Err(misplaced.with_detail("another stage's task"));
                            let worked = WorkDone { messages: vec![(receipt, attempt)], outcome };
                            settled.extend(self.settlements(worked));
                        }
                    }
                }
                Err(error) => {
                    // No node will ever understand it, and the stores still know what it was about.
                    warn!(%queue, error = %chain(&error), "dropped a message that is no task");
                    settled.push((receipt, Settlement::Done));
                }
            }
        }
        (groups, settled)
    }

    fn settlements(&self, worked: WorkDone) -> Vec<(Receipt, Settlement)> {
        let (context, queue) = (self.source.context(), self.stage.queue());
        let settlement = |(receipt, attempt): (Receipt, u32)| match &worked.outcome {
            Ok(()) => (receipt, Settlement::Done),
            Err(error) => {
                let after = context.jittered(pause_after(attempt));
                warn!(%queue, attempt, ?after, error = %chain(error), "task failed, will retry");
                (receipt, Settlement::Retry { after })
            }
        };
        worked.messages.into_iter().map(settlement).collect()
    }
}

/// Whether a task has anything left to do.
fn owes(known: Option<&Outstanding>, task: &Task) -> bool {
    let partition = match task {
        Task::Spread { partition, .. } => Some(*partition),
        _ => None,
    };
    let owes = |(key, version): (DocumentKey, _)| {
        known.is_none_or(|known| known.has(&key.url, version, partition))
    };
    task.documents().any(owes)
}

/// What messages of one resource have to do together.
fn loaded(resource: ResourceId, messages: Vec<Message>) -> (TaskLoad, Vec<(Receipt, u32)>) {
    let mut load = TaskLoad::new(resource);
    let mut receipts = Vec::with_capacity(messages.len());
    for (task, receipt, attempt) in messages {
        load.add(task);
        receipts.push((receipt, attempt));
    }
    (load, receipts)
}
