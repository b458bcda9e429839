//! A lane, without everything that takes time: an event and the moment it happens at go in, commands come
//! out. No await, no clock, no log, no randomness; the runner (`lane/runner.rs`) obeys.
//!
//! - What it knows, each with rules of its own: `reading` (rows to be read), `groups` (which of them go
//!   together), `limits` (when the client may be asked), `requests`, `storing` (outcomes), `suspending`, and
//!   `record` (how the client is).
//! - What it does with that: `loads`: which rows are worked next; `sends`: which may be told now; `outcomes`:
//!   what came of it, and what that means for the lane.
//! - Every turn takes the event first, and then begins whatever can be begun.

mod commands;
mod events;
mod groups;
mod limits;
mod loads;
mod moment;
mod outcomes;
mod reading;
mod record;
mod requests;
mod sends;
mod storing;
mod suspending;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use super::alarm::next_after;
use super::loader::Busy;
use crate::model::{Document, FilterVerdict, Row, Subscription, SubscriptionStatus, Timestamp};
use crate::pipeline::health::ClientHealth;

pub(super) use self::commands::{AttemptReport, Command, LaneNotice, RequestTimes, ToldDocument};
pub(super) use self::events::{DeadLetterIds, HandedRow, LaneEvent, Loaded, Sent};
use self::groups::RowGroups;
use self::limits::{ClientLimits, HeldPermits};
pub(super) use self::moment::{Figures, Moment};
use self::reading::RowReading;
use self::record::LaneRecord;
use self::requests::Requests;
use self::storing::Storing;
use self::suspending::{Suspending, Suspension};

/// A row whose turn has come.
#[derive(Debug)]
struct Ready<C> {
    row: Row,
    document: Document,
    /// What the subscription's filter says of it.
    verdict: FilterVerdict,
    read_at: Timestamp,
    /// What it takes in a request with others, at most; counted for a client that wants that.
    bytes: usize,
    /// Counts the document while it waits and is sent.
    counted: C,
}

/// A lane at work. `C` counts a document's bytes for as long as it lives, and means nothing here.
#[derive(Debug)]
pub(super) struct Machine<C> {
    figures: Figures,
    subscription: Arc<Subscription>,
    /// How the client is, and what was counted.
    record: LaneRecord,
    /// What is known of rows that are yet to be read.
    reading: RowReading,
    /// Rows whose turn has come.
    ready: VecDeque<Ready<C>>,
    /// Documents being worked on, from load to store: none is worked on twice. One that was seen
    /// to want more than what is then settled is looked at again.
    busy: Busy,
    /// How rows go into requests.
    groups: RowGroups,
    /// When the client may be asked, and with what permits.
    limits: ClientLimits,
    permits: HeldPermits,
    requests: Requests,
    storing: Storing,
    suspending: Suspending,
    /// When the lane last began what it could: whatever was due by then is under way.
    begun_at: Timestamp,
    /// The lane is lost or ends: nothing new is begun.
    ending: bool,
    commands: Vec<Command<C>>,
}

impl<C> Machine<C> {
    /// A lane that begins. `moved`: wake-ups may still be on their way to where it was before.
    pub(super) fn new(
        figures: Figures,
        subscription: Arc<Subscription>,
        health: ClientHealth,
        moved: bool,
    ) -> Self {
        Self {
            record: LaneRecord::new(health),
            reading: RowReading::new(figures.rederive_every, moved),
            ready: VecDeque::new(),
            busy: Busy::new(),
            groups: RowGroups::new(),
            limits: ClientLimits::new(subscription.spec.delivery()),
            permits: HeldPermits::default(),
            requests: Requests::default(),
            storing: Storing::new(),
            suspending: Suspending::default(),
            begun_at: Timestamp::EPOCH,
            ending: false,
            commands: Vec::new(),
            figures,
            subscription,
        }
    }

    /// Takes an event, and begins what can be begun then; gives what is to be done.
    pub(super) fn on(&mut self, event: LaneEvent<C>, moment: &Moment) -> Vec<Command<C>> {
        self.limits.hold(moment.held_until);
        self.reading.set_no_room(matches!(event, LaneEvent::NoRoom { .. }));
        match event {
            LaneEvent::Begun => self.reading.postpone(moment),
            // Newer settings and a wish to stop are seen by what begins now.
            LaneEvent::Woken => self.reading.want(),
            // So is what is due.
            LaneEvent::Rung => {}
            LaneEvent::Asked => self.record.hurry(),
            LaneEvent::Permits(permits) => self.permits.given(permits),
            LaneEvent::NoRoom { at_all } => self.no_room(at_all, moment),
            LaneEvent::Loaded(loaded) => self.take_load(loaded, moment),
            LaneEvent::LoadFailed => self.take_load_failure(moment),
            LaneEvent::Handed(rows) => self.take_handed(rows, moment),
            LaneEvent::Sent(sent) => {
                sent.into_iter().for_each(|sent| self.take_outcome(sent, moment))
            }
            LaneEvent::Stored(flushed) => self.take_flushed(flushed, moment),
            LaneEvent::Noted(applied) => self.take_noted(applied),
            LaneEvent::NoteFailed => self.record.failed(self.ending),
            LaneEvent::Suspended(suspended) => self.take_suspended(suspended),
            LaneEvent::SuspendFailed => self.suspending.failed(moment),
        }
        self.begin(moment);
        std::mem::take(&mut self.commands)
    }

    /// Whether it has ended, and nothing is left to be stored.
    pub(super) fn is_over(&self) -> bool {
        self.ending && self.is_idle() && self.record.is_settled()
    }

    /// Whether nothing more is begun.
    pub(super) fn is_ending(&self) -> bool {
        self.ending
    }

    /// Whether rows can be read, as far as is known.
    pub(super) fn can_load(&self) -> bool {
        self.reading.works()
    }

    /// Whether outcomes can be stored, as far as is known.
    pub(super) fn can_store(&self) -> bool {
        self.storing.works()
    }

    /// Whether something was counted that is not stored.
    pub(super) fn has_unsaved(&self) -> bool {
        !self.record.is_settled()
    }

    /// Whether that waits for its turn to be.
    pub(super) fn may_be_asked(&self) -> bool {
        self.record.is_changed()
    }

    /// When it wants to be woken, if nothing happens before.
    pub(super) fn wakes_at(&self) -> Option<Timestamp> {
        let begins = !self.ending;
        let times = [
            self.storing.again_at(),
            self.store_at(),
            self.record.store_at(),
            Some(self.reading.wakes_at()).filter(|_| begins),
            self.limits.waits_until().filter(|_| begins),
            self.groups.gathers_until().filter(|_| begins),
            self.groups.reads_at().filter(|_| begins && self.reading.is_wanted()),
            self.opens_at().filter(|_| begins),
            self.grows_old_at(),
            self.suspending.at().filter(|_| begins),
        ];
        // What was due when the lane began is under way, or is not allowed now: ringing for it again
        // would only ring for ever.
        next_after(self.begun_at, times)
    }

    /// Whether nothing is under way whose outcome would be lost.
    fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.storing.is_idle()
    }

    /// Begins whatever can be begun.
    fn begin(&mut self, moment: &Moment) {
        self.begun_at = moment.now;
        self.storing.take_due(moment.now);
        self.reading.take_due(moment);
        self.begin_store(moment.now);
        if let Some(at) = moment.restored {
            self.record.queue_restored(at);
        }
        if moment.stop {
            self.end();
        }
        self.drop_old(moment.now);
        // While the slots are perhaps another node's, that node will tell.
        if !self.ending && moment.trusted {
            self.take_update(moment);
            self.begin_work(moment);
        }
        // What needed no telling, or is the last there is, waits to be stored now, and nothing else
        // would wake us.
        self.begin_store(moment.now);
        let last = self.ending && self.is_idle();
        let note = self.record.begin(moment.now, self.requests.len(), &self.figures.node, last);
        self.commands.extend(note.map(|state| Command::Note(Box::new(state))));
    }

    fn begin_work(&mut self, moment: &Moment) {
        self.limits.wait_until(None);
        self.groups.set_gathering(None);
        if self.ending {
            return;
        }
        if self.suspending.is_wanted() {
            if let Some(Suspension { reason, failing_since, .. }) =
                self.suspending.begin(moment.now)
            {
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
            self.return_permits();
            return;
        }
        self.begin_sends(moment.now);
        self.begin_load(moment.now);
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
            self.record.resumed();
        }
        self.limits.follow(subscription.spec.delivery());
        self.subscription = subscription;
    }

    fn fenced(&mut self) {
        self.commands.push(Command::Log(LaneNotice::Fenced));
        self.end();
    }

    /// Begins nothing more; what is in flight is finished.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ending, true) {
            return;
        }
        self.suspending.ended();
        self.ready.clear();
        self.reading.stop();
        self.permits.stop_asking();
        let stop = [Command::StopLoading, Command::StopAsking, Command::StopSuspending];
        self.commands.extend(stop);
        self.return_permits();
    }
}
