//! Works a lane: hands its machine what happens, and does what that says. Loading, sending and storing
//! overlap; each of them happens in batches as large as what piled up meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tracing::{Instrument, info_span, warn};

use super::alarm::Alarm;
use super::content::CountedContent;
use super::former_lanes::{FormerLanes, health_at_start};
use super::held_permits::LanePermits;
use super::loader::Load;
use super::machine::{Command, Figures, LaneEvent, Machine, Moment};
use super::permit::SendLimit;
use super::reads::LaneReads;
use super::reports::{log, report};
use super::request_tasks::RequestTasks;
use super::sender::send;
use super::settler::{Flushed, flush};
use super::suspender::{Suspended, suspend};
use super::{Groups, Lane};
use crate::error::Result;
use crate::model::{Applied, LaneState};
use crate::observe;
use crate::pipeline::counters::Unsaved;
use crate::pipeline::health::ClientHealth;
use crate::pipeline::progress::Pulse;
use crate::pipeline::stage::chain;
use crate::tools::taken;

/// An event of a lane whose documents are counted.
type HeardEvent = LaneEvent<CountedContent>;

/// Works a lane until it is told to stop or loses it, then finishes what is in flight.
pub(crate) async fn run(lane: Lane, permits: SendLimit, former: FormerLanes) {
    let span = info_span!(parent: None, observe::LANE, lane = %lane.id, epoch = %lane.term.epoch);
    let work = async {
        if let Some(health) = health_at_start(&lane, former).await {
            LaneRunner::new(lane, &permits, health).run().await;
        }
    };
    work.instrument(span).await;
}

struct LaneRunner {
    lane: Lane,
    machine: Machine<CountedContent>,
    random: fastrand::Rng,
    /// Says whether rows can be read and stored.
    pulse: Pulse,
    /// Told when what was counted is wanted in the store.
    asked: watch::Receiver<()>,
    /// Says that something counted is not stored, while that is so.
    unsaved: Option<Unsaved>,
    permits: LanePermits,
    reads: LaneReads,
    requests: RequestTasks,
    storing: Option<BoxFuture<'static, Flushed>>,
    noting: Option<BoxFuture<'static, Result<Applied>>>,
    suspending: Option<BoxFuture<'static, Result<Suspended>>>,
    alarm: Alarm,
}

impl LaneRunner {
    fn new(lane: Lane, permits: &SendLimit, health: ClientHealth) -> Self {
        let context = &lane.context;
        let figures = Figures::of(context, lane.id, lane.term.takeover);
        Self {
            machine: Machine::new(figures, Arc::clone(&lane.subscription), health, lane.moved),
            random: fastrand::Rng::with_seed(context.random().to_bits()),
            pulse: context.pulse("lane"),
            asked: context.counters.asked(),
            unsaved: None,
            permits: LanePermits::new(permits.of(lane.id.subscription)),
            reads: LaneReads::new(context.content.part()),
            requests: RequestTasks::default(),
            storing: None,
            noting: None,
            suspending: None,
            alarm: Alarm::default(),
            lane,
        }
    }

    async fn run(mut self) {
        let mut event = LaneEvent::Begun;
        loop {
            self.take(event);
            if self.machine.is_over() {
                return;
            }
            event = self.next().await;
        }
    }

    /// Hands an event to the machine and obeys, until nothing more happens at once.
    fn take(&mut self, event: HeardEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let moment = self.moment();
            for command in self.machine.on(event, &moment) {
                events.extend(self.obey(command));
            }
        }
        match (self.machine.has_unsaved(), &self.unsaved) {
            (true, None) => self.unsaved = Some(self.lane.context.counters.unsaved()),
            (false, Some(_)) => self.unsaved = None,
            _ => {}
        }
    }

    fn moment(&mut self) -> Moment {
        let context = &self.lane.context;
        Moment {
            now: context.now(),
            trusted: self.lane.is_trusted(),
            stop: self.lane.stop.is_requested(),
            held_until: self.lane.hold.end(),
            restored: self.lane.restored.take(),
            newest: Arc::clone(&self.lane.updates.borrow_and_update()),
            random: self.random.f64(),
            listened: context.events.has_listeners(),
        }
    }

    /// Waits for what happens next.
    async fn next(&mut self) -> HeardEvent {
        self.alarm.set(self.machine.wakes_at(), &self.lane.context.store_clock);
        let (begins, counted) = (!self.machine.is_ending(), self.machine.may_be_asked());
        tokio::select! {
            biased;
            flushed = taken(&mut self.storing) => self.stored(flushed),
            first = self.requests.next(), if !self.requests.is_empty() => {
                let ended = self.requests.ended(first, &self.lane.context, &mut self.random);
                LaneEvent::Sent(ended.await)
            }
            loaded = self.reads.next() => self.loaded(loaded),
            held = self.permits.next() => LaneEvent::Permits(self.permits.given(held)),
            noted = taken(&mut self.noting) => noted_as(noted),
            suspended = taken(&mut self.suspending) => suspended_as(suspended),
            () = self.lane.wake.notified(), if begins => LaneEvent::Woken,
            () = self.lane.handed.given(), if begins => self.handed(),
            // The sender is the context's, which this holds.
            _ = self.asked.changed(), if counted => LaneEvent::Asked,
            () = self.alarm.rings() => LaneEvent::Rung,
        }
    }

    /// Does as it is told; gives what that leads to at once.
    fn obey(&mut self, command: Command<CountedContent>) -> Option<HeardEvent> {
        match command {
            Command::Load { window, least, busy, subscription } => {
                self.lane.subscription = subscription;
                let slow = self.permits.is_slow();
                let refused = self.reads.begin(&self.lane, (window, least), busy, slow);
                if refused.is_none() {
                    self.pulse.works();
                }
                return refused;
            }
            Command::StopLoading => self.reads.stop(),
            Command::AskPermits(wanted) => {
                return self.permits.ask(wanted).map(|count| LaneEvent::Permits(Some(count)));
            }
            Command::ReturnPermits => self.permits.give_back(),
            Command::KeepPermits => self.permits.keep(),
            Command::StopAsking => self.permits.stop_asking(),
            Command::StopSuspending => self.suspending = None,
            Command::Send { number, subscription, told } => {
                let Some(permit) = self.permits.use_one() else {
                    debug_assert!(false, "a request without a permit");
                    return None;
                };
                let documents = told.len();
                let request = send(&self.lane, &subscription, told, permit);
                self.requests.begin(number, documents, request);
            }
            Command::Report(of) => report(&of),
            Command::Hold(until) => self.lane.hold.until(until),
            Command::Store(batch) => {
                self.pulse.works();
                let context = Arc::clone(&self.lane.context);
                self.storing = Some(flush(context, Arc::clone(&self.lane.groups), batch).boxed());
            }
            Command::Note(state) => {
                self.noting = Some(note(Arc::clone(&self.lane.groups), *state).boxed());
            }
            Command::Suspend { subscription, reason, failing_since } => {
                let lane = self.lane.clone();
                self.suspending = Some(suspend(lane, subscription, reason, failing_since).boxed());
            }
            Command::Log(notice) => log(&notice),
        }
        None
    }

    fn handed(&mut self) -> HeardEvent {
        let given = self.lane.handed.take();
        let slow = self.permits.is_slow();
        let taken = self.machine.takes_handed().then(|| self.reads.handed(given, slow));
        taken.flatten().map_or(LaneEvent::Woken, LaneEvent::Handed)
    }

    fn loaded(&mut self, loaded: Result<Load>) -> HeardEvent {
        self.reads.knows(self.lane.context.near.moment());
        if loaded.is_ok() && self.machine.can_store() {
            self.pulse.rests();
        }
        self.reads.ended(loaded, self.permits.is_slow())
    }

    fn stored(&mut self, flushed: Flushed) -> HeardEvent {
        self.reads.knows(self.lane.context.near.moment());
        match &flushed.error {
            Some(error) => warn!(error = %chain(error), "could not store outcomes, will retry"),
            None if self.machine.can_load() => self.pulse.rests(),
            None => {}
        }
        LaneEvent::Stored(flushed)
    }
}

/// Stores a lane's state, together with others of the term.
async fn note(groups: Arc<Groups>, state: LaneState) -> Result<Applied> {
    let stored = groups.lanes.store(vec![state]).await;
    stored.into_iter().next().unwrap_or(Ok(Applied::Done))
}

fn noted_as(noted: Result<Applied>) -> HeardEvent {
    match noted {
        Ok(applied) => LaneEvent::Noted(applied),
        Err(error) => {
            warn!(error = %chain(&error), "could not store the lane's state");
            LaneEvent::NoteFailed
        }
    }
}

fn suspended_as(suspended: Result<Suspended>) -> HeardEvent {
    match suspended {
        Ok(suspended) => LaneEvent::Suspended(suspended),
        Err(error) => {
            warn!(error = %chain(&error), "could not suspend, will retry");
            LaneEvent::SuspendFailed
        }
    }
}
