//! Which rows go in one request together, for a client that wants many in one: as many as there are, as
//! they gather, and fewer where a request of more was refused as a whole.
//!
//! - Rows wait for others until there are enough, until their bytes are, or until the first of them has
//!   waited for as long as the client's `wait`. No memory for more of them ends the waiting too.
//! - What was refused as a whole is told again in requests of at most half as many, until each of them is
//!   taken or alone: then what is said of the request is said of that one. So every row is in few such
//!   requests, however many others come between, and a bad one does not hold the rest.
//! - What failed alone goes with others of its kind only.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::{Machine, Ready};
use crate::model::subscription::BatchOptions;
use crate::model::{DocumentUrl, Timestamp};
use crate::pipeline::compose::AROUND;
use crate::pipeline::judge::Attempt;

/// Rows in flight at a time, of a client that is told of many in one request.
const MOST_TOLD: usize = 2_000;
/// Rows that are remembered to have been in a request that was refused as a whole. There are never as many
/// as this in flight, and they are told before any that came later: what is beyond was settled elsewhere.
const MOST_SUSPECTS: usize = 4 * MOST_TOLD;
/// How often more rows are looked for within the time that they gather in.
const LOOKS: u32 = 8;

/// What is known of the requests that rows go in.
#[derive(Debug)]
pub(super) struct RowGroups {
    /// With how many at most a row is told, itself included, since a request of more was refused.
    suspects: HashMap<DocumentUrl, usize>,
    /// Rows in flight.
    told: usize,
    /// What is ready waits for more, and until when, if not only for what is being read.
    gathers: Option<Option<Timestamp>>,
    /// There is certainly more to be read.
    more: bool,
    /// While it gathers nothing is read before then.
    read_from: Timestamp,
    /// There was no memory for more, when it was last looked for.
    crowded: bool,
}

/// What is told next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextGroup {
    /// There is nothing.
    Nothing,
    /// What there is waits for more.
    Gathers(Option<Timestamp>),
    /// So many rows, in one request.
    Send(Kin, usize),
}

/// What rows have in common that may go in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kin {
    /// How many there may be.
    most: usize,
    /// They failed before.
    tried: bool,
}

impl Kin {
    /// A row that has a request of its own.
    const ALONE: Self = Self { most: 1, tried: false };
}

/// Rows of a kin, as they are counted.
#[derive(Debug, Clone, Copy)]
struct Gathered {
    kin: Kin,
    count: usize,
    bytes: usize,
    /// Since when the first of them has been due.
    since: Timestamp,
}

impl RowGroups {
    pub(super) fn new() -> Self {
        Self {
            suspects: HashMap::new(),
            told: 0,
            gathers: None,
            more: false,
            read_from: Timestamp::EPOCH,
            crowded: false,
        }
    }

    /// Notes a request of so many rows.
    pub(super) fn sent(&mut self, rows: usize) {
        self.told += rows;
    }

    /// Notes the end of one: whether it was refused as a whole.
    pub(super) fn ended(&mut self, attempts: &[Attempt], undivided: bool) {
        self.told -= attempts.len();
        if undivided && self.suspects.len() + attempts.len() > MOST_SUSPECTS {
            self.suspects.clear();
        }
        for attempt in attempts {
            let url = &attempt.row.key.url;
            if undivided {
                self.suspects.insert(url.clone(), attempts.len() / 2);
            } else {
                self.suspects.remove(url);
            }
        }
    }

    /// Notes that nothing is to be told of a document.
    pub(super) fn forget(&mut self, url: &DocumentUrl) {
        self.suspects.remove(url);
    }

    /// Forgets what was said to requests of another kind.
    pub(super) fn begin_anew(&mut self) {
        self.suspects.clear();
    }

    /// Notes that rows were read at `now`, and whether there are more.
    pub(super) fn loaded(&mut self, more: bool, wait: Option<Duration>, now: Timestamp) {
        (self.more, self.crowded) = (more, false);
        let pause = wait.filter(|_| !more).unwrap_or_default() / LOOKS;
        self.read_from = now + pause;
    }

    /// Notes that there is something to be read that gathers already.
    pub(super) fn read_now(&mut self) {
        self.read_from = Timestamp::EPOCH;
    }

    /// Notes that what there is to be read is unknown.
    pub(super) fn unread(&mut self) {
        (self.more, self.read_from) = (false, Timestamp::EPOCH);
    }

    /// Notes that there is no memory for more.
    pub(super) fn no_room(&mut self) {
        self.unread();
        self.crowded = true;
    }

    /// Notes what the rows that are ready do.
    pub(super) fn set_gathering(&mut self, gathers: Option<Option<Timestamp>>) {
        self.gathers = gathers;
    }

    /// Whether they wait for more.
    pub(super) fn is_gathering(&self) -> bool {
        self.gathers.is_some()
    }

    /// Until when, if they wait for time to pass.
    pub(super) fn gathers_until(&self) -> Option<Timestamp> {
        self.gathers.flatten()
    }

    /// Before when nothing more is read, if that is so.
    pub(super) fn reads_at(&self) -> Option<Timestamp> {
        self.gathers.map(|_| self.read_from)
    }
}

impl<C> Machine<C> {
    fn batch(&self) -> Option<BatchOptions> {
        self.subscription.spec.delivery().batch()
    }

    /// The most rows of one request.
    pub(super) fn most_at_once(&self) -> usize {
        self.batch().map_or(1, |batch| batch.max() as usize)
    }

    /// How long rows gather.
    pub(super) fn gathers_for(&self) -> Option<Duration> {
        self.batch().and_then(|batch| batch.waits())
    }

    /// How many more requests may be made now.
    pub(super) fn free_requests(&self) -> usize {
        let told = self.groups.told;
        if self.batch().is_some() && told > 0 && told + self.most_at_once() > MOST_TOLD {
            return 0;
        }
        self.concurrency().saturating_sub(self.requests.len())
    }

    /// What is told next, of the rows that are ready.
    pub(super) fn next_group(&self, now: Timestamp) -> NextGroup {
        let Some(batch) = self.batch() else {
            let next = self.ready.front().map(|_| NextGroup::Send(Kin::ALONE, 1));
            return next.unwrap_or(NextGroup::Nothing);
        };
        let most_bytes = usize::try_from(batch.bytes()).unwrap_or(usize::MAX);
        let mut groups: Vec<Gathered> = Vec::new();
        for ready in &self.ready {
            let kin = self.kin(ready, batch);
            let bytes = ready.bytes + 1;
            match groups.iter_mut().find(|group| group.kin == kin) {
                Some(group) if group.bytes + bytes > most_bytes => {
                    return NextGroup::Send(kin, group.count);
                }
                Some(group) => {
                    group.count += 1;
                    group.bytes += bytes;
                    group.since = group.since.min(ready.row.due);
                }
                None => {
                    let (count, bytes, since) = (1, AROUND + bytes, ready.row.due);
                    groups.push(Gathered { kin, count, bytes, since });
                }
            }
            let full = groups.iter().find(|group| group.kin == kin && group.count >= kin.most);
            if let Some(Gathered { kin, count, .. }) = full {
                return NextGroup::Send(*kin, *count);
            }
        }
        self.waiting(&groups, batch, now)
    }

    /// What is told next, if no group of rows is full.
    fn waiting(&self, groups: &[Gathered], batch: BatchOptions, now: Timestamp) -> NextGroup {
        if groups.is_empty() {
            return NextGroup::Nothing;
        }
        if self.reads_more() {
            return NextGroup::Gathers(None);
        }
        let wait = batch.waits().unwrap_or_default();
        let ready = |group: &&Gathered| self.groups.crowded || group.since + wait <= now;
        match groups.iter().find(ready) {
            Some(group) => NextGroup::Send(group.kin, group.count),
            None => NextGroup::Gathers(groups.iter().map(|group| group.since + wait).min()),
        }
    }

    /// Whether more rows are read at once.
    fn reads_more(&self) -> bool {
        self.groups.more && self.reading.goes_on(self.has_enough())
    }

    /// What a row has in common with those that it may be told with.
    fn kin(&self, ready: &Ready<C>, batch: BatchOptions) -> Kin {
        if self.record.health().is_probing() {
            return Kin::ALONE;
        }
        let row = &ready.row;
        let suspected = self.groups.suspects.get(&row.key.url).copied();
        let most = suspected.unwrap_or(batch.max() as usize);
        let tried = row.attempts > 0 && row.attempted == Some(ready.document.version);
        Kin { most, tried }
    }

    /// Takes the first rows of a kin out of those that are ready.
    pub(super) fn take_group(&mut self, kin: Kin, count: usize) -> Vec<Ready<C>> {
        let Some(batch) = self.batch() else {
            return self.ready.pop_front().into_iter().collect();
        };
        let mut taken = Vec::with_capacity(count);
        let mut rest = VecDeque::with_capacity(self.ready.len());
        for ready in std::mem::take(&mut self.ready) {
            if taken.len() < count && self.kin(&ready, batch) == kin {
                taken.push(ready);
            } else {
                rest.push_back(ready);
            }
        }
        self.ready = rest;
        taken
    }
}
