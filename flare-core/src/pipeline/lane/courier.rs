//! Takes a lane; gives its clients what they miss, for as long as the lane is this runtime's.
//! Loading, sending and storing overlap; each of them happens in batches as large as what piled
//! up meanwhile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, debug, info_span, warn};

use super::Lane;
use super::alarm::Alarm;
use super::ledger::Ledger;
use super::loader::{Load, load};
use super::pace::Pace;
use super::place::{Held, Place, Places};
use super::sender::send;
use super::settler::{Flushed, Unstored, flush};
use super::suspender::{Suspended, Suspension};
use crate::error::Result;
use crate::model::{
    Applied, Decision, Document, DocumentUrl, LaneState, Present, Row, RowEffect, Subscription,
    SubscriptionStatus, Target, Timestamp, Verdict, decide,
};
use crate::observe;
use crate::pipeline::context::Context;
use crate::pipeline::health::Health;
use crate::pipeline::judge::{Attempt, Circumstances, Judgement, Wish, judge};
use crate::pipeline::meter;
use crate::pipeline::progress::Pulse;
use crate::pipeline::stage::{chain, pause_after};
use crate::port::{DeliveryOutcome, FailureKind, RowUpdate};

/// How long a document that was read may wait for its turn before it is read again.
const FRESH: Duration = Duration::from_millis(500);
/// Wait before looking again for a document our own store does not show yet.
const BEHIND: Duration = Duration::from_millis(200);

/// Works a lane until it is told to stop or loses it, then finishes what is in flight.
pub(crate) async fn run(lane: Lane, places: Places) {
    let span =
        info_span!(parent: None, observe::LANE, lane = %lane.id, epoch = %lane.term.tenure.epoch);
    let work = async {
        if let Some(ledger) = recall(&lane).await {
            Courier::new(lane, places, ledger).run().await;
        }
    };
    work.instrument(span).await;
}

/// A row whose turn has come.
struct Ready {
    row: Row,
    document: Document,
    read_at: Timestamp,
}

struct Courier {
    lane: Lane,
    places: Places,
    /// Rows whose turn has come.
    ready: VecDeque<Ready>,
    /// How the client is, and what was counted.
    ledger: Ledger,
    /// The client's rate, if it has one.
    pace: Option<Pace>,
    /// When the next request may go, if the rate does not allow it now.
    paced_until: Option<Timestamp>,
    /// The subscription is to be suspended before anything else is sent.
    suspension: Option<Suspension>,
    /// Says whether rows can be read and stored.
    pulse: Pulse,
    /// Requests under way.
    sending: JoinSet<DeliveryOutcome>,
    /// What they are about, and the settings they were made under, which they also end under.
    attempts: HashMap<Id, (Attempt, Arc<Subscription>)>,
    /// Places of the next requests.
    held: Option<Held>,
    place_wait: Option<BoxFuture<'static, Option<Held>>>,
    /// Whether nothing was in flight when that wait began.
    waits_idle: bool,
    /// What came of them, not stored yet.
    unstored: Vec<Unstored>,
    loading: Option<BoxFuture<'static, Result<Load>>>,
    storing: Option<BoxFuture<'static, Flushed>>,
    /// Documents being worked on, from load to store: none is worked on twice.
    busy: HashSet<DocumentUrl>,
    /// There may be rows that are due.
    look: bool,
    /// Rows were passed over because they were busy: look again once one is not.
    look_after_store: bool,
    /// Something was stored while rows were being loaded: what was busy then may not be now.
    stored_meanwhile: bool,
    /// Look then at the latest.
    look_at: Timestamp,
    load_failures: u32,
    store_failures: u32,
    suspend_failures: u32,
    store_again_at: Option<Timestamp>,
    /// Rings at the next of these times.
    alarm: Alarm,
    /// The lane is lost or ends: nothing new is begun.
    ending: bool,
}

/// How a request's task ended.
type Joined = std::result::Result<(Id, DeliveryOutcome), JoinError>;

/// What woke the courier.
enum Woken {
    Wake,
    Timer,
    Places(Option<Held>),
    Loaded(Result<Load>),
    Sent(Option<Joined>),
    Stored(Flushed),
    Noted(Result<Applied>),
    Suspended(Result<Suspended>),
}

impl Courier {
    fn new(lane: Lane, places: Places, ledger: Ledger) -> Self {
        let look_at = lane.context.now();
        let pulse = lane.context.pulse("lane");
        Self {
            lane,
            places,
            ready: VecDeque::new(),
            ledger,
            pace: None,
            paced_until: None,
            suspension: None,
            pulse,
            sending: JoinSet::new(),
            attempts: HashMap::new(),
            held: None,
            place_wait: None,
            waits_idle: false,
            unstored: Vec::new(),
            loading: None,
            storing: None,
            busy: HashSet::new(),
            look: true,
            look_after_store: false,
            stored_meanwhile: false,
            look_at,
            load_failures: 0,
            store_failures: 0,
            suspend_failures: 0,
            store_again_at: None,
            alarm: Alarm::default(),
            ending: false,
        }
    }

    async fn run(mut self) {
        self.postpone();
        self.set_pace();
        loop {
            self.begin();
            if self.ending && self.is_idle() && self.ledger.is_settled() {
                return;
            }
            match self.wait().await {
                // Newer settings and a wish to stop are seen by the next beginning.
                Woken::Wake => self.look = true,
                Woken::Timer => self.ring(),
                Woken::Places(held) => {
                    self.place_wait = None;
                    self.held = held;
                }
                Woken::Loaded(loaded) => {
                    self.loading = None;
                    self.take_load(loaded);
                }
                Woken::Sent(sent) => {
                    self.take_outcome(sent);
                    // Whatever else is finished by now is stored together with it; on a busy
                    // machine a turn for the others finishes some more.
                    tokio::task::yield_now().await;
                    while let Some(sent) = self.sending.try_join_next_with_id() {
                        self.take_outcome(Some(sent));
                    }
                }
                Woken::Stored(flushed) => {
                    self.storing = None;
                    self.take_flushed(flushed);
                }
                Woken::Noted(stored) => {
                    if self.ledger.take(stored, self.ending) {
                        self.fenced();
                    }
                }
                Woken::Suspended(suspended) => self.take_suspended(suspended),
            }
        }
    }

    /// Whether nothing is under way whose outcome would be lost.
    fn is_idle(&self) -> bool {
        self.sending.is_empty() && self.storing.is_none() && self.unstored.is_empty()
    }

    async fn wait(&mut self) -> Woken {
        self.set_alarm();
        tokio::select! {
            biased;
            flushed = pending_or(&mut self.storing) => Woken::Stored(flushed),
            sent = self.sending.join_next_with_id(), if !self.sending.is_empty() => Woken::Sent(sent),
            loaded = pending_or(&mut self.loading) => Woken::Loaded(loaded),
            held = pending_or(&mut self.place_wait) => Woken::Places(held),
            stored = self.ledger.stored() => Woken::Noted(stored),
            ended = suspension_ended(&mut self.suspension) => Woken::Suspended(ended),
            () = self.lane.wake.notified(), if !self.ending => Woken::Wake,
            () = self.alarm.rings() => Woken::Timer,
        }
    }

    fn set_alarm(&mut self) {
        let begins = |at: Timestamp| !self.ending && at > self.lane.context.now();
        let suspend_at = self.suspension.as_ref().filter(|it| !it.is_running()).map(|it| it.at);
        let times = [
            self.store_again_at,
            (!self.ending).then_some(self.look_at),
            self.ledger.store_at(),
            self.paced_until.filter(|_| !self.ending),
            self.opens_at().filter(|at| begins(*at)),
            suspend_at.filter(|at| begins(*at)),
        ];
        let at = times.into_iter().flatten().min().unwrap_or(Timestamp::MAX);
        self.alarm.set(at, &self.lane.context.clock);
    }

    fn ring(&mut self) {
        let now = self.lane.context.now();
        if self.store_again_at.is_some_and(|at| at <= now) {
            self.store_again_at = None;
        }
        if self.look_at <= now {
            self.look = true;
            self.postpone();
        }
    }

    /// Looks again when the next derivation is due, unless something comes before.
    fn postpone(&mut self) {
        let context = &self.lane.context;
        self.look_at = context.now() + context.jittered(context.settings.rederive_every);
    }

    fn look_by(&mut self, at: Timestamp) {
        self.look_at = self.look_at.min(at);
    }

    /// Begins whatever can be begun.
    fn begin(&mut self) {
        self.begin_store();
        if self.lane.stop.is_requested() {
            self.end();
        }
        // While the slots are perhaps somebody else's the owner's task will tell.
        if !self.ending && self.lane.term.is_trusted(&*self.lane.context.clock) {
            self.take_update();
            self.begin_work();
        }
        let last = self.ending && self.is_idle();
        self.ledger.begin(&self.lane, self.sending.len(), last);
    }

    fn begin_work(&mut self) {
        self.paced_until = None;
        if self.ending {
            return;
        }
        if let Some(suspension) = &mut self.suspension {
            suspension.begin(&self.lane);
            return;
        }
        if self.opens_at().is_some_and(|at| at > self.lane.context.now()) {
            // Whatever was read will be outdated by then.
            if !self.ready.is_empty() {
                self.put_back();
            }
            self.held = None;
            return;
        }
        self.begin_sends();
        self.begin_load();
        // What needed no telling waits to be stored now, and nothing else would wake us.
        self.begin_store();
    }

    /// When the client may be asked again, by our clock, if it asked to be left alone or is probed.
    fn opens_at(&self) -> Option<Timestamp> {
        let at = self.ledger.health().probe_at().max(Some(self.lane.hold.end()));
        at.map(|at| self.lane.term.local_time(at))
    }

    /// Goes on under newer settings, or ends if the subscription is no longer active.
    fn take_update(&mut self) {
        let newer = self.lane.updates.borrow_and_update().clone();
        if newer.generation > self.lane.subscription.generation {
            self.adopt(newer);
        }
    }

    fn adopt(&mut self, subscription: Arc<Subscription>) {
        let lanes = |of: &Subscription| of.spec.delivery().lanes();
        // With another number of lanes each has other documents: all end before any starts.
        if subscription.status != SubscriptionStatus::Active
            || lanes(&subscription) != lanes(&self.lane.subscription)
        {
            self.end();
            return;
        }
        if subscription.resumed_at > self.lane.subscription.resumed_at {
            self.ledger.resumed(subscription.resumed_at);
        }
        self.lane.subscription = subscription;
        self.set_pace();
    }

    fn set_pace(&mut self) {
        let options = self.lane.subscription.spec.delivery();
        let lanes = options.lanes();
        let same = |rate| self.pace.as_ref().is_some_and(|pace| pace.is_of(rate, lanes));
        match options.rate() {
            Some(rate) if same(rate) => {}
            rate => self.pace = rate.map(|rate| Pace::new(rate, lanes)),
        }
    }

    fn concurrency(&self) -> usize {
        if self.ledger.health().is_probing() {
            return 1;
        }
        let options = self.lane.subscription.spec.delivery();
        let all = options.concurrency().unwrap_or(self.lane.context.settings.concurrency);
        // Each lane has its share, and none more than that.
        let (lanes, shard) = (u32::from(options.lanes()), u32::from(self.lane.id.shard));
        let share = all / lanes + u32::from(shard < all % lanes);
        share.max(1) as usize
    }

    /// What may be loaded or unstored at a time: enough to go on sending meanwhile.
    fn window(&self) -> usize {
        if self.ledger.health().is_probing() {
            return 1;
        }
        let window = (self.concurrency() * 2).clamp(16, 512);
        // More than the client allows in the time would only be read again.
        self.pace.as_ref().map_or(window, |pace| window.min(pace.within(FRESH)))
    }

    fn begin_load(&mut self) {
        let window = self.window();
        let enough = self.ready.len() * 2 > window || self.unstored.len() > window;
        if !self.look || self.loading.is_some() || enough {
            return;
        }
        self.look = false;
        self.look_after_store = false;
        self.stored_meanwhile = false;
        self.pulse.works(self.lane.context.now());
        self.loading = Some(load(self.lane.clone(), self.busy.clone(), window).boxed());
    }

    fn begin_sends(&mut self) {
        loop {
            let free = self.concurrency().saturating_sub(self.sending.len());
            let wanted = free.min(self.ready.len());
            if wanted == 0 || self.unstored.len() > self.window() {
                // Places that are not needed any more are for others.
                self.held = None;
                return;
            }
            let outdated = |next: &Ready| self.lane.context.now() - next.read_at > FRESH;
            if self.ready.front().is_some_and(outdated) {
                // Read again rather than sent outdated; all that waits is as old.
                self.put_back();
                continue;
            }
            let now = self.lane.context.now();
            if let Some(next) = self.pace.as_ref().map(|pace| pace.next(now))
                && next > now
            {
                self.paced_until = Some(next);
                self.held = None;
                return;
            }
            let Some(place) = self.take_place(wanted) else { return };
            if let Some(ready) = self.ready.pop_front() {
                self.deal_with(ready, place);
            }
        }
    }

    fn take_place(&mut self, wanted: usize) -> Option<Place> {
        if let Some(place) = self.held.as_mut().and_then(Held::next) {
            return Some(place);
        }
        let idle = self.sending.is_empty();
        if self.place_wait.is_some() && idle == self.waits_idle {
            return None;
        }
        // In line since it was busy, perhaps behind clients that hang: idle it need not wait.
        self.place_wait = None;
        self.waits_idle = idle;
        self.held = self.places.try_take(wanted, idle);
        if self.held.is_none() {
            self.place_wait = Some(self.places.clone().take(wanted, idle).boxed());
        }
        self.held.as_mut().and_then(Held::next)
    }

    /// Gives rows that wait back, to be loaded again.
    fn put_back(&mut self) {
        for ready in self.ready.drain(..) {
            self.busy.remove(&ready.row.key.url);
        }
        self.look = true;
    }

    /// Decides about one row, and sends what is to be told.
    fn deal_with(&mut self, ready: Ready, place: Place) {
        let Ready { row, document, .. } = ready;
        let version = document.version;
        let target = if version.is_gone() { Target::Absent } else { Target::Present };
        let holding = self.lane.term.tenure.holding(row.present, row.epoch, row.since);
        let action = match decide(target, holding) {
            Decision::Send(action) => action,
            Decision::SettleSilently => {
                let effect = RowEffect::Settle { version, present: Present::No };
                let update = RowUpdate { key: row.key, effect };
                self.unstored.push(Unstored { update, event: None });
                return;
            }
        };
        let probe = self.ledger.health().is_probing();
        let stored_at = document.updated_at;
        let attempt = Attempt { row, version, stored_at, action, holding, probe };
        if let Some(pace) = &mut self.pace {
            pace.take(self.lane.context.now());
        }
        self.ledger.touch();
        let task = self.sending.spawn(send(&self.lane, &document, action, place));
        self.attempts.insert(task.id(), (attempt, Arc::clone(&self.lane.subscription)));
    }

    fn take_load(&mut self, loaded: Result<Load>) {
        let now = self.lane.context.now();
        let load = match loaded {
            Ok(load) => load,
            Err(error) => {
                self.load_failures += 1;
                warn!(error = %chain(&error), "could not load rows, will retry");
                self.look_by(now + self.lane.context.jittered(pause_after(self.load_failures)));
                return;
            }
        };
        self.load_failures = 0;
        if self.store_failures == 0 {
            self.pulse.rests(now);
        }
        match load.reread {
            Some(Some(subscription)) => self.adopt(subscription),
            Some(None) => self.end(),
            None => {}
        }
        if self.ending {
            // Paused, suspended or deleted meanwhile: what is loaded is not sent.
            return;
        }
        // A row passed over may have been stored while we loaded: nobody else would look again.
        self.look |= load.more || load.skipped && self.stored_meanwhile;
        self.look_after_store |= load.skipped;
        if let Some(due) = load.next_due {
            self.look_by(self.lane.term.local_time(due));
        }
        if load.behind {
            self.look_by(now + BEHIND);
        }
        for (row, document) in load.due {
            // A row that became busy while it was loaded is left to the next look.
            if self.busy.insert(row.key.url.clone()) {
                self.ready.push_back(Ready { row, document, read_at: now });
            } else {
                self.look_after_store = true;
            }
        }
    }

    fn take_outcome(&mut self, sent: Option<Joined>) {
        let (id, outcome) = match sent {
            Some(Ok(sent)) => sent,
            Some(Err(error)) => {
                // A transport that panics may have sent the request.
                let message = format!("the transport panicked: {error}");
                (error.id(), DeliveryOutcome::failed(FailureKind::Broken, message, true))
            }
            None => return,
        };
        let Some((attempt, subscription)) = self.attempts.remove(&id) else { return };
        let judgement = self.judge(&attempt, &outcome, &subscription);
        debug!(
            document = %attempt.row.key.url,
            version = %attempt.version,
            verdict = ?judgement.verdict,
            error = judgement.error.as_deref(),
            duration = ?outcome.duration,
            "attempt ended"
        );
        self.take_judgement(&judgement, attempt.probe, &subscription);
        let now = self.lane.term.store_time(self.lane.context.now());
        meter::attempted(&judgement, now - attempt.stored_at);
        let events = &self.lane.context.events;
        let event = events.has_listeners().then(|| judgement.event(&attempt));
        let update = RowUpdate { key: attempt.row.key, effect: judgement.effect };
        self.unstored.push(Unstored { update, event });
    }

    fn judge(
        &self,
        attempt: &Attempt,
        outcome: &DeliveryOutcome,
        subscription: &Subscription,
    ) -> Judgement {
        let Context { settings, ids, .. } = &*self.lane.context;
        let local = self.lane.context.now();
        let now = self.lane.term.store_time(local);
        let (health, held_until) = (self.ledger.health(), self.lane.hold.end());
        let options = subscription.spec.delivery();
        let ttl = options.ttl().map_or(settings.max_ttl, |ttl| ttl.min(settings.max_ttl));
        let circumstances = Circumstances {
            now,
            random: self.lane.context.random(),
            dead_letter: ids.next(local).into(),
            counts: attempt.probe || !health.is_probing(),
            ttl: (!health.is_probing() && held_until <= now).then_some(ttl),
            free_since: health
                .released_at()
                .max(self.lane.subscription.resumed_at)
                .max(Some(held_until)),
            hold_limit: settings.hold_limit,
        };
        judge(attempt, outcome, options, &circumstances)
    }

    /// What an answer means for the lane as a whole.
    fn take_judgement(
        &mut self,
        judgement: &Judgement,
        probe: bool,
        subscription: &Arc<Subscription>,
    ) {
        let now = self.lane.term.store_time(self.lane.context.now());
        let error = judgement.error.as_deref();
        self.ledger.note(judgement.sign, probe, error, now);
        // Whoever was replaced meanwhile did not speak for the client there is now.
        let current = subscription.generation == self.lane.subscription.generation;
        match judgement.wish {
            Some(Wish::Hold(until)) => {
                self.lane.hold.until(until);
                self.ledger.hold(until);
            }
            Some(Wish::Leave) if current => {
                let reason = "the client answered 410 Gone: it wants to hear no more";
                self.suspend(reason.to_owned(), None);
            }
            _ => {}
        }
        let limit = self.lane.context.settings.suspend_after;
        let failed = matches!(judgement.verdict, Verdict::Failure | Verdict::Unknown);
        if let Some(since) = self.ledger.health().failing_since()
            && failed
            && current
            && since + limit <= now
        {
            let last = error.unwrap_or_default();
            self.suspend(
                format!("every attempt since {since} failed; the last: {last}"),
                Some(since),
            );
        }
    }

    fn suspend(&mut self, reason: String, failing_since: Option<Timestamp>) {
        self.suspension.get_or_insert_with(|| Suspension::new(reason, failing_since));
        self.put_back();
        self.held = None;
    }

    fn take_suspended(&mut self, suspended: Result<Suspended>) {
        match suspended {
            Ok(suspended) => {
                self.suspension = None;
                self.suspend_failures = 0;
                match suspended {
                    Suspended::Now(subscription) => self.adopt(subscription),
                    Suspended::Removed => self.end(),
                    Suspended::NotNeeded => {}
                }
            }
            Err(error) => {
                self.suspend_failures += 1;
                let context = &self.lane.context;
                let pause = context.jittered(pause_after(self.suspend_failures));
                warn!(error = %chain(&error), ?pause, "could not suspend, will retry");
                if let Some(suspension) = &mut self.suspension {
                    suspension.at = context.now() + pause;
                }
            }
        }
    }

    fn begin_store(&mut self) {
        if self.storing.is_some() || self.unstored.is_empty() || self.store_again_at.is_some() {
            return;
        }
        self.pulse.works(self.lane.context.now());
        let batch = std::mem::take(&mut self.unstored);
        let context = Arc::clone(&self.lane.context);
        self.storing = Some(flush(context, self.lane.term.clone(), batch).boxed());
    }

    fn take_flushed(&mut self, flushed: Flushed) {
        for url in &flushed.done {
            self.busy.remove(url);
        }
        if !flushed.done.is_empty() {
            self.look |= self.look_after_store;
            self.stored_meanwhile = true;
        }
        if let Some(due) = flushed.next_due {
            self.look_by(self.lane.term.local_time(due));
        }
        if let Some(error) = flushed.error {
            self.store_failures += 1;
            let pause = self.lane.context.jittered(pause_after(self.store_failures));
            warn!(error = %chain(&error), ?pause, "could not store outcomes, will retry");
            self.store_again_at = Some(self.lane.context.now() + pause);
            self.unstored.extend(flushed.left);
        } else {
            self.store_failures = 0;
            if self.load_failures == 0 {
                self.pulse.rests(self.lane.context.now());
            }
        }
        if flushed.fenced {
            self.fenced();
        }
    }

    fn fenced(&mut self) {
        warn!("a later owner works this lane");
        self.end();
    }

    /// Begins nothing more; what is in flight is finished.
    fn end(&mut self) {
        self.ending = true;
        self.suspension = None;
        self.ready.clear();
        self.loading = None;
        self.place_wait = None;
        self.held = None;
    }
}

/// The future's answer, or for ever nothing if there is none.
async fn pending_or<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn suspension_ended(suspension: &mut Option<Suspension>) -> Result<Suspended> {
    match suspension {
        Some(suspension) => suspension.ended().await,
        None => std::future::pending().await,
    }
}

/// What is remembered of the lane; `None` if it is to end before that is known.
async fn recall(lane: &Lane) -> Option<Ledger> {
    let context = &lane.context;
    let mut failures = 0;
    while !lane.stop.is_requested() {
        match context.repository.lanes(lane.id.subscription).await {
            Ok(states) => {
                let held = states.iter().filter_map(|state| state.hold_until);
                held.for_each(|until| lane.hold.until(until));
                let own = states.into_iter().find(|state| state.lane == lane.id);
                let own = own.unwrap_or_else(|| LaneState::new(lane.id));
                return Some(Ledger::new(Health::recall(own, lane.subscription.resumed_at)));
            }
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not read the lane's state, will retry");
                tokio::select! {
                    biased;
                    () = context.sleep(context.jittered(pause_after(failures))) => {}
                    // A wish to stop, perhaps.
                    () = lane.wake.notified() => {}
                }
            }
        }
    }
    None
}
