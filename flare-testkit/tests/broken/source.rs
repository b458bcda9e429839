//! A source with one fault fails exactly the clause it breaks; an honest one fails none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use flare_backend_memory::MemoryBroker;
use flare_core::model::{Checkpoint, ConsumerId, SourceSettings, Timestamp};
use flare_core::port::{
    Clock, Outgoing, Receipt, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage,
    SourceOpening, SourceSettlement, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use flare_testkit::source::{CLAUSES, TrialBroker};
use flare_testkit::{Fixture, ManualClock};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    LosesTheTwentieth,
    ForgetsWhatIsDone,
    ReturnsLate,
    FinishesWhatIsLeft,
    DoesNotWait,
    SleepsThroughArrivals,
    GivesOneMore,
    LosesWithADroppedReceive,
    SettlesLostInSilence,
    KeepsTheLostReceipt,
    IgnoresKeeps,
    GivesToAll,
    TrimsBodies,
    NamesAnew,
    TurnsBatchesRound,
    TellsPlacesOfAQueue,
    PassesOverWhatIsOpen,
    CountsWhatIsDone,
    GivesUpForGood,
    OpensAnything,
    ClosesInName,
}

/// A source in memory with one fault.
#[derive(Debug)]
struct Broken {
    inner: Arc<dyn Source>,
    clock: ManualClock,
    fault: Fault,
    received: AtomicU64,
    closed: AtomicBool,
    seen: Mutex<Seen>,
}

/// What faults need to remember.
#[derive(Debug, Default)]
struct Seen {
    bodies: HashMap<String, Bytes>,
    done: Vec<Bytes>,
    doomed: Vec<Receipt>,
    farthest: HashMap<String, u64>,
}

/// What a receive has taken and not given yet.
struct Taken<'a> {
    seen: &'a Mutex<Seen>,
    messages: Vec<SourceMessage>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let lost = self.messages.drain(..).map(|message| message.receipt);
        self.seen.lock().unwrap().doomed.extend(lost);
    }
}

impl Broken {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn finish(&self, receipts: Vec<Receipt>) {
        let done = receipts.into_iter().map(|receipt| (receipt, SourceSettlement::Done));
        drop(self.inner.settle(done.collect()).await);
    }

    async fn given(&self, mut message: SourceMessage) -> Option<SourceMessage> {
        let number = self.received.fetch_add(1, Ordering::SeqCst) + 1;
        match self.fault {
            Fault::LosesTheTwentieth if number == 20 => {
                self.finish(vec![message.receipt]).await;
                return None;
            }
            Fault::TrimsBodies => message.body = message.body.trim_ascii().to_vec().into(),
            Fault::NamesAnew => message.id = number.to_string(),
            _ => {}
        }
        let token = message.receipt.token().to_owned();
        self.seen.lock().unwrap().bodies.insert(token, message.body.clone());
        Some(message)
    }
}

#[async_trait]
impl Source for Broken {
    fn facts(&self) -> SourceFacts {
        self.inner.facts()
    }

    async fn receive(&self, mut max: usize, mut wait: Duration) -> Result<Vec<SourceMessage>> {
        match self.fault {
            Fault::DoesNotWait => wait = Duration::ZERO,
            Fault::GivesOneMore => max += 1,
            Fault::SleepsThroughArrivals => {
                self.clock.sleep(wait).await;
                wait = Duration::ZERO;
            }
            Fault::LosesWithADroppedReceive => {
                let doomed = std::mem::take(&mut self.seen.lock().unwrap().doomed);
                self.finish(doomed).await;
            }
            _ => {}
        }
        let received = self.inner.receive(max, wait).await;
        let received = received.map_err(|error| match self.fault {
            Fault::GivesUpForGood => Error::new(ErrorKind::Internal, "receive"),
            _ => error,
        })?;
        let mut taken = Taken { seen: &self.seen, messages: received };
        if self.is(Fault::LosesWithADroppedReceive) {
            tokio::task::yield_now().await;
        }
        let mut given = Vec::new();
        for message in std::mem::take(&mut taken.messages) {
            given.extend(self.given(message).await);
        }
        match self.fault {
            Fault::TurnsBatchesRound => given.reverse(),
            Fault::ForgetsWhatIsDone if given.is_empty() => {
                let back = std::mem::take(&mut self.seen.lock().unwrap().done).into_iter();
                given.extend(back.map(|body| SourceMessage::new("?", body, Receipt::new("?"))));
            }
            _ => {}
        }
        Ok(given)
    }

    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        let mut kept = Vec::new();
        for receipt in receipts {
            if self.closed.load(Ordering::SeqCst) {
                kept.push(Err(Error::new(ErrorKind::Lost, "keep")));
                continue;
            }
            // A receipt whose message was given out again is lost all the same: only the effect is missing.
            kept.push(match self.fault {
                Fault::IgnoresKeeps if self.received.load(Ordering::SeqCst) == 1 => Ok(()),
                _ => self.inner.keep(vec![receipt]).await.remove(0),
            });
        }
        kept
    }

    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        let mut results = Vec::new();
        for (receipt, mut to) in settlements {
            if self.closed.load(Ordering::SeqCst) {
                results.push(Err(Unsettled::new(Error::new(ErrorKind::Lost, "settle"), receipt)));
                continue;
            }
            {
                let mut seen = self.seen.lock().unwrap();
                match (self.fault, to) {
                    (Fault::FinishesWhatIsLeft, SourceSettlement::Leave) => {
                        to = SourceSettlement::Done;
                    }
                    (Fault::ForgetsWhatIsDone, SourceSettlement::Done) => {
                        let body = seen.bodies.get(receipt.token()).cloned();
                        seen.done.extend(body);
                    }
                    (Fault::PassesOverWhatIsOpen, SourceSettlement::Done) => {
                        let mut parts = receipt.token().split(':');
                        let shard = parts.next().unwrap().to_owned();
                        let record: u64 = parts.next().unwrap().parse().unwrap();
                        let farthest = seen.farthest.entry(shard).or_default();
                        *farthest = (record + 1).max(*farthest);
                    }
                    _ => {}
                }
            }
            if self.is(Fault::ReturnsLate) && to == SourceSettlement::Return {
                results.push(Ok(()));
                continue;
            }
            let result = self.inner.settle(vec![(receipt, to)]).await.remove(0);
            results.push(match (self.fault, result) {
                (Fault::SettlesLostInSilence, Err(lost))
                    if lost.error.kind() == ErrorKind::Lost =>
                {
                    Ok(())
                }
                (Fault::KeepsTheLostReceipt, Err(lost)) => {
                    Err(Unsettled::new(lost.error, Receipt::new("another")))
                }
                (_, result) => result,
            });
        }
        results
    }

    fn checkpoints(&self) -> Vec<Checkpoint> {
        let told = self.inner.checkpoints();
        match self.fault {
            Fault::TellsPlacesOfAQueue => vec![Checkpoint::new("queue", "7")],
            Fault::PassesOverWhatIsOpen => {
                let seen = self.seen.lock().unwrap();
                let farther = |place: Checkpoint| match seen.farthest.get(place.shard()) {
                    Some(farthest) => Checkpoint::new(place.shard(), farthest.to_string()),
                    None => place,
                };
                told.into_iter().map(farther).collect()
            }
            _ => told,
        }
    }

    async fn lag(&self) -> Result<Option<SourceLag>> {
        match self.fault {
            Fault::CountsWhatIsDone => {
                Ok(Some(SourceLag::Messages(self.received.load(Ordering::SeqCst))))
            }
            _ => self.inner.lag().await,
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        if !self.is(Fault::ClosesInName) {
            self.inner.close().await;
        }
    }
}

/// A broker in memory whose sources have a fault.
struct Brokers {
    broker: MemoryBroker,
    clock: ManualClock,
    kind: &'static str,
    fault: Fault,
    /// What keeps sources alive that are closed in name only.
    open: Mutex<Vec<Arc<dyn Source>>>,
}

impl Brokers {
    async fn open_named(&self, name: &str, at: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        let settings = SourceSettings::new("memory", json!({ self.kind: name })).unwrap();
        let opening = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
        let inner = self.broker.open(opening.checkpoints(at)).await?;
        if self.fault == Fault::ClosesInName {
            self.open.lock().unwrap().push(Arc::clone(&inner));
        }
        Ok(Arc::new(Broken {
            inner,
            clock: self.clock.clone(),
            fault: self.fault,
            received: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            seen: Mutex::default(),
        }))
    }
}

#[async_trait]
impl TrialBroker for Brokers {
    async fn open(&self, at: Vec<Checkpoint>) -> Result<Arc<dyn Source>> {
        if self.fault == Fault::GivesToAll {
            // Whatever others hold is given back to be given to this one, too.
            let open = std::mem::take(&mut *self.open.lock().unwrap());
            for other in open {
                other.close().await;
            }
        }
        let source = self.open_named("orders", at).await?;
        if self.fault == Fault::GivesToAll {
            self.open.lock().unwrap().push(Arc::clone(&source));
        }
        Ok(source)
    }

    async fn open_missing(&self) -> Result<Arc<dyn Source>> {
        match self.fault {
            Fault::OpensAnything => self.open_named("orders", Vec::new()).await,
            _ => self.open_named("missing", Vec::new()).await,
        }
    }

    async fn publish(&self, messages: Vec<Outgoing>) {
        for message in messages {
            self.broker.publish("orders", message).unwrap();
        }
    }

    async fn left(&self) -> Vec<Bytes> {
        self.broker.left("orders").unwrap()
    }

    async fn set_away(&self, away: bool) {
        self.broker.set_away(away);
    }
}

struct Fixed {
    clock: ManualClock,
    kind: &'static str,
    fault: Fault,
}

#[async_trait]
impl Fixture for Fixed {
    type Port = dyn TrialBroker;
    type Guard = ();

    async fn open(&self) -> (Arc<dyn TrialBroker>, ()) {
        let broker = MemoryBroker::with_clock(Arc::new(self.clock.clone()));
        match self.kind {
            "queue" => broker.create_queue("orders"),
            _ => broker.create_stream("orders"),
        }
        let (clock, open) = (self.clock.clone(), Mutex::default());
        (Arc::new(Brokers { broker, clock, kind: self.kind, fault: self.fault, open }), ())
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time).await;
    }
}

fn failing(kind: &'static str, fault: Fault) -> Vec<&'static str> {
    let fixture = || Fixed { clock: ManualClock::new(Timestamp::EPOCH), kind, fault };
    crate::support::failing(CLAUSES, fixture).into_iter().collect()
}

fn noticed(fault: Fault) -> Vec<&'static str> {
    failing("queue", fault)
}

crate::support::faults! {
    an_honest_source_fails_nothing: None => [];
    s1_losing_a_message: LosesTheTwentieth => ["s1"];
    s2_forgetting_what_is_done: ForgetsWhatIsDone => ["s2"];
    s3_returning_late: ReturnsLate => ["s3"];
    s4_finishing_what_is_left: FinishesWhatIsLeft => ["s4"];
    s5_not_waiting: DoesNotWait => ["s5"];
    s5_sleeping_through_arrivals: SleepsThroughArrivals => ["s5"];
    s5_giving_one_more: GivesOneMore => ["s5"];
    s5_losing_with_a_dropped_receive: LosesWithADroppedReceive => ["s5"];
    s6_settling_lost_receipts_in_silence: SettlesLostInSilence => ["s6"];
    s6_keeping_the_lost_receipt: KeepsTheLostReceipt => ["s6"];
    s7_ignoring_keeps: IgnoresKeeps => ["s7"];
    s7_giving_to_all: GivesToAll => ["s7"];
    s8_trimming_bodies: TrimsBodies => ["s8"];
    s8_naming_anew: NamesAnew => ["s8"];
    s9_turning_batches_round: TurnsBatchesRound => ["s9"];
    s10_telling_places_of_a_queue: TellsPlacesOfAQueue => ["s10"];
    s11_counting_what_is_done: CountsWhatIsDone => ["s11"];
    s12_giving_up_for_good: GivesUpForGood => ["s12"];
    s13_opening_anything: OpensAnything => ["s13"];
    s13_closing_in_name: ClosesInName => ["s13"];
}

#[test]
fn an_honest_stream_fails_nothing() {
    assert_eq!(failing("stream", Fault::None), [""; 0]);
}

#[test]
fn s10_passing_over_what_is_open() {
    assert_eq!(failing("stream", Fault::PassesOverWhatIsOpen), ["s10"]);
}
