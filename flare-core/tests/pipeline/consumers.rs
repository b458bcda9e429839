//! Documents that are pulled: a message is settled once what it says is stored, what becomes no document is kept, and
//! one node at a time works a consumer, whatever dies, pauses or is away.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{World, few_slots, in_memory, url};
use async_trait::async_trait;
use flare_backend_memory::MemoryBroker;
use flare_core::model::consumer::{DeleteInput, MappingInput, RejectReason};
use flare_core::model::{
    Checkpoint, Consumer, ConsumerId, ConsumerState, ConsumerStatus, Epoch, Invalid, NewConsumer,
    OnReject, RecordKind, RecordName, Resource, ResourceId, SourceSettings, Unreadable,
    WhyUnreadable,
};
use flare_core::port::{
    DocumentWrite, Outgoing, Page, Receipt, Repository, Source, SourceConnector, SourceFacts,
    SourceLag, SourceMessage, SourceOpening, SourceSettlement, Unsettled, WriteOutcome,
};
use flare_core::{ConsumerReport, Error, ErrorKind, Flare, Result};
use flare_testkit::intercept::{self, Call, Hooks, RepositoryHooks};
use serde_json::json;
use tokio::sync::watch;

const SECOND: Duration = Duration::from_secs(1);

/// How messages of these tests become users.
fn mapping() -> MappingInput {
    let mut input = MappingInput::default();
    input.url = url("{/id}");
    let (pointer, equals) = ("/op".to_owned(), "d".into());
    input.delete = Some(DeleteInput::Equals { pointer, equals });
    input
}

fn from_queue(name: &str) -> NewConsumer {
    let source = SourceSettings::new("memory", json!({"queue": name})).unwrap();
    NewConsumer::new(source, mapping())
}

fn broker(world: &World) -> MemoryBroker {
    let broker = MemoryBroker::with_clock(Arc::new(world.clock.clone()));
    broker.create_queue("users");
    broker
}

fn say(broker: &MemoryBroker, message: &str) {
    broker.publish("users", Outgoing::new(message.to_owned())).unwrap();
}

/// Starts a node that knows the broker.
fn start(world: &mut World, broker: &MemoryBroker) -> Flare {
    let builder = world.builder().source(Arc::new(broker.clone()));
    world.start_as(builder)
}

async fn pulled(world: &mut World, broker: &MemoryBroker) -> (Resource, Consumer) {
    start(world, broker);
    let users = world.users().await;
    let consumer = world.flare.create_consumer(users.id, from_queue("users")).await.unwrap();
    (users, consumer)
}

async fn stored(world: &World, id: &str) -> Option<i64> {
    match world.calm.document(&url(id)).await {
        Ok(document) => Some(document.version.revision().get()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

async fn is_stored(world: &World, id: &str, rev: i64) {
    let what = format!("{id} is stored at {rev}");
    world.until(&what, async || stored(world, id).await == Some(rev)).await;
}

async fn report(world: &World, consumer: &Consumer) -> ConsumerReport {
    world.flare.consumer_status(consumer.id).await.unwrap()
}

#[tokio::test]
async fn what_messages_say_is_stored_told_and_counted() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (users, consumer) = pulled(&mut world, &broker).await;
    world.subscribe(&users, "client").await;
    for message in [r#"{"id":"a","rev":1}"#, r#"{"id":"b","rev":1}"#, r#"{"id":"a","rev":3}"#] {
        say(&broker, message);
    }
    is_stored(&world, "a", 3).await;
    is_stored(&world, "b", 1).await;
    say(&broker, r#"{"id":"a","rev":2}"#);
    say(&broker, r#"{"id":"b","op":"d"}"#);
    world.until("b is deleted", async || stored(&world, "b").await.is_none()).await;
    world.settled().await;
    world
        .until("it is counted", async || report(&world, &consumer).await.state.received == 5)
        .await;
    let seen = report(&world, &consumer).await;
    assert_eq!((seen.state.accepted, seen.state.unchanged, seen.state.rejected), (4, 1, 0));
    assert_eq!((seen.status, seen.node), (ConsumerStatus::Active, world.flare.member().node()));
    assert!(seen.state.rates.received.minute > 0.0 && seen.state.last_message_at.is_some());
    world
        .until("all is settled", async || report(&world, &consumer).await.state.depth == Some(0))
        .await;
    assert_eq!(world.flare.node().consumers, 1);
    // The next owner has nothing left to do.
    world.crash().await;
    start(&mut world, &broker);
    world.pass(SECOND * 120).await;
    assert_eq!(report(&world, &consumer).await.state.received, 5);
}

#[tokio::test]
async fn a_poisonous_message_costs_itself_alone_and_is_tried_again_once_the_mapping_is_right() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (users, consumer) = pulled(&mut world, &broker).await;
    for number in 0..10_000 {
        match number {
            50 => say(&broker, "no json"),
            51 => say(&broker, r#"{"key":"late","rev":1}"#),
            52 => say(&broker, r#"{"id":"x","rev":"none"}"#),
            _ => say(&broker, &format!(r#"{{"id":"{number}","rev":1}}"#)),
        }
    }
    for number in [0, 49, 53, 9_999] {
        is_stored(&world, &number.to_string(), 1).await;
    }
    world
        .until("all are counted", async || report(&world, &consumer).await.state.received == 10_000)
        .await;
    let state = report(&world, &consumer).await.state;
    assert_eq!((state.accepted, state.rejected), (9_997, 3));
    assert_eq!(state.reasons.values().sum::<u64>(), 3);
    let listed = world.flare.rejects(consumer.id, Page::new(10, 0)).await.unwrap();
    assert_eq!(listed.total, 3);
    assert!(listed.items.iter().any(|reject| reject.excerpt == "no json"), "{listed:?}");

    let mut other = from_queue("users");
    other.document.url = url("{/key}");
    let replaced = world.flare.replace_consumer(consumer.id, other).await.unwrap();
    assert_eq!((replaced.resource, replaced.generation), (users.id, consumer.generation.next()));
    let retried = world.flare.retry_all_rejects(consumer.id).await.unwrap();
    assert_eq!((retried.stored, retried.rejected), (1, 2));
    assert_eq!(stored(&world, "late").await, Some(1));
    let left = world.flare.rejects(consumer.id, Page::new(10, 0)).await.unwrap();
    assert_eq!(left.total, 2);
    let named = left.items.iter().map(|reject| reject.id);
    let retried = world.flare.retry_rejects(consumer.id, named).await.unwrap();
    assert_eq!((retried.stored, retried.rejected), (0, 2));
    let unknown = listed.items.iter().map(|reject| reject.id);
    let refused = world.flare.retry_rejects(consumer.id, unknown).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound, "one of them is stored by now: {refused}");
}

#[tokio::test]
async fn a_mapping_that_fits_no_message_shows_within_a_second() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    is_working(&world).await;
    say(&broker, r#"{"user":{"id":"a"},"rev":1}"#);
    world.pass(SECOND).await;
    let state = report(&world, &consumer).await.state;
    assert_eq!((state.received, state.rejected), (1, 1));
    let listed = world.flare.rejects(consumer.id, Page::new(1, 0)).await.unwrap();
    assert_eq!(listed.items[0].pointer, "/id", "it says what does not fit: {listed:?}");
}

#[tokio::test]
async fn rejects_that_cannot_be_read_keep_no_others_from_being_tried_again() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    for number in 0..250 {
        say(&broker, &format!(r#"{{"key":"{number}","rev":1}}"#));
    }
    let page = Page::new(250, 0);
    let listed = async || world.calm.rejects(consumer.id, page).await.unwrap();
    world.until("all are kept", async || listed().await.total == 250).await;
    // More than are read at a time, so that a whole page of them comes first, and one more among the others.
    let all = listed().await.items;
    let spoilt = all[..120].iter().chain(&all[200..201]);
    for reject in spoilt {
        let why = WhyUnreadable::Damaged { detail: "torn".to_owned() };
        world.stores.repository().spoil(RecordName::Reject(reject.id), Some(why));
    }
    let mut other = from_queue("users");
    other.document.url = url("{/key}");
    world.flare.replace_consumer(consumer.id, other).await.unwrap();
    let retried = world.flare.retry_all_rejects(consumer.id).await.unwrap();
    assert_eq!((retried.stored, retried.rejected), (129, 0));
    let left = listed().await;
    assert_eq!((left.items.len(), left.unreadable.len(), left.total), (0, 121, 121));
    let again = world.flare.retry_all_rejects(consumer.id).await.unwrap();
    assert_eq!((again.stored, again.rejected), (0, 0));
}

#[tokio::test]
async fn rejects_are_kept_for_as_long_as_dead_letters() {
    // A consumer looks at its broker all the while: an hour of that shows what a month would.
    let settings = few_slots().dead_letter_retention(SECOND * 3_600).expire_every(SECOND * 600);
    let mut world = in_memory(settings);
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    let listed = async || world.calm.rejects(consumer.id, Page::new(10, 0)).await.unwrap().total;
    say(&broker, "no json");
    world.until("it is kept", async || listed().await == 1).await;
    let retention = world.settings.dead_letter_retention;
    world.pass(retention - SECOND * 60).await;
    assert_eq!(listed().await, 1);
    say(&broker, "no json either");
    world.until("both are", async || listed().await == 2).await;
    world.pass(world.settings.expire_every + SECOND * 120).await;
    assert_eq!(listed().await, 1, "the older one is forgotten");
}

#[tokio::test]
async fn what_is_left_to_the_broker_is_not_kept() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    start(&mut world, &broker);
    let users = world.users().await;
    let leaves = from_queue("users").on_reject(OnReject::Leave);
    let consumer = world.flare.create_consumer(users.id, leaves).await.unwrap();
    say(&broker, "no json");
    world.until("it is left", async || !broker.left("users").unwrap().is_empty()).await;
    world
        .until("it is counted", async || report(&world, &consumer).await.state.rejected == 1)
        .await;
    assert_eq!(world.flare.rejects(consumer.id, Page::new(10, 0)).await.unwrap().total, 0);
}

#[tokio::test]
async fn what_cannot_be_left_to_the_broker_is_refused() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    broker.create_stream("log");
    start(&mut world, &broker);
    let users = world.users().await;
    let stream = SourceSettings::new("memory", json!({"stream": "log"})).unwrap();
    let leaves = NewConsumer::new(stream, mapping()).on_reject(OnReject::Leave);
    let refused = world.flare.create_consumer(users.id, leaves.clone()).await.unwrap_err();
    assert_eq!((refused.kind(), refused.field()), (ErrorKind::Invalid, Some("onReject")));
    let kept = leaves.clone().on_reject(OnReject::Keep);
    let consumer = world.flare.create_consumer(users.id, kept).await.unwrap();
    let refused = world.flare.replace_consumer(consumer.id, leaves).await.unwrap_err();
    assert_eq!(refused.field(), Some("onReject"));
}

/// A queue of which only the broker knows whether it takes back what is refused.
#[derive(Debug)]
struct Unwilling(MemoryBroker);

#[async_trait]
impl SourceConnector for Unwilling {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        self.0.check(settings)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        self.0.open(opening).await
    }
}

#[tokio::test]
async fn what_the_broker_turns_out_not_to_take_back_is_not_pulled_and_said() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    broker.create_stream("log");
    let builder = world.builder().source(Arc::new(Unwilling(broker.clone())));
    world.start_as(builder);
    let users = world.users().await;
    let stream = SourceSettings::new("memory", json!({"stream": "log"})).unwrap();
    let leaves = NewConsumer::new(stream, mapping()).on_reject(OnReject::Leave);
    let consumer = world.flare.create_consumer(users.id, leaves.clone()).await.unwrap();
    broker.publish("log", Outgoing::new("no json")).unwrap();
    broker.publish("log", Outgoing::new(r#"{"id":"a","rev":1}"#)).unwrap();
    let said = async || report(&world, &consumer).await.state.last_error.is_some();
    world.until("it is said", said).await;
    let state = report(&world, &consumer).await.state;
    assert!(state.last_error.unwrap().contains("onReject"), "it says what to change");
    assert_eq!((state.received, stored(&world, "a").await), (0, None));
    let kept = leaves.on_reject(OnReject::Keep);
    world.flare.replace_consumer(consumer.id, kept).await.unwrap();
    is_stored(&world, "a", 1).await;
    world.until("it is kept", async || report(&world, &consumer).await.state.rejected == 1).await;
}

#[tokio::test]
async fn a_resource_with_consumers_is_not_deleted() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (users, consumer) = pulled(&mut world, &broker).await;
    let refused = world.flare.delete_resource(users.id).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("it has consumers (1)"), "{refused}");
    say(&broker, r#"{"id":"a","rev":1}"#);
    is_stored(&world, "a", 1).await;
    world.flare.delete_consumer(consumer.id).await.unwrap();
    world.flare.delete_resource(users.id).await.unwrap();
    let refused = world.flare.create_consumer(users.id, from_queue("users")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_pause_stops_within_a_second_and_a_resumption_goes_on() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    say(&broker, r#"{"id":"a","rev":1}"#);
    is_stored(&world, "a", 1).await;
    for _ in 0..2 {
        let paused = world.flare.pause_consumer(consumer.id).await.unwrap();
        assert_eq!(paused.status, ConsumerStatus::Paused);
    }
    world.pass(SECOND).await;
    assert_eq!(world.flare.node().consumers, 0);
    say(&broker, r#"{"id":"a","rev":2}"#);
    world.pass(SECOND * 600).await;
    assert_eq!(stored(&world, "a").await, Some(1));
    world.flare.resume_consumer(consumer.id).await.unwrap();
    world.pass(SECOND).await;
    assert_eq!(stored(&world, "a").await, Some(2));
    world.flare.delete_consumer(consumer.id).await.unwrap();
    world.pass(SECOND).await;
    say(&broker, r#"{"id":"a","rev":3}"#);
    world.pass(SECOND * 600).await;
    assert_eq!((stored(&world, "a").await, world.flare.node().consumers), (Some(2), 0));
    let gone = world.flare.consumer(consumer.id).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_broker_that_is_away_shows_and_is_tried_until_it_is_back() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    is_working(&world).await;
    broker.set_away(true);
    world
        .until("it shows", async || report(&world, &consumer).await.state.last_error.is_some())
        .await;
    world.pass(SECOND * 600).await;
    broker.set_away(false);
    say(&broker, r#"{"id":"a","rev":1}"#);
    is_stored(&world, "a", 1).await;
    world
        .until("it is well", async || report(&world, &consumer).await.state.last_error.is_none())
        .await;
    // A queue that is not there is one that may come.
    let later = world.flare.replace_consumer(consumer.id, from_queue("later")).await.unwrap();
    world
        .until("that shows", async || report(&world, &later).await.state.last_error.is_some())
        .await;
    broker.create_queue("later");
    broker.publish("later", Outgoing::new(r#"{"id":"a","rev":2}"#)).unwrap();
    is_stored(&world, "a", 2).await;
}

async fn is_working(world: &World) {
    world.until("it works", async || world.flare.node().consumers == 1).await;
}

/// Fails writes of documents while it is told to.
#[derive(Debug, Clone, Default)]
struct FailingWrites(Arc<AtomicBool>);

impl Hooks for FailingWrites {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        match call.name == "write_documents" && self.0.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Unavailable, call.name)),
            false => Ok(()),
        }
    }
}

impl RepositoryHooks for FailingWrites {}

/// Fails the writes of one document while it is told to.
#[derive(Debug, Clone)]
struct FailingDocument(Arc<AtomicBool>, Error);

impl FailingDocument {
    fn with(error: Error) -> Self {
        Self(Arc::new(AtomicBool::new(true)), error)
    }
}

impl Hooks for FailingDocument {}

#[async_trait]
impl RepositoryHooks for FailingDocument {
    async fn write_documents(
        &self,
        inner: &dyn Repository,
        writes: Vec<DocumentWrite>,
    ) -> Vec<Result<WriteOutcome>> {
        let fails = |write: &DocumentWrite| write.key.url.as_str() == url("bad");
        let mut outcomes = Vec::with_capacity(writes.len());
        for write in writes {
            if fails(&write) && self.0.load(Ordering::Relaxed) {
                outcomes.push(Err(self.1.clone()));
            } else {
                outcomes.extend(inner.write_documents(vec![write]).await);
            }
        }
        outcomes
    }
}

/// Documents of a batch are stored in waves, none twice in one. What was not begun when it had to stop was once
/// settled as if it were stored.
#[tokio::test]
async fn what_waits_behind_a_document_that_cannot_be_stored_is_given_back_with_it() {
    let fails = FailingDocument::with(Error::new(ErrorKind::Unavailable, "write_documents"));
    let hooks = fails.clone();
    let mut world =
        in_memory(few_slots()).behind(|repository, _| intercept::repository(repository, hooks));
    let broker = broker(&world);
    for message in [r#"{"id":"a","rev":1}"#, r#"{"id":"a","rev":2}"#, r#"{"id":"bad","rev":1}"#] {
        say(&broker, message);
    }
    let (_, consumer) = pulled(&mut world, &broker).await;
    is_stored(&world, "a", 1).await;
    world.flare.pause_consumer(consumer.id).await.unwrap();
    world.until("it rests", async || world.flare.node().consumers == 0).await;
    assert_eq!(stored(&world, "a").await, Some(1), "the others wait for the one that fails");
    fails.0.store(false, Ordering::Relaxed);
    world.flare.resume_consumer(consumer.id).await.unwrap();
    is_stored(&world, "bad", 1).await;
    is_stored(&world, "a", 2).await;
}

#[tokio::test]
async fn nothing_is_lost_while_the_store_is_away_or_the_node_dies() {
    let fails = FailingWrites::default();
    let hooks = fails.clone();
    let mut world =
        in_memory(few_slots()).behind(|repository, _| intercept::repository(repository, hooks));
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    fails.0.store(true, Ordering::Relaxed);
    for number in 0..50 {
        say(&broker, &format!(r#"{{"id":"{number}","rev":1}}"#));
    }
    world
        .until("it shows", async || report(&world, &consumer).await.state.last_error.is_some())
        .await;
    // What it had received is another's at once, or after the broker's time.
    world.crash().await;
    fails.0.store(false, Ordering::Relaxed);
    start(&mut world, &broker);
    for number in 0..50 {
        is_stored(&world, &number.to_string(), 1).await;
    }
}

/// Holds writes of documents while it is told to.
#[derive(Debug, Clone)]
struct HeldWrites(watch::Sender<bool>);

impl Hooks for HeldWrites {
    async fn before(&self, call: &Call<'_>) -> Result<()> {
        if call.name == "write_documents" {
            let mut held = self.0.subscribe();
            held.wait_for(|held| !held).await.unwrap();
        }
        Ok(())
    }
}

impl RepositoryHooks for HeldWrites {}

/// A message of the broker in memory is its receiver's for half a minute, unless it asks for more.
#[tokio::test]
async fn what_takes_long_to_store_is_given_to_nobody_else() {
    let held = watch::Sender::new(true);
    let hooks = HeldWrites(held.clone());
    let mut world =
        in_memory(few_slots()).behind(|repository, _| intercept::repository(repository, hooks));
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    let received = async |number| report(&world, &consumer).await.state.received == number;
    // Some that are being stored, and some that wait behind them.
    for (message, number) in [(1, 2), (3, 4)] {
        for id in message..=number {
            say(&broker, &format!(r#"{{"id":"{id}","rev":1}}"#));
        }
        world.until("they are received", async || received(number).await).await;
    }
    let settings = from_queue("users").source;
    let other = SourceOpening::new(ConsumerId::from_bytes([7; 16]), settings);
    let other = broker.open(other).await.unwrap();
    let taken = tokio::spawn(async move { other.receive(10, SECOND * 660).await });
    world.pass(SECOND * 600).await;
    assert!(!taken.is_finished(), "{:?}", taken.await);
    assert_eq!(stored(&world, "1").await, None, "nothing was stored meanwhile");
    held.send_replace(false);
    for id in 1..=4 {
        is_stored(&world, &id.to_string(), 1).await;
    }
    world
        .until("all is settled", async || report(&world, &consumer).await.state.depth == Some(0))
        .await;
    world.pass(SECOND * 60).await;
    let taken = taken.await.unwrap().unwrap();
    assert!(taken.is_empty(), "{taken:?}");
    let state = report(&world, &consumer).await.state;
    assert_eq!((state.received, state.accepted, state.unchanged), (4, 4, 0));
}

/// Documents that are pulled come with no trace: the host says which one their batch is recorded in.
#[tokio::test]
async fn clients_are_told_of_the_trace_of_the_batch() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let batches = AtomicUsize::new(0);
    let trace = |batch: usize| format!("00-{batch:032x}-00000000000000ff-01");
    let current = move || {
        let batch = batches.fetch_add(1, Ordering::Relaxed) + 1;
        Some(trace(batch).parse().unwrap())
    };
    let builder = world.builder().source(Arc::new(broker.clone())).current_trace(current);
    world.start_as(builder);
    let users = world.users().await;
    world.subscribe(&users, "client").await;
    say(&broker, r#"{"id":"a","rev":1}"#);
    say(&broker, r#"{"id":"b","rev":1}"#);
    world.flare.create_consumer(users.id, from_queue("users")).await.unwrap();
    is_stored(&world, "b", 1).await;
    say(&broker, r#"{"id":"c","rev":1}"#);
    is_stored(&world, "c", 1).await;
    world.settled().await;
    let told = |id: &str| {
        let requests = world.delivery.requests().into_iter();
        let mut its = requests.filter(|it| it.request.url.ends_with(&format!("/{id}")));
        let headers = its.next().unwrap().request.headers;
        headers.into_iter().find(|(name, _)| name == "traceparent").map(|(_, value)| value)
    };
    assert_eq!([told("a"), told("b"), told("c")], [1, 1, 2].map(|batch| Some(trace(batch))));
}

/// Counts how many sources are open at the same time.
#[derive(Debug)]
struct Watched {
    broker: MemoryBroker,
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct WatchedSource(Arc<dyn Source>, Arc<AtomicUsize>);

impl Drop for WatchedSource {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Source for WatchedSource {
    fn facts(&self) -> SourceFacts {
        self.0.facts()
    }
    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>> {
        self.0.receive(max, wait).await
    }
    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
        self.0.keep(receipts).await
    }
    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>> {
        self.0.settle(settlements).await
    }
    fn checkpoints(&self) -> Vec<Checkpoint> {
        self.0.checkpoints()
    }
    async fn lag(&self) -> Result<Option<SourceLag>> {
        self.0.lag().await
    }
    async fn close(&self) {
        self.0.close().await;
    }
}

#[async_trait]
impl SourceConnector for Watched {
    fn kind(&self) -> &'static str {
        "memory"
    }
    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        self.broker.check(settings)
    }
    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        let source = self.broker.open(opening).await?;
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        Ok(Arc::new(WatchedSource(source, Arc::clone(&self.open))))
    }
}

#[tokio::test]
async fn one_node_at_a_time_works_a_consumer_and_a_hand_over_loses_nothing() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    broker.create_stream("changes");
    let most = Arc::new(AtomicUsize::new(0));
    let open = Arc::new(AtomicUsize::new(0));
    let connector = || {
        let (open, most) = (Arc::clone(&open), Arc::clone(&most));
        Arc::new(Watched { broker: broker.clone(), open, most })
    };
    let builder = world.builder().source(connector());
    world.start_as(builder);
    let users = world.users().await;
    let source = json!({"stream": "changes", "from": "oldest"});
    let source = SourceSettings::new("memory", source).unwrap();
    let new = NewConsumer::new(source, mapping());
    let consumer = world.flare.create_consumer(users.id, new).await.unwrap();
    for number in 0..20 {
        let message = format!(r#"{{"id":"a","rev":{number}}}"#);
        broker.publish("changes", Outgoing::new(message)).unwrap();
        is_stored(&world, "a", number).await;
        if number % 4 == 0 {
            // Another one comes, and the first leaves: in good order, or by dying.
            let builder = world.builder().source(connector());
            let first = world.flare.clone();
            world.start_as(builder);
            world.pass(SECOND * 40).await;
            if number % 8 == 0 {
                first.member().drain();
                world.pass(SECOND * 60).await;
            }
        }
    }
    world
        .until("all is counted", async || report(&world, &consumer).await.state.accepted == 20)
        .await;
    let seen = report(&world, &consumer).await;
    assert_eq!((seen.state.received, seen.state.unchanged), (20, 0), "none was read twice");
    assert_eq!(most.load(Ordering::SeqCst), 1, "sources open at the same time");
}

/// What came between two owners was once nobody's: the first one died before it had stored where it begins.
#[tokio::test]
async fn from_now_on_is_from_when_it_was_first_opened() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    broker.create_stream("changes");
    broker.publish("changes", Outgoing::new(r#"{"id":"before","rev":1}"#)).unwrap();
    start(&mut world, &broker);
    let users = world.users().await;
    let source = json!({"stream": "changes", "from": "latest"});
    let source = SourceSettings::new("memory", source).unwrap();
    world.flare.create_consumer(users.id, NewConsumer::new(source, mapping())).await.unwrap();
    is_working(&world).await;
    world.pass(SECOND).await;
    world.crash().await;
    for id in ["a", "b", "c", "d", "e"] {
        let message = Outgoing::new(format!(r#"{{"id":"{id}","rev":1}}"#));
        broker.publish("changes", message).unwrap();
    }
    start(&mut world, &broker);
    for id in ["a", "b", "c", "d", "e"] {
        is_stored(&world, id, 1).await;
    }
    assert_eq!(stored(&world, "before").await, None);
}

/// Shards are called alike in all streams: a place in one was once taken for a place in the other.
#[tokio::test]
async fn another_stream_is_read_from_its_own_beginning() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let stream = |name: &str| {
        broker.create_stream(name);
        let source = json!({"stream": name, "from": "oldest"});
        NewConsumer::new(SourceSettings::new("memory", source).unwrap(), mapping())
    };
    let (first, second) = (stream("first"), stream("second"));
    let say = |stream: &str, id: &str| {
        let message = Outgoing::new(format!(r#"{{"id":"{id}","rev":1}}"#)).group("one shard");
        broker.publish(stream, message).unwrap();
    };
    start(&mut world, &broker);
    let users = world.users().await;
    let consumer = world.flare.create_consumer(users.id, first.clone()).await.unwrap();
    for id in ["a", "b", "c"] {
        say("first", id);
        is_stored(&world, id, 1).await;
    }
    say("second", "d");
    world.flare.replace_consumer(consumer.id, second).await.unwrap();
    is_stored(&world, "d", 1).await;
    // What becomes of its messages is another matter: the place in the source stays.
    let mut same = first;
    world.flare.replace_consumer(consumer.id, same.clone()).await.unwrap();
    world
        .until("all are read again", async || report(&world, &consumer).await.state.received == 7)
        .await;
    same.document.url = url("{/key}");
    world.flare.replace_consumer(consumer.id, same).await.unwrap();
    world.pass(SECOND).await;
    let message = Outgoing::new(r#"{"key":"e","rev":1}"#).group("one shard");
    broker.publish("first", message).unwrap();
    is_stored(&world, "e", 1).await;
    world
        .until("it is counted", async || report(&world, &consumer).await.state.received == 8)
        .await;
}

/// A record that cannot be read fails each time it is written to: messages of others once waited behind it for ever.
#[tokio::test]
async fn a_document_that_is_damaged_costs_its_own_messages_alone() {
    let record = RecordName::Unnamed { kind: RecordKind::Document, shown: "bad".to_owned() };
    let why = WhyUnreadable::Damaged { detail: "torn".to_owned() };
    let damaged = Error::of_record("write_documents", Unreadable::new(record, why));
    let hooks = FailingDocument::with(damaged);
    let mut world =
        in_memory(few_slots()).behind(|repository, _| intercept::repository(repository, hooks));
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    say(&broker, r#"{"id":"bad","rev":1}"#);
    say(&broker, r#"{"id":"good","rev":1}"#);
    is_stored(&world, "good", 1).await;
    world
        .until("it is a reject", async || report(&world, &consumer).await.state.rejected == 1)
        .await;
    let rejects = world.flare.rejects(consumer.id, Page::new(10, 0)).await.unwrap();
    assert_eq!(rejects.items[0].reason, RejectReason::Refused);
    world
        .until("both are settled", async || report(&world, &consumer).await.state.depth == Some(0))
        .await;
}

/// Fails to read what is stored of one consumer while it is told which.
#[derive(Debug, Clone, Default)]
struct TornState(Arc<Mutex<Option<ConsumerId>>>);

impl TornState {
    fn check(&self, id: ConsumerId) -> Result<()> {
        let why = WhyUnreadable::Damaged { detail: "torn".to_owned() };
        let record = Unreadable::new(RecordName::Consumer(id), why);
        match *self.0.lock().unwrap() == Some(id) {
            true => Err(Error::of_record("consumer_states", record)),
            false => Ok(()),
        }
    }
}

impl Hooks for TornState {}

#[async_trait]
impl RepositoryHooks for TornState {
    async fn claim_consumer_state(
        &self,
        inner: &dyn Repository,
        epoch: Epoch,
        id: ConsumerId,
    ) -> Result<Option<ConsumerState>> {
        self.check(id)?;
        inner.claim_consumer_state(epoch, id).await
    }

    async fn consumer_states(
        &self,
        inner: &dyn Repository,
        ids: Vec<ConsumerId>,
    ) -> Result<Vec<(ConsumerId, Epoch, ConsumerState)>> {
        ids.iter().try_for_each(|id| self.check(*id))?;
        inner.consumer_states(ids).await
    }
}

#[tokio::test]
async fn a_state_that_cannot_be_read_stops_its_own_consumer_alone_and_is_shown() {
    let hooks = TornState::default();
    let torn = Arc::clone(&hooks.0);
    let mut world =
        in_memory(few_slots()).behind(|repository, _| intercept::repository(repository, hooks));
    let broker = broker(&world);
    broker.create_queue("others");
    let (users, consumer) = pulled(&mut world, &broker).await;
    let other = world.flare.create_consumer(users.id, from_queue("others")).await.unwrap();
    say(&broker, r#"{"id":"a","rev":1}"#);
    is_stored(&world, "a", 1).await;
    world.crash().await;
    *torn.lock().unwrap() = Some(consumer.id);
    start(&mut world, &broker);
    say(&broker, r#"{"id":"a","rev":2}"#);
    broker.publish("others", Outgoing::new(r#"{"id":"b","rev":1}"#)).unwrap();
    is_stored(&world, "b", 1).await;
    world
        .until("the other is counted", async || report(&world, &other).await.state.received == 1)
        .await;
    let seen = report(&world, &consumer).await;
    assert_eq!(seen.status, ConsumerStatus::Active);
    let error = seen.state.last_error.unwrap();
    assert!(error.contains("cannot be read") && error.contains("torn"), "{error}");
    let unreadable = world.flare.node().unreadable;
    assert!(format!("{unreadable:?}").contains(&consumer.id.to_string()), "{unreadable:?}");
    assert_eq!(stored(&world, "a").await, Some(1), "nothing is pulled twice, or out of order");
    // Once it is mended it goes on by itself.
    *torn.lock().unwrap() = None;
    is_stored(&world, "a", 2).await;
}

#[tokio::test]
async fn a_deletion_at_an_older_generation_deletes_nothing() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    let (_, consumer) = pulled(&mut world, &broker).await;
    let paused = world.flare.pause_consumer(consumer.id).await.unwrap();
    let late = world.flare.delete_consumer_at(consumer.id, consumer.generation).await.unwrap_err();
    assert_eq!((late.kind(), late.field()), (ErrorKind::Conflict, Some("generation")));
    assert_eq!(world.flare.consumer(consumer.id).await.unwrap(), paused);
    world.flare.delete_consumer_at(consumer.id, paused.generation).await.unwrap();
    let gone = world.flare.delete_consumer_at(consumer.id, paused.generation).await;
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn wrong_wishes_are_refused_by_their_field() {
    let mut world = in_memory(few_slots());
    let broker = broker(&world);
    start(&mut world, &broker);
    let users = world.users().await;
    let refused = async |new: NewConsumer| {
        let refused = world.flare.create_consumer(users.id, new).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
        refused.field().unwrap_or_default().to_owned()
    };
    let unknown = SourceSettings::new("kafka", json!({"topic": "users"})).unwrap();
    assert_eq!(refused(NewConsumer::new(unknown, mapping())).await, "kafka");
    let wrong = SourceSettings::new("memory", json!({"queue": "users", "speed": 1})).unwrap();
    assert_eq!(refused(NewConsumer::new(wrong, mapping())).await, "memory.speed");
    let mut elsewhere = from_queue("users");
    elsewhere.document.url = "http://other.example/{/id}".to_owned();
    assert_eq!(refused(elsewhere).await, "document.url");
    assert_eq!(world.flare.consumers(Page::new(10, 0)).await.unwrap().total, 0);
    let nowhere =
        world.flare.create_consumer(ResourceId::from_bytes([9; 16]), from_queue("users")).await;
    assert_eq!(nowhere.unwrap_err().kind(), ErrorKind::NotFound);
}
