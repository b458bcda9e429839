//! What a lane knows of the rows it has yet to read: whether there are any, by when it looks, and how many are
//! worth it.

use std::collections::HashMap;
use std::time::Duration;

use super::Moment;
use super::loads::LEAST;
use crate::model::{DocumentUrl, Timestamp, Version};
use crate::pipeline::stage::pause_after;

/// The first reading of its own of a lane that wake-ups may miss; the next ones come ever later.
const FIRST_READ: Duration = Duration::from_secs(1);

/// What a lane knows of the rows it has yet to read.
#[derive(Debug)]
pub(super) struct RowReading {
    /// Rows are being read.
    under_way: bool,
    /// There was no room to read anything, just now.
    no_room: bool,
    /// There may be rows that are due.
    wanted: bool,
    /// What was stored while rows were being read, which took it for busy, and how far that settled it.
    stored_meanwhile: HashMap<DocumentUrl, Option<Version>>,
    /// Rows are read then at the latest.
    by: Timestamp,
    /// And after that long again, which grows up to the longest.
    every: Duration,
    longest: Duration,
    /// What was read grew old before it could be sent: nothing is read until something can be.
    shelved: bool,
    /// What was ready after the last reading.
    ready_after: usize,
    /// What can be sent while it is fresh, as far as that is known.
    sendable_fresh: usize,
    failures: u32,
}

impl RowReading {
    /// Of a lane that looks by itself that often. `moved`: wake-ups may still be on their way to where it was.
    pub(super) fn new(longest: Duration, moved: bool) -> Self {
        Self {
            under_way: false,
            no_room: false,
            wanted: true,
            stored_meanwhile: HashMap::new(),
            by: Timestamp::EPOCH,
            every: if moved { FIRST_READ.min(longest) } else { longest },
            longest,
            shelved: false,
            ready_after: 0,
            sendable_fresh: usize::MAX,
            failures: 0,
        }
    }

    /// Whether rows can be read, as far as is known.
    pub(super) fn works(&self) -> bool {
        self.failures == 0
    }

    /// Whether there may be rows that are due.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Whether reading would begin now, if there is need of more.
    pub(super) fn may_begin(&self) -> bool {
        self.wanted && !self.under_way && !self.no_room
    }

    /// Whether nothing is read until something can be sent.
    pub(super) fn is_shelved(&self) -> bool {
        self.shelved
    }

    /// Whether rows are known that are not read, or are being read.
    pub(super) fn is_outstanding(&self) -> bool {
        self.wanted || self.under_way
    }

    /// Whether reading goes on at once where there is more to be read.
    pub(super) fn goes_on(&self, has_enough: bool) -> bool {
        self.under_way || self.wanted && !self.no_room && !has_enough
    }

    /// What is sent while it is fresh, at most.
    pub(super) fn sendable_fresh(&self) -> usize {
        self.sendable_fresh
    }

    /// Rows are read then at the latest.
    pub(super) fn wakes_at(&self) -> Timestamp {
        self.by
    }

    /// Notes that there may be rows that are due.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// Has rows read then, or sooner.
    pub(super) fn want_by(&mut self, at: Timestamp) {
        self.by = self.by.min(at);
    }

    /// Looks again when the next look of its own is due, unless something comes before.
    pub(super) fn postpone(&mut self, moment: &Moment) {
        self.by = moment.now + moment.jittered(self.every);
        self.every = (self.every * 2).min(self.longest);
    }

    /// Takes note of the time.
    pub(super) fn take_due(&mut self, moment: &Moment) {
        if self.by <= moment.now {
            self.want();
            self.postpone(moment);
        }
    }

    pub(super) fn set_no_room(&mut self, no_room: bool) {
        self.no_room = no_room;
    }

    pub(super) fn begin(&mut self) {
        (self.wanted, self.under_way) = (false, true);
        self.stored_meanwhile.clear();
    }

    /// Does without what is being read.
    pub(super) fn stop(&mut self) {
        self.under_way = false;
    }

    /// Rows were read.
    pub(super) fn ended(&mut self) {
        (self.under_way, self.shelved, self.failures) = (false, false, 0);
    }

    /// They could not be.
    pub(super) fn failed(&mut self, moment: &Moment) {
        (self.under_way, self.shelved) = (false, false);
        self.failures += 1;
        self.want_by(moment.now + moment.jittered(pause_after(self.failures)));
    }

    /// Notes what is ready after a reading, or a handover.
    pub(super) fn leaves(&mut self, ready: usize) {
        self.ready_after = ready;
    }

    /// Notes that so much of that had grown old before it could be sent: of what comes next, a few times what
    /// was sent is read, once something can be sent.
    pub(super) fn shelve(&mut self, ready: usize, least: usize) {
        let sent = self.ready_after.saturating_sub(ready);
        self.sendable_fresh = (sent * 4).max(LEAST).max(least);
        self.shelved = true;
    }

    /// Has a little more read next time.
    pub(super) fn grow(&mut self) {
        self.sendable_fresh = self.sendable_fresh.saturating_add(self.sendable_fresh / 8);
    }

    /// Notes that a document's outcome is stored, and how far that settled it.
    pub(super) fn stored(&mut self, url: DocumentUrl, settled: Option<Version>) {
        if self.under_way {
            self.stored_meanwhile.insert(url, settled);
        }
    }

    /// Whether a document that was stored while rows were read wants more than that settled.
    pub(super) fn left_open(&self, url: &DocumentUrl, wanted: Version) -> bool {
        self.stored_meanwhile.get(url).copied().flatten() < Some(wanted)
    }
}
