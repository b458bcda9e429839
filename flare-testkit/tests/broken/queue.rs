//! A queue with one fault fails exactly the clause it breaks; an honest one fails none.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_backend_memory::MemoryBackend;
use flare_core::model::{LaneId, Timestamp};
use flare_core::port::{
    Clock, Incoming, Outgoing, Queue, QueueDepth, QueueFacts, QueueName, Receipt, Receive, Scan,
    Settlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::queue::CLAUSES;
use flare_testkit::{FaultPlan, FaultyQueue, Fixture, ManualClock};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    GivesUpAfterThree,
    ForgetsWhatIsDone,
    RetriesAtOnce,
    HalvesDelays,
    HalvesVisibility,
    IgnoresExtensions,
    ExtendsFromTheEnd,
    SettlesStaleInSilence,
    SettlesForOthers,
    KeepsLostReceipts,
    ForgetsKeys,
    AbsorbsInFlight,
    KeepsTheFirstTime,
    DoesNotWait,
    SleepsThroughArrivals,
    GivesOneMore,
    CreatesOnSend,
    DeletesOnce,
    ClearsOnCreate,
    ListsTwice,
    MixesLanes,
    Truncates,
    ShortensDelays,
    CutsBatches,
    NeverCounts,
    CountsFromZero,
    SpeaksUtf8,
    ForgetsInFlight,
    LagsInSilence,
    OrderedInName,
}

/// The memory queue with one fault.
#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Queue>,
    clock: ManualClock,
    fault: Fault,
    seen: Mutex<Seen>,
}

/// What faults need to remember.
#[derive(Debug, Default)]
struct Seen {
    done: Vec<Bytes>,
    payloads: HashMap<String, Bytes>,
    newest: HashMap<Bytes, String>,
    ends: HashMap<String, Timestamp>,
    keys: HashMap<Bytes, String>,
    waiting: HashSet<String>,
    flying: HashSet<String>,
    depth: QueueDepth,
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn name(&self, queue: &QueueName) -> QueueName {
        match queue {
            QueueName::Lane(lane) if self.is(Fault::MixesLanes) => {
                QueueName::Lane(LaneId::new(lane.subscription, lane.shard % 10))
            }
            queue => queue.clone(),
        }
    }

    /// The message as it goes down, or none if it is swallowed.
    fn outgoing(&self, mut message: Outgoing) -> Option<Outgoing> {
        let facts = self.inner.facts();
        let mut seen = self.seen.lock().unwrap();
        if let Some(key) = message.coalesce.clone() {
            if self.is(Fault::AbsorbsInFlight) && seen.flying.contains(&key)
                || self.is(Fault::KeepsTheFirstTime) && !seen.waiting.insert(key.clone())
            {
                return None;
            }
            seen.keys.insert(message.payload.clone(), key);
        }
        match self.fault {
            Fault::HalvesDelays if message.delay <= facts.max_delay => message.delay /= 2,
            Fault::ShortensDelays => message.delay = message.delay.min(facts.max_delay),
            Fault::ForgetsKeys => message.coalesce = None,
            Fault::Truncates => message.payload.truncate(facts.max_payload),
            Fault::SpeaksUtf8 if message.payload.len() <= facts.max_payload => {
                message.payload =
                    String::from_utf8_lossy(&message.payload).as_bytes().to_vec().into();
                message.payload.truncate(facts.max_payload);
            }
            _ => {}
        }
        Some(message)
    }

    async fn incoming(&self, queue: &QueueName, mut message: Incoming) -> Option<Incoming> {
        if self.is(Fault::GivesUpAfterThree) && message.attempt > 3 {
            let settled = self.inner.settle(queue, vec![(message.receipt, Settlement::Done)]);
            assert!(settled.await.remove(0).is_ok());
            return None;
        }
        match self.fault {
            Fault::NeverCounts => message.attempt = 1,
            Fault::CountsFromZero => message.attempt -= 1,
            _ => {}
        }
        let token = message.receipt.token().to_owned();
        let mut seen = self.seen.lock().unwrap();
        if let Some(key) = seen.keys.get(&message.payload).cloned() {
            seen.waiting.remove(&key);
            seen.flying.insert(key);
        }
        seen.newest.insert(message.payload.clone(), token.clone());
        seen.payloads.insert(token, message.payload.clone());
        Some(message)
    }
}

#[async_trait]
impl Queue for Broken {
    fn facts(&self) -> QueueFacts {
        let mut facts = self.inner.facts();
        facts.ordered = self.is(Fault::OrderedInName);
        facts
    }

    async fn create(&self, queue: &QueueName) -> Result<()> {
        if self.is(Fault::ClearsOnCreate) {
            self.inner.delete(queue).await?;
        }
        self.inner.create(&self.name(queue)).await
    }

    async fn delete(&self, queue: &QueueName) -> Result<()> {
        if self.is(Fault::DeletesOnce) {
            self.inner.depth(queue).await?;
        }
        self.inner.delete(&self.name(queue)).await
    }

    fn list(&self) -> Scan<'_, QueueName> {
        match self.fault {
            Fault::ListsTwice => {
                Box::pin(futures::StreamExt::chain(self.inner.list(), self.inner.list()))
            }
            _ => self.inner.list(),
        }
    }

    async fn depth(&self, queue: &QueueName) -> Result<QueueDepth> {
        let mut depth = self.inner.depth(&self.name(queue)).await?;
        match self.fault {
            Fault::ForgetsInFlight => depth.in_flight = 0,
            Fault::LagsInSilence => {
                return Ok(std::mem::replace(&mut self.seen.lock().unwrap().depth, depth));
            }
            _ => {}
        }
        Ok(depth)
    }

    async fn send(&self, queue: &QueueName, messages: Vec<Outgoing>) -> Vec<Result<()>> {
        let queue = self.name(queue);
        let batch = self.inner.facts().max_batch;
        if self.is(Fault::CreatesOnSend) {
            self.inner.create(&queue).await.unwrap();
        }
        if self.is(Fault::CutsBatches) && messages.len() > batch {
            let mut messages = messages;
            let rest = messages.split_off(batch);
            let mut results = self.inner.send(&queue, messages).await;
            results.extend(rest.iter().map(|_| Err(Error::new(ErrorKind::Invalid, "send"))));
            return results;
        }
        let messages: Vec<_> = messages.into_iter().map(|message| self.outgoing(message)).collect();
        let swallowed: Vec<_> = messages.iter().map(Option::is_none).collect();
        let mut sent = self.inner.send(&queue, messages.into_iter().flatten().collect()).await;
        sent.reverse();
        let result = |swallowed| if swallowed { Ok(()) } else { sent.pop().unwrap() };
        swallowed.into_iter().map(result).collect()
    }

    async fn receive(&self, queue: &QueueName, mut request: Receive) -> Result<Vec<Incoming>> {
        let queue = self.name(queue);
        match self.fault {
            Fault::HalvesVisibility => request.visibility /= 2,
            Fault::DoesNotWait => request.wait = Duration::ZERO,
            Fault::GivesOneMore => request.max += 1,
            Fault::SleepsThroughArrivals if !request.wait.is_zero() => {
                self.clock.sleep_until(self.clock.now() + request.wait).await;
                request.wait = Duration::ZERO;
            }
            _ => {}
        }
        let mut received = Vec::new();
        for message in self.inner.receive(&queue, request).await? {
            received.extend(self.incoming(&queue, message).await);
        }
        let mut seen = self.seen.lock().unwrap();
        let end = self.clock.now() + request.visibility;
        for message in &received {
            seen.ends.insert(message.receipt.token().to_owned(), end);
        }
        if self.is(Fault::ForgetsWhatIsDone) && received.is_empty() {
            let back =
                seen.done.drain(..).map(|payload| Incoming::new(payload, 2, Receipt::new("?")));
            received.extend(back);
        }
        Ok(received)
    }

    async fn extend(
        &self,
        queue: &QueueName,
        receipts: Vec<&Receipt>,
        mut visibility: Duration,
    ) -> Vec<Result<()>> {
        match self.fault {
            Fault::IgnoresExtensions => return receipts.iter().map(|_| Ok(())).collect(),
            Fault::ExtendsFromTheEnd => {
                let end = self.seen.lock().unwrap().ends[receipts[0].token()];
                visibility += end - self.clock.now();
            }
            _ => {}
        }
        self.inner.extend(&self.name(queue), receipts, visibility).await
    }

    async fn settle(
        &self,
        queue: &QueueName,
        settlements: Vec<(Receipt, Settlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let mut results = Vec::new();
        for (mut receipt, mut settlement) in settlements {
            {
                let mut seen = self.seen.lock().unwrap();
                let payload = seen.payloads.get(receipt.token()).cloned().unwrap_or_default();
                match (self.fault, settlement) {
                    (Fault::RetriesAtOnce, Settlement::Retry { .. }) => {
                        settlement = Settlement::Retry { after: Duration::ZERO };
                    }
                    (Fault::ForgetsWhatIsDone, Settlement::Done) => seen.done.push(payload),
                    (Fault::SettlesForOthers, _) => {
                        receipt = Receipt::new(seen.newest[&payload].as_str());
                    }
                    _ => {}
                }
            }
            let result = self.inner.settle(&self.name(queue), vec![(receipt, settlement)]).await;
            results.extend(result.into_iter().map(|result| match (self.fault, result) {
                (Fault::SettlesStaleInSilence, Err(_)) => Ok(()),
                (Fault::KeepsLostReceipts, Err(unsettled)) => {
                    Err(Unsettled::new(unsettled.error, Receipt::new("another")))
                }
                (_, result) => result,
            }));
        }
        results
    }
}

type Wrap = Box<dyn Fn(Arc<dyn Queue>, ManualClock) -> Arc<dyn Queue> + Send + Sync>;

struct Fixed {
    clock: ManualClock,
    wrap: Wrap,
}

#[async_trait]
impl Fixture for Fixed {
    type Port = dyn Queue;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn Queue>, ()) {
        let memory = MemoryBackend::with_clock(Arc::new(self.clock.clone())).queue();
        ((self.wrap)(memory, self.clock.clone()), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }
}

fn failing(
    wrap: impl Fn(Arc<dyn Queue>, ManualClock) -> Arc<dyn Queue> + Send + Sync + Copy + 'static,
) -> Vec<&'static str> {
    let fixture = || Fixed { clock: ManualClock::new(Timestamp::EPOCH), wrap: Box::new(wrap) };
    crate::support::failing(CLAUSES, fixture).into_iter().collect()
}

fn noticed(fault: Fault) -> Vec<&'static str> {
    failing(move |inner, clock| Arc::new(Broken { inner, clock, fault, seen: Mutex::default() }))
}

crate::support::faults! {
    an_honest_queue_fails_nothing: None => [];
    q1_giving_up_on_a_message: GivesUpAfterThree => ["q1"];
    q2_losing_acknowledgements: ForgetsWhatIsDone => ["q2"];
    q3_ignoring_the_delay_of_a_retry: RetriesAtOnce => ["q3"];
    q4_halving_delays: HalvesDelays => ["q4"];
    q5_halving_visibility: HalvesVisibility => ["q5"];
    q5_ignoring_extensions: IgnoresExtensions => ["q5"];
    q5_extending_from_the_end: ExtendsFromTheEnd => ["q5"];
    q6_settling_stale_receipts_in_silence: SettlesStaleInSilence => ["q6"];
    q6_settling_what_others_have: SettlesForOthers => ["q6"];
    q6_keeping_the_receipt: KeepsLostReceipts => ["q6"];
    q7_forgetting_keys: ForgetsKeys => ["q7"];
    q7_absorbing_in_flight: AbsorbsInFlight => ["q7"];
    q7_keeping_the_first_time: KeepsTheFirstTime => ["q7"];
    q8_not_waiting: DoesNotWait => ["q8"];
    q8_sleeping_through_arrivals: SleepsThroughArrivals => ["q8"];
    q8_giving_one_more: GivesOneMore => ["q8"];
    q9_creating_on_send: CreatesOnSend => ["q9"];
    q9_deleting_only_once: DeletesOnce => ["q9"];
    q9_clearing_on_create: ClearsOnCreate => ["q9"];
    q9_listing_twice: ListsTwice => ["q9"];
    q10_mixing_lanes: MixesLanes => ["q10"];
    q11_truncating: Truncates => ["q11"];
    q11_shortening_delays: ShortensDelays => ["q11"];
    q11_cutting_batches: CutsBatches => ["q11"];
    q12_never_counting: NeverCounts => ["q12"];
    q12_counting_from_zero: CountsFromZero => ["q12"];
    q13_speaking_utf8: SpeaksUtf8 => ["q13"];
    q14_forgetting_what_is_in_flight: ForgetsInFlight => ["q14"];
    q14_lagging_in_silence: LagsInSilence => ["q14"];
    q15_ordered_in_name_only: OrderedInName => ["q15"];
}

#[test]
fn a_faulty_queue_without_faults_fails_nothing() {
    let faulty = failing(|inner, _| Arc::new(FaultyQueue::new(inner, FaultPlan::seeded(1))));
    assert_eq!(faulty, [""; 0]);
}
