//! Which rows are told now: as far as the client's limits, its state and everybody's places allow.

use std::sync::Arc;

use super::groups::{Kin, NextGroup};
use super::{Command, Machine, ToldDocument};
use crate::model::{Document, FilterVerdict, Present, Row, RowEffect, Telling, Timestamp, Version};
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
            let free = self.free_requests();
            let stored = self.unstored.len() <= self.room();
            let next = match free {
                0 => NextGroup::Nothing,
                _ if !stored => NextGroup::Nothing,
                _ => self.next_group(now),
            };
            if let NextGroup::Gathers(until) = next {
                self.groups.set_gathering(Some(until));
                self.return_places();
                return;
            }
            let NextGroup::Send(kin, count) = next else {
                let reads = self.shelved && (self.look || self.loading);
                if self.places > 0 && free > 0 && stored && reads {
                    // Its turn came when what was read had grown old: it is not lost by reading anew.
                    self.commands.push(Command::KeepPlaces);
                } else {
                    // Places that are not needed any more are for others.
                    self.return_places();
                }
                return;
            };
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
                    let wanted = free.min(self.ready.len().div_ceil(count));
                    self.commands.push(Command::AskPlaces(wanted));
                }
                return;
            }
            self.send(kin, count, now);
        }
    }

    /// Decides about rows that go together, and sends what is to be told of them.
    fn send(&mut self, kin: Kin, count: usize, now: Timestamp) {
        let probe = self.ledger.health().is_probing();
        let (mut told, mut attempts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for ready in self.take_group(kin, count) {
            let (row, document) = (ready.row, ready.document);
            let Some(telling) = self.telling(&row, &document, ready.verdict) else {
                self.settle_silently(row, document.version);
                continue;
            };
            attempts.push(Attempt { row, telling, stored_at: document.updated_at, probe });
            told.push(ToldDocument { document, telling, hold: ready.hold });
        }
        if told.is_empty() {
            return;
        }
        self.places -= 1;
        if let Some(pace) = &mut self.pace {
            pace.take(now);
        }
        self.ledger.touch();
        self.groups.sent(attempts.len());
        let number = self.next_number;
        self.next_number += 1;
        let subscription = Arc::clone(&self.subscription);
        self.sending.insert(number, (attempts, Arc::clone(&subscription)));
        self.commands.push(Command::Send { number, subscription, told });
    }

    /// What is to be told of a row.
    pub(super) fn telling(
        &self,
        row: &Row,
        document: &Document,
        verdict: FilterVerdict,
    ) -> Option<Telling> {
        Telling::of(row, document, &self.tenure, verdict)
    }

    /// Settles a row of which nothing is to be told.
    pub(super) fn settle_silently(&mut self, row: Row, version: Version) {
        self.groups.forget(&row.key.url);
        let effect = RowEffect::Settle { version, present: Present::No, not_before: None };
        let update = RowUpdate { key: row.key, round: row.round, effect };
        self.unstored.push(Unstored { update, event: None });
    }

    pub(super) fn return_places(&mut self) {
        if std::mem::take(&mut self.places) > 0 {
            self.commands.push(Command::ReturnPlaces);
        }
    }
}
