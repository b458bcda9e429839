//! Gives messages of a broker for Flare to turn into documents; takes what became of each. Knows nothing of
//! documents.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Receipt, Unsettled};
use crate::error::Result;
use crate::model::{Checkpoint, ConsumerId, Invalid, SourceSettings, Timestamp};

/// One input that documents come from: a queue, or a stream, of a broker that is not Flare's.
///
/// A consumer's owner opens it ([`SourceConnector`]), receives, stores what the messages say, settles
/// them, and closes it. One call of `receive` is under way at a time, and it may be dropped at any await:
/// by a pause, by a slot that moves. `keep` and `settle` are called meanwhile. Another node may have the
/// same input open for a moment, as nodes die without a word.
///
/// # Contract
/// - **S1** At least once: a message that the broker has and that was neither settled as done nor left is
///   received: again if it was returned, if it was not kept in time (S7), if the connection was lost or if
///   the source was closed or dropped, then by the one that is opened next.
/// - **S2** A message settled as done is not received again, by this source or by one that is opened later
///   (where Flare keeps the checkpoints: with those that were told since, and unless an earlier one of its shard
///   was not done).
/// - **S3** A message settled as returned is received again at once, without waiting for S7. Those of
///   its group after it may come with it, under new receipts, where the facts say `ordered`.
/// - **S4** A message settled as left is the broker's own matter: it has it still, or has put it where it
///   puts what was refused, and no other message waits for it. Where the facts say that nothing can be left,
///   that is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), and the receipt stays good.
/// - **S5** `receive` waits up to `wait` for a first message, returns at once when one is there, and never
///   gives more than `max` or `max_batch`. A receive that is dropped loses nothing: what it had taken is
///   received later.
/// - **S6** A receipt that is no longer good (the message is another's by now, was given back, or its
///   connection is lost) settles and is kept as [`ErrorKind::Lost`](crate::ErrorKind::Lost) and changes
///   nothing. The receipt comes back with the error.
/// - **S7** What was received is not given out again while it is held: for `kept_for` since it was received or
///   last kept; without such a time, for as long as the source is open and connected. Where the broker keeps the
///   checkpoints that is true of all sources that are open on it, elsewhere of this one.
/// - **S8** Bodies come byte for byte, and a message has the same `id` each time.
/// - **S9** Where the facts say `ordered`, messages of one group are received in the order they were sent in.
///   After one was returned, not kept, or lost with its connection, the group goes on with its first
///   message that is not settled.
/// - **S10** Where Flare keeps the checkpoints, `checkpoints` says for every shard up to where all is
///   settled: never beyond a message that is not, and a source that is opened with them receives the rest.
///   Where the broker keeps them there are none.
/// - **S11** `lag` says how much is not settled yet, or how old it is; it may be behind for some seconds, and
///   is zero then once everything is settled. A broker that cannot tell says nothing.
/// - **S12** While the broker cannot be reached, calls fail with a temporary error; the source connects
///   again by itself, and the first `receive` after that goes on with what is not settled. An error that is not
///   temporary is the source's end: its owner closes it and opens another one.
/// - **S13** Opening what is not there is [`ErrorKind::NotFound`](crate::ErrorKind::NotFound). `close` gives back
///   what is not settled, so that the next one need not wait for S7; it may be called twice.
///
/// # For implementors
/// A receipt's token is yours: an SQS receipt handle, a connection's number with a delivery tag, a shard
/// with a sequence number. Retry what your client does not, but no longer than `wait`: backing off, and telling
/// operators that a broker is away, is done above. Do not fetch ahead of what was asked for unless you
/// give it back in `close`. A source whose broker keeps nothing needs no `keep` and answers `Ok` for each.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// What this source can do; read once, honoured above the port.
    fn facts(&self) -> SourceFacts;

    /// Takes up to `max` messages, waiting up to `wait` for the first.
    async fn receive(&self, max: usize, wait: Duration) -> Result<Vec<SourceMessage>>;

    /// Keeps messages from being given out again for another `kept_for`; one result per receipt.
    async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>>;

    /// Says what became of a batch; one result per receipt. A failed one gives its receipt back.
    async fn settle(
        &self,
        settlements: Vec<(Receipt, SourceSettlement)>,
    ) -> Vec<Result<(), Unsettled>>;

    /// All of what may be stored as done, a position for each shard that still counts.
    fn checkpoints(&self) -> Vec<Checkpoint>;

    /// How much there is to do yet.
    async fn lag(&self) -> Result<Option<SourceLag>>;

    /// Ends it, and gives back what is not settled. Dropping it does so, too, but later.
    async fn close(&self);
}

/// What opens the sources of one kind, with what a consumer's settings alone do not say: credentials, named
/// connections, clients that sources share.
///
/// ```
/// use std::collections::BTreeSet;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use async_trait::async_trait;
/// use flare_core::model::{Checkpoint, Invalid, SourceSettings};
/// use flare_core::port::{
///     Receipt, Source, SourceConnector, SourceFacts, SourceLag, SourceMessage, SourceOpening, SourceSettlement,
///     Unsettled,
/// };
/// use flare_core::{Error, ErrorKind, Result};
///
/// /// Lines of a list, numbered, so that Flare can keep the place: the next line, and those that are open.
/// #[derive(Debug)]
/// struct Lines(&'static [&'static str], Mutex<(usize, BTreeSet<usize>)>);
///
/// #[async_trait]
/// impl Source for Lines {
///     fn facts(&self) -> SourceFacts {
///         SourceFacts::stream(100)
///     }
///     async fn receive(&self, max: usize, _wait: Duration) -> Result<Vec<SourceMessage>> {
///         let (next, open) = &mut *self.1.lock().unwrap();
///         let lines = *next..self.0.len().min(*next + max);
///         *next = lines.end;
///         open.extend(lines.clone());
///         let message = |at: usize| SourceMessage::new(at.to_string(), self.0[at], Receipt::new(at.to_string()));
///         Ok(lines.map(message).collect())
///     }
///     async fn keep(&self, receipts: Vec<&Receipt>) -> Vec<Result<()>> {
///         receipts.iter().map(|_| Ok(())).collect()
///     }
///     async fn settle(&self, settlements: Vec<(Receipt, SourceSettlement)>) -> Vec<Result<(), Unsettled>> {
///         let (next, open) = &mut *self.1.lock().unwrap();
///         let settle = |(receipt, to): (Receipt, SourceSettlement)| {
///             let line = receipt.token().parse().ok().filter(|line| open.contains(line));
///             let refused = |kind, receipt| Err(Unsettled::new(Error::new(kind, "settle"), receipt));
///             match (line, to) {
///                 (None, _) => return refused(ErrorKind::Lost, receipt),
///                 (_, SourceSettlement::Leave) => return refused(ErrorKind::Unsupported, receipt),
///                 (Some(line), SourceSettlement::Done) => open.retain(|other| *other != line),
///                 (Some(line), SourceSettlement::Return) => {
///                     open.retain(|other| *other < line);
///                     *next = line;
///                 }
///             }
///             Ok(())
///         };
///         settlements.into_iter().map(settle).collect()
///     }
///     fn checkpoints(&self) -> Vec<Checkpoint> {
///         let (next, open) = &*self.1.lock().unwrap();
///         vec![Checkpoint::new("lines", open.first().unwrap_or(next).to_string())]
///     }
///     async fn lag(&self) -> Result<Option<SourceLag>> {
///         let (next, open) = &*self.1.lock().unwrap();
///         Ok(Some(SourceLag::Messages((self.0.len() - next + open.len()) as u64)))
///     }
///     async fn close(&self) {}
/// }
///
/// #[derive(Debug)]
/// struct Fruit;
///
/// #[async_trait]
/// impl SourceConnector for Fruit {
///     fn kind(&self) -> &'static str {
///         "fruit"
///     }
///     fn check(&self, settings: &SourceSettings) -> Result<(), Invalid> {
///         settings.only(&["season"])
///     }
///     async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>> {
///         let place = opening.position("lines").and_then(|line| line.parse().ok()).unwrap_or(0);
///         Ok(Arc::new(Lines(&["apple", "plum"], Mutex::new((place, BTreeSet::new())))))
///     }
/// }
/// ```
#[async_trait]
pub trait SourceConnector: fmt::Debug + Send + Sync + 'static {
    /// The word consumers name it by: `sqs` in `{"sqs": {"queue": …}}`.
    fn kind(&self) -> &'static str;

    /// Whether a consumer may have these settings, judged without asking the broker.
    fn check(&self, settings: &SourceSettings) -> Result<(), Invalid>;

    /// Whether a consumer with these settings may leave what it rejects to the broker (S4), as far as that is
    /// known without asking the broker; the facts of the source that is opened decide.
    fn leaves(&self, _settings: &SourceSettings) -> bool {
        true
    }

    /// Opens a source.
    async fn open(&self, opening: SourceOpening) -> Result<Arc<dyn Source>>;
}

/// What a source is opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceOpening {
    /// Whose it is: a name for what the broker shows of its clients.
    pub consumer: ConsumerId,
    /// What the consumer says of it.
    pub settings: SourceSettings,
    /// Up to where everything is done, where Flare keeps that; of shards that are not there it is where
    /// the settings say, or the beginning of a shard that was split off one that is.
    pub checkpoints: Vec<Checkpoint>,
}

impl SourceOpening {
    /// For a consumer with these settings, from the beginning.
    pub fn new(consumer: ConsumerId, settings: SourceSettings) -> Self {
        Self { consumer, settings, checkpoints: Vec::new() }
    }

    /// The same, to go on from there.
    #[must_use]
    pub fn checkpoints(mut self, checkpoints: Vec<Checkpoint>) -> Self {
        self.checkpoints = checkpoints;
        self
    }

    /// The position of a shard, if there is one.
    pub fn position(&self, shard: &str) -> Option<&str> {
        self.checkpoints.iter().find(|place| place.shard() == shard).map(Checkpoint::position)
    }
}

/// What a source can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceFacts {
    /// The most messages that one call gives, keeps or settles.
    pub max_batch: usize,
    /// Whether messages of a group come in the order they were sent in (S9).
    pub ordered: bool,
    /// Who remembers what is done.
    pub checkpoints: CheckpointKeeper,
    /// Whether a message can be left to the broker (S4).
    pub leaves: bool,
    /// How long a message that was received is its receiver's, unless it is kept (S7).
    pub kept_for: Option<Duration>,
}

impl SourceFacts {
    /// A queue whose broker knows what is done, without order, that takes back what is left.
    pub const fn queue(max_batch: usize) -> Self {
        let (ordered, leaves, kept_for) = (false, true, None);
        Self { max_batch, ordered, checkpoints: CheckpointKeeper::Broker, leaves, kept_for }
    }

    /// A stream that is read from a position on, in order, and can be read again.
    pub const fn stream(max_batch: usize) -> Self {
        let (ordered, leaves, kept_for) = (true, false, None);
        Self { max_batch, ordered, checkpoints: CheckpointKeeper::Flare, leaves, kept_for }
    }
}

/// Who remembers which messages of a source are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointKeeper {
    /// The broker, message by message.
    Broker,
    /// Flare, as positions in the repository, fenced by the owner's epoch. Such a source can be read again.
    Flare,
}

/// A message that was received.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceMessage {
    /// What the broker calls it: operators find it there by that.
    pub id: String,
    /// What it says.
    pub body: Bytes,
    /// When the broker got it, if it says so.
    pub sent_at: Option<Timestamp>,
    /// What settles it.
    pub receipt: Receipt,
}

impl SourceMessage {
    /// A message as a source hands it out.
    pub fn new(id: impl Into<String>, body: impl Into<Bytes>, receipt: Receipt) -> Self {
        Self { id: id.into(), body: body.into(), sent_at: None, receipt }
    }

    /// The same, with when the broker got it.
    #[must_use]
    pub fn sent_at(mut self, at: Timestamp) -> Self {
        self.sent_at = Some(at);
        self
    }
}

/// What became of a message of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceSettlement {
    /// What it says is stored, here or as a reject: never again.
    Done,
    /// It is no document; the broker's own rule for what is refused decides.
    Leave,
    /// It was not looked at: give it out again, now.
    Return,
}

/// How far behind a consumer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLag {
    /// So many messages are not settled.
    Messages(u64),
    /// The oldest that is not settled is so old.
    Behind(Duration),
}
