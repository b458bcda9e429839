//! Takes rows that are due; gives the courier what it sends next, as much as it can send soon.

use std::collections::hash_map::Entry;

use futures::FutureExt;
use tracing::warn;

use super::{BEHIND, Courier, FRESH, Ready};
use crate::error::Result;
use crate::model::{DocumentUrl, Timestamp, Version};
use crate::pipeline::lane::loader::{Load, load};
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

    /// Reads again what has waited too long, and of it a few times what was sent in that time.
    pub(super) fn refresh(&mut self) {
        let sent = self.loaded.saturating_sub(self.ready.len());
        self.reach = (sent * 4).max(LEAST);
        self.put_back();
    }

    pub(super) fn begin_load(&mut self) {
        let window = self.window();
        let enough = self.ready.len() * 2 > window || self.unstored.len() > self.room();
        if !self.look || self.loading.is_some() || enough {
            return;
        }
        self.look = false;
        self.stored_meanwhile.clear();
        self.pulse.works(self.lane.context.now());
        self.loading = Some(load(self.lane.clone(), self.busy.clone(), window).boxed());
    }

    pub(super) fn take_load(&mut self, loaded: Result<Load>) {
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
        self.look |= load.more;
        for (url, wanted) in load.passed_over {
            self.pass_over(url, wanted);
        }
        if let Some(due) = load.next_due {
            self.look_by(self.lane.term.local_time(due));
        }
        if load.behind {
            self.look_by(now + BEHIND);
        }
        for (row, document) in load.due {
            if let Entry::Vacant(entry) = self.busy.entry(row.key.url.clone()) {
                entry.insert(None);
                self.ready.push_back(Ready { row, document, read_at: now });
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
