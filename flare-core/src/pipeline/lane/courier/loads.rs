//! Takes rows that are due; gives the courier what it sends next, as much as it can send soon.

use futures::FutureExt;
use tracing::warn;

use super::{BEHIND, Courier, FRESH, Ready};
use crate::error::Result;
use crate::model::Timestamp;
use crate::pipeline::lane::loader::{Load, load};
use crate::pipeline::stage::{chain, pause_after};

impl Courier {
    /// What may be loaded or unstored at a time: enough to go on sending meanwhile.
    pub(super) fn window(&self) -> usize {
        if self.ledger.health().is_probing() {
            return 1;
        }
        let window = (self.concurrency() * 2).clamp(16, 512);
        // More than the client allows in the time would only be read again.
        self.pace.as_ref().map_or(window, |pace| window.min(pace.within(FRESH)))
    }

    pub(super) fn begin_load(&mut self) {
        let window = self.window();
        let enough = self.ready.len() * 2 > window || self.unstored.len() > window;
        if !self.look || self.loading.is_some() || enough {
            return;
        }
        self.look = false;
        self.look_after_store = false;
        self.stored_meanwhile = false;
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
        // A row passed over may have been stored while we loaded: nobody else would look again.
        self.look |= load.more || load.skipped && self.stored_meanwhile;
        self.look_after_store |= load.skipped;
        if let Some(due) = load.next_due {
            self.look_by(self.lane.term.local_time(due));
        }
        if load.behind {
            self.look_by(now + BEHIND);
        }
        for (row, document) in load.due {
            // A row that became busy while it was loaded is left to the next look.
            if self.busy.insert(row.key.url.clone()) {
                self.ready.push_back(Ready { row, document, read_at: now });
            } else {
                self.look_after_store = true;
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
        self.look_at = context.now() + context.jittered(context.settings.rederive_every);
    }

    pub(super) fn look_by(&mut self, at: Timestamp) {
        self.look_at = self.look_at.min(at);
    }
}
