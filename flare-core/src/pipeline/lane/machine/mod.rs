//! A lane, without everything that takes time: an event and the moment it happens at go in, commands come
//! out. No await, no clock, no log, no randomness; the runner (`lane/runner.rs`) obeys.
//!
//! - `loads`: which rows are worked next; `groups`: which of them go together; `sends`: which may be told
//!   now; `outcomes`: what came of it, and what that means for the lane; `ledger`: what is remembered of the
//!   client.
//! - Every turn takes the event first, and then begins whatever can be begun.

mod commands;
mod events;
mod groups;
mod ledger;
mod loads;
mod moment;
mod outcomes;
mod sends;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::alarm::next_after;
use super::loader::Busy;
use super::pace::Pace;
use super::settler::Unstored;
use crate::model::{
    Document, DocumentUrl, FilterVerdict, LaneId, Row, Subscription, SubscriptionStatus, Tenure,
    Timestamp, Version,
};
use crate::pipeline::health::ClientHealth;
use crate::pipeline::judge::Attempt;

pub(super) use self::commands::{AttemptReport, Command, LaneNews, ToldDocument};
pub(super) use self::events::{DeadLetterIds, HandedRow, LaneEvent, Loaded, Sent};
use self::groups::RowGroups;
use self::ledger::Ledger;
pub(super) use self::moment::{Figures, Moment};

/// The first look of its own of a lane that wake-ups may miss; the next ones come ever later.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// A row whose turn has come.
#[derive(Debug)]
struct Ready<H> {
    row: Row,
    document: Document,
    /// What the subscription's filter says of it.
    verdict: FilterVerdict,
    read_at: Timestamp,
    /// What it takes in a request with others, at most; counted for a client that wants that.
    bytes: usize,
    /// Counts the document while it waits and is sent.
    hold: H,
}

/// A suspension that has to be stored before anything else is sent.
#[derive(Debug)]
struct Suspension {
    reason: String,
    failing_since: Option<Timestamp>,
    /// Not before this time.
    at: Timestamp,
    running: bool,
}

/// A lane at work. `H` counts a document's bytes for as long as it lives, and means nothing here.
#[derive(Debug)]
pub(super) struct Machine<H> {
    figures: Figures,
    lane: LaneId,
    tenure: Tenure,
    subscription: Arc<Subscription>,
    /// Rows whose turn has come.
    ready: VecDeque<Ready<H>>,
    /// How the client is, and what was counted.
    ledger: Ledger,
    /// Until when the client wants to be left alone.
    held_until: Timestamp,
    /// The client's rate, if it has one.
    pace: Option<Pace>,
    /// When the next request may go, if the rate does not allow it now.
    paced_until: Option<Timestamp>,
    /// The subscription is to be suspended before anything else is sent.
    suspension: Option<Suspension>,
    /// Requests under way, and the settings they were made under, which they also end under.
    sending: HashMap<u64, (Vec<Attempt>, Arc<Subscription>)>,
    /// How rows go into requests.
    groups: RowGroups,
    /// The number of the next one.
    next_number: u64,
    /// Places of the next requests.
    places: usize,
    /// Whether some were asked for.
    asks_places: bool,
    /// What came of requests, not stored yet.
    unstored: Vec<Unstored>,
    loading: bool,
    /// There was no room to read anything, just now.
    no_room: bool,
    storing: bool,
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
    /// When the lane last began what it could: whatever was due by then is under way.
    begun_at: Timestamp,
    /// The lane is lost or ends: nothing new is begun.
    ending: bool,
    commands: Vec<Command<H>>,
}

impl<H> Machine<H> {
    /// A lane that begins. `moved`: wake-ups may still be on their way to where it was before.
    pub(super) fn new(
        figures: Figures,
        lane: LaneId,
        tenure: Tenure,
        subscription: Arc<Subscription>,
        health: ClientHealth,
        moved: bool,
    ) -> Self {
        let every = figures.rederive_every;
        let look_every = if moved { FIRST_LOOK.min(every) } else { every };
        let mut machine = Self {
            figures,
            lane,
            tenure,
            subscription,
            ready: VecDeque::new(),
            ledger: Ledger::new(health),
            held_until: Timestamp::from_unix_nanos(i64::MIN),
            pace: None,
            paced_until: None,
            suspension: None,
            sending: HashMap::new(),
            groups: RowGroups::new(),
            next_number: 0,
            places: 0,
            asks_places: false,
            unstored: Vec::new(),
            loading: false,
            no_room: false,
            storing: false,
            gather_until: Timestamp::EPOCH,
            busy: Busy::new(),
            look: true,
            stored_meanwhile: HashMap::new(),
            look_at: Timestamp::EPOCH,
            look_every,
            shelved: false,
            loaded: 0,
            reach: usize::MAX,
            load_failures: 0,
            store_failures: 0,
            suspend_failures: 0,
            store_again_at: None,
            begun_at: Timestamp::EPOCH,
            ending: false,
            commands: Vec::new(),
        };
        machine.set_pace();
        machine
    }

    /// Takes an event, and begins what can be begun then; gives what is to be done.
    pub(super) fn on(&mut self, event: LaneEvent<H>, moment: &Moment) -> Vec<Command<H>> {
        self.held_until = self.held_until.max(moment.held_until);
        self.no_room = matches!(event, LaneEvent::NoRoom { .. });
        match event {
            LaneEvent::Begun => self.postpone(moment),
            // Newer settings and a wish to stop are seen by what begins now.
            LaneEvent::Woken => self.look = true,
            // So is what is due.
            LaneEvent::Rung => {}
            LaneEvent::Asked => self.ledger.hurry(),
            LaneEvent::Places(places) => {
                self.asks_places = false;
                self.places = places.unwrap_or_default();
            }
            LaneEvent::NoRoom { at_all } => self.no_room(at_all, moment),
            LaneEvent::Loaded(loaded) => self.take_load(loaded, moment),
            LaneEvent::LoadFailed => self.take_load_failure(moment),
            LaneEvent::Handed(rows) => self.take_handed(rows, moment),
            LaneEvent::Sent(sent) => {
                sent.into_iter().for_each(|sent| self.take_outcome(sent, moment))
            }
            LaneEvent::Stored(flushed) => self.take_flushed(flushed, moment),
            LaneEvent::Noted(applied) => self.take_noted(applied),
            LaneEvent::NoteFailed => self.ledger.failed(self.ending),
            LaneEvent::Suspended(suspended) => self.take_suspended(suspended),
            LaneEvent::SuspendFailed => self.take_suspend_failure(moment),
        }
        self.begin(moment);
        std::mem::take(&mut self.commands)
    }

    /// Whether it has ended, and nothing is left to be stored.
    pub(super) fn is_over(&self) -> bool {
        self.ending && self.is_idle() && self.ledger.is_settled()
    }

    /// Whether nothing more is begun.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether rows can be read, as far as is known.
    pub(super) fn can_load(&self) -> bool {
        self.load_failures == 0
    }

    /// Whether outcomes can be stored, as far as is known.
    pub(super) fn can_store(&self) -> bool {
        self.store_failures == 0
    }

    /// Whether something was counted that is not stored.
    pub(super) fn has_unsaved(&self) -> bool {
        !self.ledger.is_settled()
    }

    /// Whether that waits for its turn to be.
    pub(super) fn may_be_asked(&self) -> bool {
        self.ledger.is_changed()
    }

    /// When it wants to be woken, if nothing happens before.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let begins = !self.ending;
        let suspend_at = self.suspension.as_ref().filter(|it| !it.running).map(|it| it.at);
        let times = [
            self.store_again_at,
            self.store_at(),
            self.ledger.store_at(),
            Some(self.look_at).filter(|_| begins),
            self.paced_until.filter(|_| begins),
            self.groups.gathers_until().filter(|_| begins),
            self.groups.looks_at().filter(|_| begins && self.look),
            self.opens_at().filter(|_| begins),
            self.grows_old_at(),
            suspend_at.filter(|_| begins),
        ];
        // What was due when the lane began is under way, or is not allowed now: ringing for it again
        // would only ring for ever.
        next_after(self.begun_at, times)
    }

    /// Whether nothing is under way whose outcome would be lost.
    fn is_idle(&self) -> bool {
        self.sending.is_empty() && !self.storing && self.unstored.is_empty()
    }

    /// Begins whatever can be begun.
    fn begin(&mut self, moment: &Moment) {
        self.begun_at = moment.now;
        self.take_due(moment);
        self.begin_store(moment.now);
        if let Some(at) = moment.restored {
            self.ledger.queue_restored(at);
        }
        if moment.stop {
            self.end();
        }
        self.drop_old(moment.now);
        // While the slots are perhaps another node's, whoever has them will tell.
        if !self.ending && moment.trusted {
            self.take_update(moment);
            self.begin_work(moment);
        }
        // What needed no telling, or is the last there is, waits to be stored now, and nothing else
        // would wake us.
        self.begin_store(moment.now);
        let last = self.ending && self.is_idle();
        let note = self.ledger.begin(moment.now, self.sending.len(), &self.figures.node, last);
        self.commands.extend(note.map(|state| Command::Note(Box::new(state))));
    }

    fn begin_work(&mut self, moment: &Moment) {
        self.paced_until = None;
        self.groups.set_gathering(None);
        if self.ending {
            return;
        }
        if let Some(suspension) = &mut self.suspension {
            if !suspension.running && suspension.at <= moment.now {
                suspension.running = true;
                let (reason, failing_since) = (suspension.reason.clone(), suspension.failing_since);
                let subscription = Arc::clone(&self.subscription);
                self.commands.push(Command::Suspend { subscription, reason, failing_since });
            }
            return;
        }
        if self.opens_at().is_some_and(|at| at > moment.now) {
            // Whatever was read will be outdated by then.
            if !self.ready.is_empty() {
                self.put_back();
            }
            self.return_places();
            return;
        }
        self.begin_sends(moment.now);
        self.begin_load(moment.now);
    }

    /// Takes note of what has become due.
    fn take_due(&mut self, moment: &Moment) {
        self.store_again_at.take_if(|at| *at <= moment.now);
        if self.look_at <= moment.now {
            self.look = true;
            self.postpone(moment);
        }
    }

    /// Goes on under newer settings, or ends if the subscription is no longer active.
    fn take_update(&mut self, moment: &Moment) {
        if moment.newest.generation > self.subscription.generation {
            self.adopt(Arc::clone(&moment.newest));
        }
    }

    fn adopt(&mut self, subscription: Arc<Subscription>) {
        let lanes = |of: &Subscription| of.spec.delivery().lanes();
        // With another number of lanes each has other documents: all end before any starts.
        if subscription.status != SubscriptionStatus::Active
            || lanes(&subscription) != lanes(&self.subscription)
        {
            self.end();
            return;
        }
        let (before, now) = (&self.subscription.spec, &subscription.spec);
        if now.mode() != before.mode()
            || now.filter() != before.filter()
            || now.delivery().batch().is_some()
            || before.delivery().batch().is_some()
        {
            // What was read may not be what is to be told now, nor as large.
            self.put_back();
            self.groups.begin_anew();
        }
        if subscription.resumed_at > self.subscription.resumed_at {
            self.ledger.resumed();
        }
        self.subscription = subscription;
        self.set_pace();
    }

    fn fenced(&mut self) {
        self.commands.push(Command::Say(LaneNews::Fenced));
        self.end();
    }

    /// Begins nothing more; what is in flight is finished.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ending, true) {
            return;
        }
        self.suspension = None;
        self.ready.clear();
        self.loading = false;
        self.asks_places = false;
        let stop = [Command::StopLoading, Command::StopAsking, Command::StopSuspending];
        self.commands.extend(stop);
        self.return_places();
    }
}
