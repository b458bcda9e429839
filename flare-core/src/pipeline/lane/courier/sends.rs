//! Takes rows whose turn has come; gives each a request, as far as the client's limits, its state
//! and everybody's places allow.

use std::sync::Arc;

use futures::FutureExt;

use super::{Courier, Ready};
use crate::model::{Decision, Present, RowEffect, Target, Timestamp, decide};
use crate::pipeline::judge::Attempt;
use crate::pipeline::lane::pace::Pace;
use crate::pipeline::lane::place::{Held, Place};
use crate::pipeline::lane::sender::send;
use crate::pipeline::lane::settler::Unstored;
use crate::port::RowUpdate;

impl Courier {
    /// When the client may be asked again, if it asked to be left alone or is probed.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.ledger.health().probe_at().max(Some(self.lane.hold.end()))
    }

    pub(super) fn set_pace(&mut self) {
        let options = self.lane.subscription.spec.delivery();
        let lanes = options.lanes();
        let same = |rate| self.pace.as_ref().is_some_and(|pace| pace.is_of(rate, lanes));
        match options.rate() {
            Some(rate) if same(rate) => {}
            rate => self.pace = rate.map(|rate| Pace::new(rate, lanes)),
        }
    }

    pub(super) fn concurrency(&self) -> usize {
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

    pub(super) fn begin_sends(&mut self) {
        loop {
            let free = self.concurrency().saturating_sub(self.sending.len());
            let wanted = free.min(self.ready.len());
            let stored = self.unstored.len() <= self.room();
            if wanted == 0 || !stored {
                let reads = self.shelved && (self.look || self.loading.is_some());
                match &mut self.held {
                    // Its turn came when what was read had grown old: it is not lost by reading anew.
                    Some(held) if free > 0 && stored && reads => held.keep(),
                    // Places that are not needed any more are for others.
                    _ => self.held = None,
                }
                return;
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

    pub(super) fn take_place(&mut self, wanted: usize) -> Option<Place> {
        if let Some(place) = self.held.as_mut().and_then(Held::next) {
            return Some(place);
        }
        if self.place_wait.is_some() {
            return None;
        }
        self.held = self.places.try_take(wanted);
        if self.held.is_none() {
            self.place_wait = Some(self.places.take(wanted).boxed());
        }
        self.held.as_mut().and_then(Held::next)
    }

    /// Decides about one row, and sends what is to be told.
    pub(super) fn deal_with(&mut self, ready: Ready, place: Place) {
        let Ready { row, document, content, .. } = ready;
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
        let task = self.sending.spawn(send(&self.lane, &document, action, place, content));
        self.attempts.insert(task.id(), (attempt, Arc::clone(&self.lane.subscription)));
    }
}
