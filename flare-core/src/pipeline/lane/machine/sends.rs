//! Which rows are told now: as far as the client's limits, its state and the permits of all allow.

use std::sync::Arc;

use super::groups::{Kin, NextGroup};
use super::{Command, Machine, ToldDocument};
use crate::model::{Document, FilterVerdict, Present, Row, RowEffect, Telling, Timestamp, Version};
use crate::pipeline::judge::Attempt;
use crate::pipeline::lane::settler::Unstored;
use crate::port::RowUpdate;

impl<C> Machine<C> {
    /// When the client may be asked again, if it asked to be left alone or is probed.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.record.health().probe_at().max(Some(self.limits.held_until()))
    }

    pub(super) fn concurrency(&self) -> usize {
        if self.record.health().is_probing() {
            return 1;
        }
        let options = self.subscription.spec.delivery();
        let all = options.concurrency().unwrap_or(self.figures.concurrency);
        // Each lane has its share, and none more than that.
        let (lanes, shard) = (u32::from(options.lanes()), u32::from(self.figures.lane.shard));
        let share = all / lanes + u32::from(shard < all % lanes);
        share.max(1) as usize
    }

    pub(super) fn begin_sends(&mut self, now: Timestamp) {
        loop {
            let free = self.free_requests();
            let stored = self.storing.waiting() <= self.room();
            let next = match free {
                0 => NextGroup::Nothing,
                _ if !stored => NextGroup::Nothing,
                _ => self.next_group(now),
            };
            if let NextGroup::Gathers(until) = next {
                self.groups.set_gathering(Some(until));
                self.return_permits();
                return;
            }
            let NextGroup::Send(kin, count) = next else {
                let reads = self.reading.is_shelved() && self.reading.is_outstanding();
                if !self.permits.is_empty() && free > 0 && stored && reads {
                    // Its turn came when what was read had grown old: it is not lost by reading anew.
                    self.commands.push(Command::KeepPermits);
                } else {
                    // Permits that are not needed any more are for others.
                    self.return_permits();
                }
                return;
            };
            let paced = self.limits.next(now);
            if paced.is_some() {
                self.limits.wait_until(paced);
                self.return_permits();
                return;
            }
            if self.permits.is_empty() {
                if self.permits.ask() {
                    let wanted = free.min(self.ready.len().div_ceil(count));
                    self.commands.push(Command::AskPermits(wanted));
                }
                return;
            }
            self.send(kin, count, now);
        }
    }

    /// Decides about rows that go together, and sends what is to be told of them.
    fn send(&mut self, kin: Kin, count: usize, now: Timestamp) {
        let probe = self.record.health().is_probing();
        let (mut told, mut attempts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for ready in self.take_group(kin, count) {
            let (row, document) = (ready.row, ready.document);
            let Some(telling) = self.telling(&row, &document, ready.verdict) else {
                self.settle_silently(row, document.version);
                continue;
            };
            attempts.push(Attempt { row, telling, stored_at: document.updated_at, probe });
            told.push(ToldDocument { document, telling, counted: ready.counted });
        }
        if told.is_empty() {
            return;
        }
        self.permits.take();
        self.limits.sent(now);
        self.record.touch();
        self.groups.sent(attempts.len());
        let subscription = Arc::clone(&self.subscription);
        let number = self.requests.begin(attempts, Arc::clone(&subscription));
        self.commands.push(Command::Send { number, subscription, told });
    }

    /// What is to be told of a row.
    pub(super) fn telling(
        &self,
        row: &Row,
        document: &Document,
        verdict: FilterVerdict,
    ) -> Option<Telling> {
        Telling::of(row, document, &self.figures.takeover, verdict)
    }

    /// Settles a row of which nothing is to be told.
    pub(super) fn settle_silently(&mut self, row: Row, version: Version) {
        self.groups.forget(&row.key.url);
        let effect = RowEffect::Settle { version, present: Present::No, not_before: None };
        let update = RowUpdate { key: row.key, round: row.round, effect };
        self.storing.push(Unstored { update, event: None });
    }

    pub(super) fn return_permits(&mut self) {
        if self.permits.give_back() {
            self.commands.push(Command::ReturnPermits);
        }
    }
}
