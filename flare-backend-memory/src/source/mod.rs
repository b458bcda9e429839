//! Takes what a test or a host publishes; gives it to consumers, as a queue that knows what is done or as a
//! stream whose place Flare keeps. Can be taken away, as brokers are.

mod queue;
mod stream;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use flare_core::model::{Invalid, SourceSettings, Timestamp};
use flare_core::port::{
    Clock, Outgoing, Receipt, Source, SourceConnector, SourceOpening, SystemClock, Unsettled,
};
use flare_core::{Error, ErrorKind, Result};
use tokio::sync::Notify;

use crate::time::StoreTime;
use crate::{BACKEND, lock};

use queue::{MemoryQueueSource, QueuedMessages};
use stream::{MemoryStreamSource, StreamRecords};

/// Messages that one queue or stream may hold.
const MAX_MESSAGES: usize = 1_000_000;

/// A broker in memory: named queues and streams that consumers pull from, for tests and trials.
///
/// Give it to Flare as a connector, and name a queue or a stream in a consumer's settings:
/// `{"memory": {"queue": "orders"}}`, `{"memory": {"stream": "orders", "from": "latest"}}`. As strict as real
/// ones: what is not settled comes back, groups are in order, receipts end. Clones are the same broker.
///
/// ```
/// use flare_backend_memory::MemoryBroker;
/// use flare_core::port::Outgoing;
///
/// let broker = MemoryBroker::new();
/// broker.create_queue("orders");
/// broker.publish("orders", Outgoing::new(r#"{"id": 7}"#).group("7"))?;
/// # Ok::<(), flare_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBroker {
    shared: Arc<SharedBroker>,
}

#[derive(Debug)]
struct SharedBroker {
    time: StoreTime,
    topics: Mutex<BTreeMap<String, Arc<Topic>>>,
    away: Arc<Away>,
}

/// Whether the broker can be reached.
#[derive(Debug, Default)]
struct Away(AtomicBool);

impl Away {
    fn check(&self, operation: &'static str) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unavailable, operation)
                .with_backend(BACKEND)
                .with_detail("the broker is away")),
            false => Ok(()),
        }
    }
}

/// One queue or stream.
#[derive(Debug)]
struct Topic {
    time: StoreTime,
    away: Arc<Away>,
    messages: Mutex<Messages>,
    /// Told whenever something may have become receivable, or the broker went away or came back.
    changed: Notify,
}

#[derive(Debug)]
enum Messages {
    Queue(QueuedMessages),
    Stream(StreamRecords),
}

impl MemoryBroker {
    /// A broker without anything in it, on the system's clock.
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A broker on a clock of the caller's, for tests that move time by hand.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        let (topics, away) = (Mutex::default(), Arc::default());
        Self { shared: Arc::new(SharedBroker { time: StoreTime::new(clock), topics, away }) }
    }

    /// Makes sure there is a queue of that name.
    pub fn create_queue(&self, name: &str) {
        self.create(name, || Messages::Queue(QueuedMessages::default()));
    }

    /// Makes sure there is a stream of that name.
    pub fn create_stream(&self, name: &str) {
        self.create(name, || Messages::Stream(StreamRecords::default()));
    }

    fn create(&self, name: &str, messages: impl FnOnce() -> Messages) {
        let topic = || {
            let (time, away) = (self.shared.time.clone(), Arc::clone(&self.shared.away));
            let (messages, changed) = (Mutex::new(messages()), Notify::new());
            Arc::new(Topic { time, away, messages, changed })
        };
        lock(&self.shared.topics).entry(name.to_owned()).or_insert_with(topic);
    }

    /// Publishes a message; those of one group stay in order. Delays and coalescing keys are not a broker's.
    pub fn publish(&self, name: &str, message: Outgoing) -> Result<()> {
        let topic = self.topic("publish", name)?;
        let now = topic.time.now();
        match &mut *lock(&topic.messages) {
            Messages::Queue(queue) => queue.publish(message, now),
            Messages::Stream(stream) => stream.publish(message, now),
        }?;
        topic.changed.notify_waiters();
        Ok(())
    }

    /// What consumers left in a queue, in the order in which they did.
    pub fn left(&self, name: &str) -> Result<Vec<Bytes>> {
        let topic = self.topic("left", name)?;
        let messages = lock(&topic.messages);
        Ok(match &*messages {
            Messages::Queue(queue) => queue.left().to_vec(),
            Messages::Stream(_) => Vec::new(),
        })
    }

    /// Takes the broker away from everything that is open on it, or brings it back.
    pub fn set_away(&self, away: bool) {
        self.shared.away.0.store(away, Ordering::SeqCst);
        for topic in lock(&self.shared.topics).values() {
            if let (true, Messages::Stream(stream)) = (away, &mut *lock(&topic.messages)) {
                stream.disconnect();
            }
            topic.changed.notify_waiters();
        }
    }

    fn topic(&self, operation: &'static str, name: &str) -> Result<Arc<Topic>> {
        lock(&self.shared.topics).get(name).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, operation)
                .with_backend(BACKEND)
                .with_detail(format!("there is no queue or stream {name:?}"))
        })
    }
}

impl Default for MemoryBroker {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl SourceConnector for MemoryBroker {
    fn kind(&self) -> &'static str {
        BACKEND
    }

    fn leaves(&self, settings: &SourceSettings) -> bool {
        !matches!(settings.optional("stream"), Ok(Some(_)))
    }

    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
        settings.only(&["queue", "stream", "from"])?;
        let stream = settings.optional("stream")?;
        if stream.is_some() && settings.optional("queue")?.is_some() {
            return Err(settings.refuse("stream", "a source is a queue or a stream"));
        }
        match settings.optional("from")? {
            None => {}
            Some("oldest" | "latest") if stream.is_some() => {}
            Some(_) if stream.is_some() => {
                return Err(settings.refuse("from", "must be oldest or latest"));
            }
            Some(_) => return Err(settings.refuse("from", "is a setting of streams")),
        }
        stream.map_or_else(|| settings.text("queue"), Ok).map(drop)
    }

    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
        let settings = &opening.settings;
        let refused = |invalid| Error::invalid("open", invalid);
        self.check(settings).map_err(refused)?;
        self.shared.away.check("open")?;
        let stream = settings.optional("stream").map_err(refused)?;
        let name = stream.map_or_else(|| settings.text("queue"), Ok).map_err(refused)?;
        let topic = self.topic("open", name)?;
        let is_stream = matches!(&*lock(&topic.messages), Messages::Stream(_));
        if is_stream != stream.is_some() {
            let other = if is_stream { "a stream" } else { "a queue" };
            let detail = format!("{name:?} is {other}");
            return Err(Error::new(ErrorKind::NotFound, "open")
                .with_backend(BACKEND)
                .with_detail(detail));
        }
        Ok(match is_stream {
            true => Arc::new(MemoryStreamSource::open(topic, &opening)),
            false => Arc::new(MemoryQueueSource::open(topic)),
        })
    }
}

impl Topic {
    /// Waits until `until` for something to take.
    async fn receive<T>(
        &self,
        until: Timestamp,
        take: impl Fn(&mut Messages, Timestamp) -> Result<Vec<T>>,
        next: impl Fn(&Messages) -> Option<Timestamp>,
    ) -> Result<Vec<T>> {
        loop {
            // Registered before looking, so that no change in between is missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            self.away.check("receive")?;
            let now = self.time.now();
            let wake_at = {
                let mut messages = lock(&self.messages);
                let taken = take(&mut messages, now)?;
                if !taken.is_empty() || now >= until {
                    return Ok(taken);
                }
                next(&messages).map_or(until, |at| at.min(until))
            };
            tokio::select! {
                biased;
                () = &mut changed => {}
                () = self.time.sleep_until(wake_at) => {}
            }
        }
    }
}

fn full(held: usize) -> Result<()> {
    if held < MAX_MESSAGES {
        return Ok(());
    }
    let detail = format!("it holds {MAX_MESSAGES} messages");
    Err(Error::new(ErrorKind::Busy, "publish").with_backend(BACKEND).with_detail(detail))
}

fn lost(operation: &'static str) -> Error {
    Error::new(ErrorKind::Lost, operation)
        .with_backend(BACKEND)
        .with_detail("the message is settled, given back, or another's by now")
}

/// Settles receipts one by one; a failed one comes back.
fn settle_each<S>(
    settlements: Vec<(Receipt, S)>,
    mut settle: impl FnMut(&Receipt, S) -> Result<()>,
) -> Vec<Result<(), Unsettled>> {
    let settle = |(receipt, to): (Receipt, S)| match settle(&receipt, to) {
        Ok(()) => Ok(()),
        Err(error) => Err(Unsettled::new(error, receipt)),
    };
    settlements.into_iter().map(settle).collect()
}

/// The whole numbers of a token such as `3:14:2`.
fn numbers<const N: usize>(receipt: &Receipt) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut parts = receipt.token().split(':');
    for number in &mut numbers {
        *number = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}
