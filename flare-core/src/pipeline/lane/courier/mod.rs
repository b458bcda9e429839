//! Takes a lane; gives its clients what they miss, for as long as the lane is this runtime's.
//! Loading, sending and storing overlap; each of them happens in batches as large as what piled
//! up meanwhile.

mod loads;
mod outcomes;
mod sends;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, info_span, warn};

use crate::error::Result;
use crate::model::{
    Applied, Document, DocumentUrl, Row, Subscription, SubscriptionStatus, Timestamp, Version,
};
use crate::observe;
use crate::pipeline::judge::Attempt;
use crate::pipeline::lane::Lane;
use crate::pipeline::lane::alarm::{Alarm, next_after};
use crate::pipeline::lane::content::{ContentHold, LaneContent};
use crate::pipeline::lane::ledger::Ledger;
use crate::pipeline::lane::loader::{Busy, Load};
use crate::pipeline::lane::pace::Pace;
use crate::pipeline::lane::place::{ClientPlaces, Held, Places};
use crate::pipeline::lane::recall::{FormerLanes, recall};
use crate::pipeline::lane::settler::{Flushed, Unstored};
use crate::pipeline::lane::suspender::{Suspended, Suspension};
use crate::pipeline::progress::Pulse;
use crate::port::DeliveryOutcome;

/// How long a document that was read may wait for its turn before it is read again.
const FRESH: Duration = Duration::from_millis(500);
/// The first look of its own of a lane that wake-ups may miss; the next ones come ever later.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Wait before looking again for a document our own store does not show yet.
const BEHIND: Duration = Duration::from_millis(200);

/// Works a lane until it is told to stop or loses it, then finishes what is in flight.
pub(crate) async fn run(lane: Lane, places: Places, former: FormerLanes) {
    let span = info_span!(parent: None, observe::LANE, lane = %lane.id, epoch = %lane.term.epoch);
    let work = async {
        if let Some(ledger) = recall(&lane, former).await {
            Courier::new(lane, &places, ledger).run().await;
        }
    };
    work.instrument(span).await;
}

/// A row whose turn has come.
struct Ready {
    row: Row,
    document: Document,
    read_at: Timestamp,
    /// Counts the document while it waits and is sent.
    content: ContentHold,
}

struct Courier {
    lane: Lane,
    places: ClientPlaces,
    /// What it may hold of documents.
    content: LaneContent,
    /// Rows whose turn has come.
    ready: VecDeque<Ready>,
    /// How the client is, and what was counted.
    ledger: Ledger,
    /// Somebody wants to read what was counted.
    asked: watch::Receiver<()>,
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
    /// What came of them, not stored yet.
    unstored: Vec<Unstored>,
    loading: Option<BoxFuture<'static, Result<Load>>>,
    storing: Option<BoxFuture<'static, Flushed>>,
    /// No sooner is anything stored while there is more to come.
    gather_until: Timestamp,
    /// Documents being worked on, from load to store: none is worked on twice. One that was seen
    /// to want more than what is then settled is looked at again.
    busy: Busy,
    /// There may be rows that are due.
    look: bool,
    /// What was stored while rows were being loaded, which took it for busy, and how far that
    /// settled it.
    stored_meanwhile: HashMap<DocumentUrl, Option<Version>>,
    /// Look then at the latest.
    look_at: Timestamp,
    /// And after that long again.
    look_every: Duration,
    /// What was read grew old before it could be sent: nothing is read until something can be.
    shelved: bool,
    /// What was ready after the last load.
    loaded: usize,
    /// What can be sent while it is fresh, as far as that is known.
    reach: usize,
    load_failures: u32,
    store_failures: u32,
    suspend_failures: u32,
    store_again_at: Option<Timestamp>,
    /// Rings at the next of these times.
    alarm: Alarm,
    /// When the lane last began what it could: whatever was due by then is under way.
    begun_at: Timestamp,
    /// The lane is lost or ends: nothing new is begun.
    ending: bool,
}

/// How a request's task ended.
type Joined = std::result::Result<(Id, DeliveryOutcome), JoinError>;

/// What woke the courier.
enum Woken {
    Wake,
    Asked,
    Timer,
    Places(Option<Held>),
    Loaded(Result<Load>),
    Sent(Option<Joined>),
    Stored(Flushed),
    Noted(Result<Applied>),
    Suspended(Result<Suspended>),
}
impl Courier {
    fn new(lane: Lane, places: &Places, ledger: Ledger) -> Self {
        let look_at = lane.context.now();
        let pulse = lane.context.pulse("lane");
        let every = lane.context.settings.rederive_every;
        let look_every = if lane.moved { FIRST_LOOK.min(every) } else { every };
        Self {
            places: places.of(lane.id.subscription),
            content: lane.context.content.lane(),
            asked: lane.context.counters.asked(),
            lane,
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
            unstored: Vec::new(),
            loading: None,
            storing: None,
            gather_until: Timestamp::EPOCH,
            busy: Busy::new(),
            look: true,
            stored_meanwhile: HashMap::new(),
            look_at,
            look_every,
            shelved: false,
            loaded: 0,
            reach: usize::MAX,
            load_failures: 0,
            store_failures: 0,
            suspend_failures: 0,
            store_again_at: None,
            alarm: Alarm::default(),
            begun_at: Timestamp::EPOCH,
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
                // What is due now is seen by the next beginning too.
                Woken::Timer => {}
                Woken::Asked => self.ledger.hurry(),
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
                    if matches!(stored, Ok(Applied::Missing)) {
                        // Its subscription is gone.
                        self.end();
                    }
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
            // The sender is the context's, which this holds.
            _ = self.asked.changed(), if self.ledger.is_changed() => Woken::Asked,
            () = self.alarm.rings() => Woken::Timer,
        }
    }

    fn set_alarm(&mut self) {
        let begins = !self.ending;
        let suspend_at = self.suspension.as_ref().filter(|it| !it.is_running()).map(|it| it.at);
        let times = [
            self.store_again_at,
            self.store_at(),
            self.ledger.store_at(),
            Some(self.look_at).filter(|_| begins),
            self.paced_until.filter(|_| begins),
            self.opens_at().filter(|_| begins),
            self.grows_old_at(),
            suspend_at.filter(|_| begins),
        ];
        // What was due when the lane began is under way, or is not allowed now: ringing for it again
        // would only ring for ever.
        let at = next_after(self.begun_at, times);
        self.alarm.set(at.unwrap_or(Timestamp::MAX), &self.lane.context.store_clock);
    }

    /// Begins whatever can be begun.
    fn begin(&mut self) {
        self.begun_at = self.lane.context.now();
        self.take_due();
        self.begin_store();
        if let Some(at) = self.lane.restored.take() {
            self.ledger.queue_restored(at);
        }
        if self.lane.stop.is_requested() {
            self.end();
        }
        self.drop_old();
        // While the slots are perhaps somebody else's the owner's task will tell.
        if !self.ending && self.lane.is_trusted() {
            self.take_update();
            self.begin_work();
        }
        // What needed no telling, or is the last there is, waits to be stored now, and nothing else
        // would wake us.
        self.begin_store();
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
    }

    /// Takes note of what has become due.
    fn take_due(&mut self) {
        let now = self.begun_at;
        self.store_again_at.take_if(|at| *at <= now);
        if self.look_at <= now {
            self.look = true;
            self.postpone();
        }
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
            self.ledger.resumed();
        }
        self.lane.subscription = subscription;
        self.set_pace();
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
