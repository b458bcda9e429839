//! Takes rows that are due; gives the courier what it sends next, as much as it can send soon.

use std::collections::hash_map::Entry;

use futures::FutureExt;
use tracing::warn;

use super::{BEHIND, Courier, FRESH, Ready};
use crate::error::Result;
use crate::model::{DocumentUrl, Timestamp, Version};
use crate::pipeline::lane::loader::{Load, load, size};
use crate::pipeline::stage::{chain, pause_after};

/// The least and the most that a lane reads at a time.
const LEAST: usize = 16;
const MOST: usize = 512;

impl Courier {
    /// What may be loaded or unstored at a time: enough to go on sending meanwhile.
    pub(super) fn room(&self) -> usize {
        if self.ledger.health().is_probing() {
            return 1;
        }
        (self.concurrency() * 4).clamp(LEAST, MOST)
    }

    /// What is loaded at a time: what is not sent while it is fresh would only be read again.
    fn window(&self) -> usize {
        let window = self.room().min(self.reach);
        self.pace.as_ref().map_or(window, |pace| window.min(pace.within(FRESH)))
    }

    /// When what waits is too old to be sent.
    pub(super) fn grows_old_at(&self) -> Option<Timestamp> {
        self.ready.front().map(|next| next.read_at + FRESH)
    }

    /// Lets go of what has waited too long: it is read again rather than sent outdated, and of it a
    /// few times what was sent in that time. All that waits is about as old.
    pub(super) fn drop_old(&mut self) {
        if self.grows_old_at().is_some_and(|at| at <= self.lane.context.now()) {
            let sent = self.loaded.saturating_sub(self.ready.len());
            self.reach = (sent * 4).max(LEAST);
            self.put_back();
            self.shelved = true;
        }
    }

    /// Whether something that was read now could not be sent at once. When that ends there is a wake-up:
    /// an answer, a place, or the time of the next request that the client's rate allows.
    fn is_blocked(&mut self) -> bool {
        let now = self.lane.context.now();
        if let Some(next) = self.pace.as_ref().map(|pace| pace.next(now))
            && next > now
        {
            self.look_by(next);
            return true;
        }
        let waits = self.held.is_none() && self.place_wait.is_some();
        waits || self.sending.len() >= self.concurrency()
    }

    pub(super) fn begin_load(&mut self) {
        let window = self.window();
        let enough = self.ready.len() * 2 > window || self.unstored.len() > self.room();
        if !self.look || self.loading.is_some() || enough {
            return;
        }
        if self.shelved && self.is_blocked() {
            return;
        }
        let Some(room) = self.content.reserve(window, self.places.is_slow()) else {
            // Something of ours is under way; else others may have made room by then.
            self.look_by(self.lane.context.now() + FRESH);
            return;
        };
        if self.ready.len() * 2 > self.ready.len() + room.documents {
            return;
        }
        self.look = false;
        self.stored_meanwhile.clear();
        self.pulse.works();
        self.loading = Some(load(self.lane.clone(), self.busy.clone(), room).boxed());
    }

    pub(super) fn take_load(&mut self, loaded: Result<Load>) {
        let now = self.lane.context.now();
        self.shelved = false;
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
            self.pulse.rests();
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
        self.look |= load.more;
        for (url, wanted) in load.passed_over {
            self.pass_over(url, wanted);
        }
        if let Some(due) = load.next_due {
            self.look_by(due);
        }
        if load.behind {
            self.look_by(now + BEHIND);
        }
        if let Some(largest) = load.largest {
            self.content.learn(largest);
        }
        let slow = self.places.is_slow();
        for (row, document) in load.due {
            if let Entry::Vacant(entry) = self.busy.entry(row.key.url.clone()) {
                entry.insert(None);
                let content = self.content.hold(size(&document), slow);
                self.ready.push_back(Ready { row, document, read_at: now, content });
            } else {
                // It became busy while it was loaded.
                self.pass_over(row.key.url, row.wanted);
            }
        }
        self.loaded = self.ready.len();
        self.reach = self.reach.saturating_add(self.reach / 8);
    }

    /// Leaves a document that is being worked on to a look after that, if it is going to want one.
    fn pass_over(&mut self, url: DocumentUrl, wanted: Version) {
        match self.busy.get_mut(&url) {
            Some(newest) => *newest = (*newest).max(Some(wanted)),
            // Stored while we loaded: nobody else would look again.
            None => {
                let settled = self.stored_meanwhile.get(&url).copied().flatten();
                self.look |= settled < Some(wanted);
            }
        }
    }

    /// Gives rows that wait back, to be loaded again.
    pub(super) fn put_back(&mut self) {
        for ready in self.ready.drain(..) {
            self.busy.remove(&ready.row.key.url);
        }
        self.look = true;
    }

    /// Looks again when the next derivation is due, unless something comes before.
    pub(super) fn postpone(&mut self) {
        let context = &self.lane.context;
        self.look_at = context.now() + context.jittered(self.look_every);
        self.look_every = (self.look_every * 2).min(context.settings.rederive_every);
    }

    pub(super) fn look_by(&mut self, at: Timestamp) {
        self.look_at = self.look_at.min(at);
    }
}
