//! Takes the rows of one lane that are due; gives each client the newest version and stores what
//! came of it, fenced by the owner's epoch. One request in flight per document; waits for no
//! other client.

mod alarm;
mod content;
mod former_lanes;
mod group;
mod handed;
mod held_permits;
mod hold;
mod loader;
mod machine;
mod orphans;
mod pace;
mod permit;
mod pool;
mod reads;
mod reports;
mod request_tasks;
mod restored;
mod runner;
mod sender;
mod settler;
mod sharing;
mod suspender;

use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::context::Context;
use super::stop::Stop;
use crate::model::{LaneId, Resource, Subscription};
use crate::ownership::Term;

pub(crate) use content::{ContentBudget, ContentPart, CountedContent, Reserved};
pub(crate) use former_lanes::FormerLanes;
pub(crate) use group::Groups;
pub(crate) use handed::{HandedRows, Handover};
pub(crate) use hold::Hold;
pub(crate) use permit::SendLimit;
pub(crate) use restored::Restored;
pub(crate) use runner::run;

/// What one lane works with.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) context: Arc<Context>,
    pub(crate) id: LaneId,
    pub(crate) slot: u32,
    pub(crate) term: Term,
    /// Stores what the lanes of the term have to store, theirs together.
    pub(crate) groups: Arc<Groups>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) subscription: Arc<Subscription>,
    /// Newer settings of the subscription, as they become known.
    pub(crate) updates: watch::Receiver<Arc<Subscription>>,
    /// Until when the client wants to be left alone; all lanes of the subscription share it.
    pub(crate) hold: Arc<Hold>,
    /// When its queue was made again, to be noted.
    pub(crate) restored: Arc<Restored>,
    /// Told when there may be something to do, newer settings or a wish to stop: one thing to
    /// wait for instead of three.
    pub(crate) wake: Arc<Notify>,
    /// Rows that the spread which wrote them handed to it.
    pub(crate) handed: Arc<HandedRows>,
    /// Whether to finish what is in flight and end.
    pub(crate) stop: Stop,
    /// Its documents were other lanes', or another slot's, until now: wake-ups may still be on their
    /// way there.
    pub(crate) moved: bool,
}

impl Lane {
    /// Whether it is certainly still ours to work.
    fn is_trusted(&self) -> bool {
        self.term.is_trusted(self.slot, &*self.context.clock)
    }
}
