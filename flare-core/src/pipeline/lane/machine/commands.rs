//! What is to be done for a lane.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{AttemptPhases, Document, LaneState, Subscription, Telling, Timestamp};
use crate::pipeline::judge::{Attempt, Judgement};
use crate::pipeline::lane::loader::Busy;
use crate::pipeline::lane::settler::Unstored;

/// Something that is to be done for a lane.
#[derive(Debug)]
pub(in crate::pipeline::lane) enum Command<C> {
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
    /// Ask for permits of so many requests.
    AskPermits(usize),
    /// Give back the permits of requests that are not made.
    ReturnPermits,
    /// Keep them for requests that are made soon, without counting them as young.
    KeepPermits,
    /// Ask for none any more.
    StopAsking,
    /// Make a request, with one of the permits.
    Send {
        /// What its end is told by.
        number: u64,
        subscription: Arc<Subscription>,
        /// What it tells: of one document, or of several where the client wants that.
        told: Vec<ToldDocument<C>>,
    },
    /// Tell metrics and log what came of one.
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
    /// Write it to the log.
    Log(LaneNotice),
}

/// A document, and what its client is told of it.
#[derive(Debug)]
pub(in crate::pipeline::lane) struct ToldDocument<C> {
    pub(in crate::pipeline::lane) document: Document,
    pub(in crate::pipeline::lane) telling: Telling,
    /// Counts it until the request has ended.
    pub(in crate::pipeline::lane) counted: C,
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
    /// The same with its parts, with the first of what it told.
    pub(in crate::pipeline::lane) request: Option<RequestTimes>,
}

/// How long a request took, and parts of it.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline::lane) struct RequestTimes {
    pub(in crate::pipeline::lane) took: Duration,
    pub(in crate::pipeline::lane) phases: AttemptPhases,
}

/// What the log should have.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::pipeline::lane) enum LaneNotice {
    /// The client only fails: it is probed from now on.
    Down { failures: u32, error: String },
    /// It answers again.
    Back,
    /// A later owner works this lane.
    Fenced,
    /// The client named so many notifications that it was not told of.
    UnknownIds(usize),
}
