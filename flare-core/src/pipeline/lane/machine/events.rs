//! What happens to a lane.

use std::sync::Arc;

use crate::model::subscription::Mode;
use crate::model::{
    Applied, DeadLetterId, Document, DocumentUrl, Filter, FilterVerdict, Row, Subscription,
    Timestamp, Version,
};
use crate::pipeline::lane::settler::Flushed;
use crate::pipeline::lane::suspender::Suspended;
use crate::port::DeliveryOutcome;

/// Something that happened to a lane.
#[derive(Debug)]
pub(in crate::pipeline::lane) enum LaneEvent<C> {
    /// It begins.
    Begun,
    /// There may be rows that are due, newer settings or a wish to stop.
    Woken,
    /// The time has come that it wanted to be woken at.
    Rung,
    /// What was counted is wanted in the store.
    Asked,
    /// So many of the requests that asked for a permit have one; none ever, if there is no number.
    Permits(Option<usize>),
    /// Nothing was read: there is no room, for the lane or for enough of it.
    NoRoom {
        /// Whether there is none at all.
        at_all: bool,
    },
    /// Rows were read.
    Loaded(Loaded<C>),
    /// They could not be.
    LoadFailed,
    /// Rows were handed over that were just written: those that are due, as far as they are known.
    Handed(Vec<HandedRow<C>>),
    /// Requests have ended.
    Sent(Vec<Sent>),
    /// Outcomes were stored, or not.
    Stored(Flushed),
    /// The lane's state was stored.
    Noted(Applied),
    /// It could not be.
    NoteFailed,
    /// The subscription was suspended, or need not be.
    Suspended(Suspended),
    /// It could not be.
    SuspendFailed,
}

/// Rows that were read, with the newest version of their documents.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct Loaded<C> {
    /// Those that are due; each with what the filter says of its document, and with what counts that for
    /// as long as it is held.
    pub(in crate::pipeline::lane) due: Vec<(Row, Document, FilterVerdict, C)>,
    /// The mode they were looked for in.
    pub(in crate::pipeline::lane) mode: Mode,
    /// The filter that was asked, if there is one.
    pub(in crate::pipeline::lane) filter: Option<Filter>,
    /// When the next row is due that is not yet.
    pub(in crate::pipeline::lane) next_due: Option<Timestamp>,
    /// There may be more that is due.
    pub(in crate::pipeline::lane) more: bool,
    /// Rows left out because they are being worked on, and what they want.
    pub(in crate::pipeline::lane) passed_over: Vec<(DocumentUrl, Version)>,
    /// Rows were left out because their document is not there yet.
    pub(in crate::pipeline::lane) behind: bool,
    /// The subscription as it is now, if it had to be read again; `None` inside if it is gone.
    pub(in crate::pipeline::lane) reread: Option<Option<Arc<Subscription>>>,
}

/// A row that was just written, with its document.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct HandedRow<C> {
    pub(in crate::pipeline::lane) row: Row,
    pub(in crate::pipeline::lane) document: Document,
    /// When both were read at the earliest.
    pub(in crate::pipeline::lane) read_at: Timestamp,
    /// What counts the document for as long as it is held.
    pub(in crate::pipeline::lane) counted: C,
}

/// A request that has ended.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct Sent {
    /// Which one.
    pub(in crate::pipeline::lane) number: u64,
    pub(in crate::pipeline::lane) outcome: DeliveryOutcome,
    /// From 0 up to 1, for the next attempt's jitter.
    pub(in crate::pipeline::lane) random: f64,
    /// What dead letters of what it told would be known by.
    pub(in crate::pipeline::lane) dead_letters: DeadLetterIds,
}

/// Ids for dead letters, of which there is one at least.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct DeadLetterIds {
    pub(in crate::pipeline::lane) first: DeadLetterId,
    pub(in crate::pipeline::lane) others: Vec<DeadLetterId>,
}

impl DeadLetterIds {
    /// As many as are wanted, each another one as far as they were drawn.
    pub(super) fn iter(&self) -> impl Iterator<Item = DeadLetterId> {
        let drawn = self.others.iter().copied();
        std::iter::once(self.first).chain(drawn).chain(std::iter::repeat(self.first))
    }
}
