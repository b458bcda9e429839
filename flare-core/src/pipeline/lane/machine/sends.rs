//! Which rows are told now: as far as the client's limits, its state and everybody's places allow.

use std::sync::Arc;

use super::{Command, Machine};
use crate::model::{Present, RowEffect, Telling, Timestamp};
use crate::pipeline::judge::Attempt;
use crate::pipeline::lane::pace::Pace;
use crate::pipeline::lane::settler::Unstored;
use crate::port::RowUpdate;

impl<H> Machine<H> {
    /// When the client may be asked again, if it asked to be left alone or is probed.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.ledger.health().probe_at().max(Some(self.held_until))
    }

    pub(super) fn set_pace(&mut self) {
        let options = self.subscription.spec.delivery();
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
        let options = self.subscription.spec.delivery();
        let all = options.concurrency().unwrap_or(self.figures.concurrency);
        // Each lane has its share, and none more than that.
        let (lanes, shard) = (u32::from(options.lanes()), u32::from(self.lane.shard));
        let share = all / lanes + u32::from(shard < all % lanes);
        share.max(1) as usize
    }

    pub(super) fn begin_sends(&mut self, now: Timestamp) {
        loop {
            let free = self.concurrency().saturating_sub(self.sending.len());
            let wanted = free.min(self.ready.len());
            let stored = self.unstored.len() <= self.room();
            if wanted == 0 || !stored {
                let reads = self.shelved && (self.look || self.loading);
                if self.places > 0 && free > 0 && stored && reads {
                    // Its turn came when what was read had grown old: it is not lost by reading anew.
                    self.commands.push(Command::KeepPlaces);
                } else {
                    // Places that are not needed any more are for others.
                    self.return_places();
                }
                return;
            }
            if let Some(next) = self.pace.as_ref().map(|pace| pace.next(now))
                && next > now
            {
                self.paced_until = Some(next);
                self.return_places();
                return;
            }
            if self.places == 0 {
                if !self.asks_places {
                    self.asks_places = true;
                    self.commands.push(Command::AskPlaces(wanted));
                }
                return;
            }
            self.send_next(now);
        }
    }

    /// Decides about one row, and sends what is to be told.
    fn send_next(&mut self, now: Timestamp) {
        let Some(ready) = self.ready.pop_front() else { return };
        let (row, document) = (ready.row, ready.document);
        let Some(telling) = Telling::of(&row, &document, &self.tenure, ready.verdict) else {
            let (version, present) = (document.version, Present::No);
            let effect = RowEffect::Settle { version, present, not_before: None };
            let update = RowUpdate { key: row.key, round: row.round, effect };
            self.unstored.push(Unstored { update, event: None });
            return;
        };
        self.places -= 1;
        if let Some(pace) = &mut self.pace {
            pace.take(now);
        }
        self.ledger.touch();
        let (stored_at, probe) = (document.updated_at, self.ledger.health().is_probing());
        let attempt = Attempt { row, telling, stored_at, probe };
        let number = self.next_number;
        self.next_number += 1;
        let subscription = Arc::clone(&self.subscription);
        self.sending.insert(number, (attempt, Arc::clone(&subscription)));
        let hold = ready.hold;
        self.commands.push(Command::Send { number, subscription, document, telling, hold });
    }

    pub(super) fn return_places(&mut self) {
        if std::mem::take(&mut self.places) > 0 {
            self.commands.push(Command::ReturnPlaces);
        }
    }
}
