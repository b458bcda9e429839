//! Which rows a lane reads, and how many: as much as it can send soon.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use super::{Command, HandedRow, Loaded, Machine, Moment, Ready};
use crate::model::subscription::Mode;
use crate::model::{DocumentUrl, FilterVerdict, Timestamp, Version, most_bytes};

/// How long a document that was read may wait for its turn before it is read again.
pub(super) const FRESH: Duration = Duration::from_millis(500);
/// Wait before looking again for a document our own store does not show yet.
const BEHIND: Duration = Duration::from_millis(200);
/// The least and the most that a lane reads at a time.
pub(super) const LEAST: usize = 16;
const MOST: usize = 512;

impl<C> Machine<C> {
    /// What may be loaded or unstored at a time: enough to go on sending meanwhile.
    pub(super) fn room(&self) -> usize {
        if self.record.health().is_probing() {
            return 1;
        }
        let most = self.most_at_once();
        (self.concurrency() * 4 * most).clamp(LEAST, MOST.max(2 * most))
    }

    /// What is loaded at a time: what is not sent while it is fresh would only be read again.
    fn window(&self) -> usize {
        let window = self.room().min(self.reading.sendable_fresh());
        // Two requests' worth, where one tells of many: one that fills up, and what is read meanwhile.
        let most = self.most_at_once();
        let paced = |requests: usize| requests.saturating_mul(most).max(self.least());
        self.limits.within(FRESH).map_or(window, |requests| window.min(paced(requests)))
    }

    /// The least that a lane reads at a time, if it can.
    fn least(&self) -> usize {
        match self.most_at_once() {
            1 => 1,
            most => 2 * most,
        }
    }

    /// Whether there is no need to read more.
    pub(super) fn has_enough(&self) -> bool {
        self.ready.len() * 2 > self.window() || self.storing.waiting() > self.room()
    }

    /// When what waits is too old to be sent.
    pub(super) fn grows_old_at(&self) -> Option<Timestamp> {
        self.ready.front().map(|next| next.read_at + FRESH)
    }

    /// Lets go of what has waited too long: it is read again rather than sent outdated, and of it a
    /// few times what was sent in that time. All that waits is about as old.
    pub(super) fn drop_old(&mut self, now: Timestamp) {
        if self.grows_old_at().is_none_or(|at| at > now) {
            return;
        }
        if self.groups.is_gathering() {
            // It could have been sent, and waits for more.
            self.put_back();
            return;
        }
        self.reading.shelve(self.ready.len(), self.least());
        self.put_back();
    }

    /// Whether something that was read now could not be sent at once. When that ends there is an event:
    /// an answer, a permit, or the time of the next request that the client's rate allows.
    fn is_blocked(&mut self, now: Timestamp) -> bool {
        if let Some(next) = self.limits.next(now) {
            self.reading.want_by(next);
            return true;
        }
        self.permits.are_awaited() || self.requests.len() >= self.concurrency()
    }

    pub(super) fn begin_load(&mut self, now: Timestamp) {
        let window = self.window();
        if !self.reading.may_begin() || self.has_enough() {
            return;
        }
        if self.groups.reads_at().is_some_and(|at| at > now) {
            return;
        }
        if self.reading.is_shelved() && self.is_blocked(now) {
            return;
        }
        self.reading.begin();
        let (least, busy) = (self.ready.len(), self.busy.clone());
        let subscription = Arc::clone(&self.subscription);
        self.commands.push(Command::Load { window, least, busy, subscription });
    }

    /// There is room for nothing, or for so little that it is not worth it.
    pub(super) fn no_room(&mut self, at_all: bool, moment: &Moment) {
        self.reading.stop();
        self.reading.want();
        self.groups.no_room();
        if at_all {
            // Something of ours is under way; else others may have made room by then.
            self.reading.want_by(moment.now + FRESH);
        }
    }

    pub(super) fn take_load_failure(&mut self, moment: &Moment) {
        self.reading.failed(moment);
        self.groups.unread();
    }

    pub(super) fn take_load(&mut self, load: Loaded<C>, moment: &Moment) {
        self.reading.ended();
        match load.reread {
            // The same settings put nothing back, or what is read in turns would be put back in turns.
            Some(Some(subscription)) if subscription.generation > self.subscription.generation => {
                self.adopt(subscription);
            }
            Some(None) => self.end(),
            Some(Some(_)) | None => {}
        }
        if self.ending {
            // Paused, suspended or deleted meanwhile: what is loaded is not sent.
            return;
        }
        if load.more {
            self.reading.want();
        }
        self.groups.loaded(load.more, self.gathers_for(), moment.now);
        for (url, wanted) in load.passed_over {
            self.pass_over(url, wanted);
        }
        if let Some(due) = load.next_due {
            self.reading.want_by(due);
        }
        if load.behind {
            self.reading.want_by(moment.now + BEHIND);
        }
        let spec = &self.subscription.spec;
        if spec.mode() != load.mode || spec.filter() != load.filter.as_ref() {
            // In another mode other rows are sent; another filter is asked about them again.
            if !load.due.is_empty() {
                self.reading.want();
            }
            return;
        }
        for (row, document, verdict, counted) in load.due {
            if let Entry::Vacant(entry) = self.busy.entry(row.key.url.clone()) {
                entry.insert(None);
                if self.most_at_once() > 1 && self.telling(&row, &document, verdict).is_none() {
                    // It has no part in a request that others wait for.
                    self.settle_silently(row, document.version);
                    continue;
                }
                let bytes = most_bytes(&document, &self.subscription.spec);
                let read_at = moment.now;
                self.ready.push_back(Ready { row, document, verdict, read_at, bytes, counted });
            } else {
                // It became busy while it was loaded.
                self.pass_over(row.key.url, row.wanted);
            }
        }
        self.reading.leaves(self.ready.len());
        self.reading.grow();
    }

    /// Whether rows that are handed over are of use: nothing else is known to be due, so none of them gets
    /// ahead of another; and what the client is told needs no more than the row and its document.
    pub(in crate::pipeline::lane) fn takes_handed(&self) -> bool {
        let spec = &self.subscription.spec;
        // What gathers for one request is read together.
        let single = spec.delivery().batch().is_none();
        let plain = spec.mode() == Mode::Active && spec.filter().is_none() && single;
        let nothing_else = !self.reading.is_outstanding() && !self.reading.is_shelved();
        plain && !self.ending && nothing_else
    }

    /// Takes rows as if they had just been read; whatever is not as plain is left to a look.
    pub(super) fn take_handed(&mut self, rows: Vec<HandedRow<C>>, moment: &Moment) {
        for HandedRow { row, document, read_at, counted } in rows {
            if !row.is_pending() {
                continue;
            }
            if row.due > moment.now {
                self.reading.want_by(row.due);
                continue;
            }
            // Settings that the lane does not know yet may be why.
            let newer = row.generation > self.subscription.generation;
            let old = read_at + FRESH <= moment.now;
            if newer || old || document.version != row.wanted || self.ready.len() >= self.window() {
                self.reading.want();
                continue;
            }
            match self.busy.entry(row.key.url.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(None);
                    let bytes = most_bytes(&document, &self.subscription.spec);
                    let verdict = FilterVerdict::Wants;
                    self.ready.push_back(Ready { row, document, verdict, read_at, bytes, counted });
                }
                Entry::Occupied(mut entry) => {
                    let newest = entry.get_mut();
                    *newest = (*newest).max(Some(row.wanted));
                }
            }
        }
        self.reading.leaves(self.ready.len());
    }

    /// Leaves a document that is being worked on to a look after that, if it is going to want one.
    fn pass_over(&mut self, url: DocumentUrl, wanted: Version) {
        match self.busy.get_mut(&url) {
            Some(newest) => *newest = (*newest).max(Some(wanted)),
            // Stored while we loaded: nothing else would have it read again.
            None => {
                if self.reading.left_open(&url, wanted) {
                    self.reading.want();
                    self.groups.read_now();
                }
            }
        }
    }

    /// Gives rows that wait back, to be loaded again.
    pub(super) fn put_back(&mut self) {
        for ready in self.ready.drain(..) {
            self.busy.remove(&ready.row.key.url);
        }
        self.groups.unread();
        self.reading.want();
    }
}
