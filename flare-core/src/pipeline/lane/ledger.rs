//! Takes what a lane's requests came to; gives the lane's state to the store: at once where a
//! successor has to know, else now and then.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tracing::{info, warn};

use super::Lane;
use super::group::Groups;
use crate::error::Result;
use crate::model::{Applied, LaneState, Timestamp};
use crate::pipeline::counters::{Counters, Unsaved};
use crate::pipeline::health::{Health, Sign};
use crate::pipeline::stage::chain;

/// How long counters may lag behind.
const EVERY: Duration = Duration::from_secs(1);

/// The state of a lane, and how much of it is stored.
pub(super) struct Ledger {
    health: Health,
    counters: Arc<Counters>,
    /// It was said that the client is down, and not yet that it is back.
    down: bool,
    /// Something is not stored yet.
    changed: Option<Unsaved>,
    /// And is not to wait for its turn.
    urgent: bool,
    /// When it is stored next.
    turn: Timestamp,
    storing: Option<(BoxFuture<'static, Result<Applied>>, Unsaved)>,
}

impl Ledger {
    pub(super) fn new(health: Health, counters: Arc<Counters>) -> Self {
        let (down, turn) = (health.is_probing(), Timestamp::EPOCH);
        Self { health, counters, down, changed: None, urgent: false, turn, storing: None }
    }

    pub(super) fn health(&self) -> &Health {
        &self.health
    }

    /// Notes an answer, at `now`.
    pub(super) fn note(&mut self, sign: Sign, probe: bool, error: Option<&str>, now: Timestamp) {
        let before = self.health.is_probing();
        self.health.note(sign, probe, error, now);
        self.touch();
        // A successor goes on probing, or has no need to begin.
        self.urgent |= before != self.health.is_probing();
        if self.health.is_probing() && !self.down {
            self.down = true;
            let failures = self.health.state().consecutive_failures;
            warn!(
                error = error.unwrap_or_default(),
                failures,
                "the client is down: it is tried by one request at a time until it answers"
            );
        } else if self.down && matches!(sign, Sign::Accepted | Sign::Refused) {
            self.down = false;
            info!("the client is back");
        }
    }

    /// Notes that something is to be stored, such as that a request was begun.
    pub(super) fn touch(&mut self) {
        let counters = &self.counters;
        self.changed.get_or_insert_with(|| counters.unsaved());
    }

    /// Has what is not stored yet stored at once.
    pub(super) fn hurry(&mut self) {
        self.urgent |= self.is_changed();
    }

    /// Whether something is not stored, nor being stored.
    pub(super) fn is_changed(&self) -> bool {
        self.changed.is_some()
    }

    /// Notes that the client wants to be left alone.
    pub(super) fn hold(&mut self, until: Timestamp) {
        self.health.hold(until);
        self.touch();
        self.urgent = true;
    }

    /// Notes that the lane's queue was made again.
    pub(super) fn queue_restored(&mut self, at: Timestamp) {
        self.health.queue_restored(at);
        self.touch();
    }

    /// Notes that somebody says it is mended, whatever was noted since.
    pub(super) fn resumed(&mut self) {
        self.health.forgive();
        self.touch();
    }

    /// When the state wants to be stored; `None` if not, or if it is being stored.
    pub(super) fn store_at(&self) -> Option<Timestamp> {
        (self.is_changed() && self.storing.is_none()).then_some(match self.urgent {
            true => Timestamp::EPOCH,
            false => self.turn,
        })
    }

    /// Begins to store the state, if it is its turn or there will be no other.
    pub(super) fn begin(&mut self, lane: &Lane, in_flight: usize, last: bool) {
        let now = lane.context.now();
        if !self.store_at().is_some_and(|at| at <= now || last) {
            return;
        }
        let Some(unsaved) = self.changed.take() else { return };
        self.urgent = false;
        self.turn = now + EVERY;
        let state = self.health.stored_at(now, in_flight, lane.context.node);
        self.storing = Some((store(Arc::clone(&lane.groups), state).boxed(), unsaved));
    }

    /// Whether everything is stored.
    pub(super) fn is_settled(&self) -> bool {
        !self.is_changed() && self.storing.is_none()
    }

    /// Gives the answer of what is being stored; never, if nothing is.
    pub(super) async fn stored(&mut self) -> Result<Applied> {
        match &mut self.storing {
            Some((storing, _)) => storing.await,
            None => std::future::pending().await,
        }
    }

    /// Takes that answer; tells whether a later owner works the lane.
    pub(super) fn take(&mut self, stored: Result<Applied>, last: bool) -> bool {
        let unsaved = self.storing.take().map(|(_, unsaved)| unsaved);
        match stored {
            Ok(Applied::Fenced { .. }) => true,
            Ok(_) => false,
            Err(error) => {
                warn!(error = %chain(&error), "could not store the lane's state");
                // What ends does not wait for counters; the next owner counts on without them.
                match last {
                    true => self.changed = None,
                    false => self.changed = self.changed.take().or(unsaved),
                }
                false
            }
        }
    }
}

async fn store(groups: Arc<Groups>, state: LaneState) -> Result<Applied> {
    let stored = groups.lanes.store(vec![state]).await;
    stored.into_iter().next().unwrap_or(Ok(Applied::Done))
}
