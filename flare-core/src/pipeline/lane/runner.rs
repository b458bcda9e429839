//! Works a lane: hands its machine what happens, and does what that says. Loading, sending and storing
//! overlap; each of them happens in batches as large as what piled up meanwhile.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, debug, info, info_span, warn};

use super::Lane;
use super::alarm::Alarm;
use super::content::{ContentHold, LaneContent, Reserved};
use super::handed::Handover;
use super::loader::{Busy, Load, load, size};
use super::machine::{
    AttemptReport, Command, DeadLetterIds, Figures, HandedRow, LaneEvent, LaneNews, Loaded,
    Machine, Moment, Sent,
};
use super::place::{ClientPlaces, HeldPlaces, Places};
use super::recall::{FormerLanes, recall};
use super::sender::send;
use super::settler::{Flushed, flush};
use super::suspender::{Suspended, suspend};
use crate::error::Result;
use crate::model::{Applied, LaneState};
use crate::observe;
use crate::pipeline::counters::Unsaved;
use crate::pipeline::health::ClientHealth;
use crate::pipeline::meter;
use crate::pipeline::progress::Pulse;
use crate::pipeline::stage::chain;
use crate::port::{DeliveryOutcome, FailureKind};
use crate::tools::taken;

/// Works a lane until it is told to stop or loses it, then finishes what is in flight.
pub(crate) async fn run(lane: Lane, places: Places, former: FormerLanes) {
    let span = info_span!(parent: None, observe::LANE, lane = %lane.id, epoch = %lane.term.epoch);
    let work = async {
        if let Some(health) = recall(&lane, former).await {
            LaneRunner::new(lane, &places, health).run().await;
        }
    };
    work.instrument(span).await;
}

/// How a request's task ended.
type Joined = std::result::Result<(Id, DeliveryOutcome), JoinError>;

struct LaneRunner {
    lane: Lane,
    machine: Machine<ContentHold>,
    places: ClientPlaces,
    /// What the lane may hold of documents.
    content: LaneContent,
    random: fastrand::Rng,
    /// Says whether rows can be read and stored.
    pulse: Pulse,
    /// Told when what was counted is wanted in the store.
    asked: watch::Receiver<()>,
    /// When it last knew that rows of its own had been read or stored, as a moment of the process.
    known_at: u64,
    /// Says that something counted is not stored, while that is so.
    unsaved: Option<Unsaved>,
    /// Requests under way; by which numbers the machine knows them, and of how many documents they tell.
    sending: JoinSet<DeliveryOutcome>,
    numbers: HashMap<Id, (u64, usize)>,
    held: Option<HeldPlaces>,
    asking: Option<BoxFuture<'static, Option<HeldPlaces>>>,
    loading: Option<BoxFuture<'static, Result<Load>>>,
    storing: Option<BoxFuture<'static, Flushed>>,
    noting: Option<BoxFuture<'static, Result<Applied>>>,
    suspending: Option<BoxFuture<'static, Result<Suspended>>>,
    alarm: Alarm,
}

impl LaneRunner {
    fn new(lane: Lane, places: &Places, health: ClientHealth) -> Self {
        let context = &lane.context;
        let (tenure, subscription) = (lane.term.tenure, Arc::clone(&lane.subscription));
        let machine =
            Machine::new(Figures::of(context), lane.id, tenure, subscription, health, lane.moved);
        Self {
            machine,
            places: places.of(lane.id.subscription),
            content: context.content.lane(),
            random: fastrand::Rng::with_seed(context.random().to_bits()),
            pulse: context.pulse("lane"),
            asked: context.counters.asked(),
            known_at: 0,
            unsaved: None,
            sending: JoinSet::new(),
            numbers: HashMap::new(),
            held: None,
            asking: None,
            loading: None,
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
    fn take(&mut self, event: LaneEvent<ContentHold>) {
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
    async fn next(&mut self) -> LaneEvent<ContentHold> {
        self.alarm.set(self.machine.wakes_at(), &self.lane.context.store_clock);
        let (begins, counted) = (!self.machine.is_ending(), self.machine.may_be_asked());
        tokio::select! {
            biased;
            flushed = taken(&mut self.storing) => self.stored(flushed),
            sent = self.sending.join_next_with_id(), if !self.sending.is_empty() => self.sent(sent).await,
            loaded = taken(&mut self.loading) => self.loaded(loaded),
            held = taken(&mut self.asking) => {
                let count = held.as_ref().map(HeldPlaces::count);
                self.held = held;
                LaneEvent::Places(count)
            }
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
    fn obey(&mut self, command: Command<ContentHold>) -> Option<LaneEvent<ContentHold>> {
        match command {
            Command::Load { window, least, busy, subscription } => {
                self.lane.subscription = subscription;
                return self.load(window, least, busy);
            }
            Command::StopLoading => self.loading = None,
            Command::AskPlaces(wanted) => {
                self.held = self.places.try_take(wanted);
                if let Some(held) = &self.held {
                    return Some(LaneEvent::Places(Some(held.count())));
                }
                self.asking = Some(self.places.take(wanted).boxed());
            }
            Command::ReturnPlaces => self.held = None,
            Command::KeepPlaces => self.held.iter_mut().for_each(HeldPlaces::keep),
            Command::StopAsking => self.asking = None,
            Command::StopSuspending => self.suspending = None,
            Command::Send { number, subscription, told } => {
                let Some(place) = self.held.as_mut().and_then(HeldPlaces::next) else {
                    debug_assert!(false, "a request without a place");
                    return None;
                };
                let count = told.len();
                let request = send(&self.lane, &subscription, told, place);
                self.numbers.insert(self.sending.spawn(request).id(), (number, count));
            }
            Command::Report(report) => tell(&report),
            Command::Hold(until) => self.lane.hold.until(until),
            Command::Store(batch) => {
                self.pulse.works();
                let context = Arc::clone(&self.lane.context);
                self.storing = Some(flush(context, Arc::clone(&self.lane.groups), batch).boxed());
            }
            Command::Note(state) => self.note(*state),
            Command::Suspend { subscription, reason, failing_since } => {
                let lane = self.lane.clone();
                self.suspending = Some(suspend(lane, subscription, reason, failing_since).boxed());
            }
            Command::Say(news) => say(&news),
        }
        None
    }

    fn load(&mut self, window: usize, least: usize, busy: Busy) -> Option<LaneEvent<ContentHold>> {
        let room: Reserved = match self.content.reserve(window, self.places.is_slow()) {
            Some(room) if room.documents >= least => room,
            room => return Some(LaneEvent::NoRoom { at_all: room.is_none() }),
        };
        self.pulse.works();
        self.loading = Some(load(self.lane.clone(), busy, room).boxed());
        None
    }

    /// Rows that were written just now. They are as good as read, unless something of the lane's own came
    /// between: what it stored meanwhile is perhaps not in them.
    fn handed(&mut self) -> LaneEvent<ContentHold> {
        let given = self.lane.handed.take();
        let newer = given.iter().all(|handover| handover.moment > self.known_at);
        if !newer || !self.machine.takes_handed() {
            return LaneEvent::Woken;
        }
        let slow = self.places.is_slow();
        let sizes = || given.iter().flat_map(|it| &it.rows).map(|(_, document)| size(document));
        let room = self.content.reserve(sizes().count(), slow);
        if !room.is_some_and(|room| room.fits(sizes())) {
            return LaneEvent::Woken;
        }
        sizes().max().into_iter().for_each(|largest| self.content.learn(largest));
        let rows = given.into_iter().flat_map(|Handover { at, rows, .. }| {
            rows.into_iter().map(move |(row, document)| (row, document, at))
        });
        let counted = rows.map(|(row, document, read_at)| {
            let hold = self.content.hold(size(&document), slow);
            HandedRow { row, document, read_at, hold }
        });
        LaneEvent::Handed(counted.collect())
    }

    fn loaded(&mut self, loaded: Result<Load>) -> LaneEvent<ContentHold> {
        self.known_at = self.lane.context.near.moment();
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                warn!(error = %chain(&error), "could not load rows, will retry");
                return LaneEvent::LoadFailed;
            }
        };
        if self.machine.can_store() {
            self.pulse.rests();
        }
        if let Some(largest) = load.largest {
            self.content.learn(largest);
        }
        let slow = self.places.is_slow();
        let counted = load.due.into_iter().map(|(row, document, verdict)| {
            let hold = self.content.hold(size(&document), slow);
            (row, document, verdict, hold)
        });
        LaneEvent::Loaded(Loaded {
            due: counted.collect(),
            mode: load.mode,
            filter: load.filter,
            next_due: load.next_due,
            more: load.more,
            passed_over: load.passed_over,
            behind: load.behind,
            reread: load.reread,
        })
    }

    /// Whatever else is finished by now is judged, and stored, together with it; on a busy machine a
    /// turn for the others finishes some more.
    async fn sent(&mut self, first: Option<Joined>) -> LaneEvent<ContentHold> {
        let mut ended: Vec<Sent> = first.into_iter().filter_map(|it| self.ended(it)).collect();
        tokio::task::yield_now().await;
        while let Some(next) = self.sending.try_join_next_with_id() {
            ended.extend(self.ended(next));
        }
        LaneEvent::Sent(ended)
    }

    fn ended(&mut self, joined: Joined) -> Option<Sent> {
        let (id, outcome) = joined.unwrap_or_else(|error| {
            // A transport that panics may have sent the request.
            let message = format!("the transport panicked: {error}");
            (error.id(), DeliveryOutcome::failed(FailureKind::Broken, message, true))
        });
        let (number, count) = self.numbers.remove(&id)?;
        let context = &self.lane.context;
        let letter = || context.ids.next(context.now()).into();
        let others = (1..count).map(|_| letter()).collect();
        let dead_letters = DeadLetterIds { first: letter(), others };
        Some(Sent { number, outcome, random: self.random.f64(), dead_letters })
    }

    fn stored(&mut self, flushed: Flushed) -> LaneEvent<ContentHold> {
        self.known_at = self.lane.context.near.moment();
        match &flushed.error {
            Some(error) => warn!(error = %chain(error), "could not store outcomes, will retry"),
            None if self.machine.can_load() => self.pulse.rests(),
            None => {}
        }
        LaneEvent::Stored(flushed)
    }

    fn note(&mut self, state: LaneState) {
        let groups = Arc::clone(&self.lane.groups);
        let store = async move {
            let stored = groups.lanes.store(vec![state]).await;
            stored.into_iter().next().unwrap_or(Ok(Applied::Done))
        };
        self.noting = Some(store.boxed());
    }
}

fn noted_as(noted: Result<Applied>) -> LaneEvent<ContentHold> {
    match noted {
        Ok(applied) => LaneEvent::Noted(applied),
        Err(error) => {
            warn!(error = %chain(&error), "could not store the lane's state");
            LaneEvent::NoteFailed
        }
    }
}

fn suspended_as(suspended: Result<Suspended>) -> LaneEvent<ContentHold> {
    match suspended {
        Ok(suspended) => LaneEvent::Suspended(suspended),
        Err(error) => {
            warn!(error = %chain(&error), "could not suspend, will retry");
            LaneEvent::SuspendFailed
        }
    }
}

fn tell(report: &AttemptReport) {
    let AttemptReport { attempt, judgement, latency, took } = report;
    debug!(
        document = %attempt.row.key.url,
        version = %attempt.telling.version,
        verdict = ?judgement.verdict,
        error = judgement.error.as_deref(),
        duration = ?took,
        "attempt ended"
    );
    meter::attempted(judgement, *latency);
}

fn say(news: &LaneNews) {
    match news {
        LaneNews::Down { failures, error } => warn!(
            error,
            failures, "the client is down: it is tried by one request at a time until it answers"
        ),
        LaneNews::Back => info!("the client is back"),
        LaneNews::Fenced => warn!("a later owner works this lane"),
        LaneNews::UnknownIds(count) => {
            debug!(count, "the client named notifications that it was not told of");
            meter::named_unknown(*count);
        }
    }
}
