//! What is to be done for a lane.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Document, LaneState, Subscription, Telling, Timestamp};
use crate::pipeline::judge::{Attempt, Judgement};
use crate::pipeline::lane::loader::Busy;
use crate::pipeline::lane::settler::Unstored;

/// Something that is to be done for a lane.
#[derive(Debug)]
pub(in crate::pipeline::lane) enum Command<H> {
    /// Read as many rows as there is room for, but for those being worked on.
    Load {
        /// At most so many.
        window: usize,
        /// Not for fewer than so many.
        least: usize,
        busy: Busy,
        /// The settings the lane works under.
        subscription: Arc<Subscription>,
    },
    /// Do without what is being read.
    StopLoading,
    /// Ask for places of so many requests.
    AskPlaces(usize),
    /// Give back the places of requests that are not made.
    ReturnPlaces,
    /// Keep them for requests that are made soon, without counting them as young.
    KeepPlaces,
    /// Ask for none any more.
    StopAsking,
    /// Make a request, in one of the places.
    Send {
        /// What its end is told by.
        number: u64,
        subscription: Arc<Subscription>,
        /// What it tells: of one document, or of several where the client wants that.
        told: Vec<ToldDocument<H>>,
    },
    /// Tell whoever counts and watches what came of one.
    Report(Box<AttemptReport>),
    /// Have all lanes of the subscription leave the client alone until then.
    Hold(Timestamp),
    /// Store what came of requests.
    Store(Vec<Unstored>),
    /// Store the lane's state.
    Note(Box<LaneState>),
    /// Do without the suspension that is being stored.
    StopSuspending,
    /// Suspend the subscription.
    Suspend {
        subscription: Arc<Subscription>,
        reason: String,
        /// Only if no other lane of the subscription got through since then.
        failing_since: Option<Timestamp>,
    },
    /// Say something in the log.
    Say(LaneNews),
}

/// A document, and what its client is told of it.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct ToldDocument<H> {
    pub(in crate::pipeline::lane) document: Document,
    pub(in crate::pipeline::lane) telling: Telling,
    /// Counts it until the request has ended.
    pub(in crate::pipeline::lane) hold: H,
}

/// What came of a request.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct AttemptReport {
    pub(in crate::pipeline::lane) attempt: Attempt,
    pub(in crate::pipeline::lane) judgement: Judgement,
    /// How long after the version was stored.
    pub(in crate::pipeline::lane) latency: Duration,
    /// How long the request took.
    pub(in crate::pipeline::lane) took: Duration,
}

/// What the log should have.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::pipeline::lane) enum LaneNews {
    /// The client only fails: it is probed from now on.
    Down { failures: u32, error: String },
    /// It answers again.
    Back,
    /// A later owner works this lane.
    Fenced,
    /// The client named so many notifications that it was not told of.
    UnknownIds(usize),
}
