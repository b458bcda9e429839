//! How many bytes of documents each lane may hold, and each stage that reads them beside the lanes, so that all
//! together stay within a limit however slow clients are.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::pool::Pool;
use crate::tools::lock;

/// What a document takes in memory beside its content: row, URLs, headers, the answer's excerpt.
const BESIDE: u64 = 1_024;
/// What is set aside for a first look, when it is not known how large the documents are.
const UNKNOWN: u64 = 64 << 10;

/// Bytes of documents that a runtime holds: its lanes from reading to answer, others while they look at them.
#[derive(Clone)]
pub(crate) struct ContentBudget(Arc<Mutex<Pool>>);

impl ContentBudget {
    /// A budget of `limit` bytes beside one document for each part, which is its own.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Pool::new(limit as u64))))
    }

    /// The part of one lane, or of one who reads beside them. However many there are is not bounded here.
    pub(crate) fn part(&self) -> ContentPart {
        let held = Arc::new(Mutex::new(PartBytes::default()));
        ContentPart { budget: self.clone(), held, largest: None }
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        lock(&self.0)
    }
}

impl fmt::Debug for ContentBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}

/// What one part holds.
#[derive(Debug, Default, Clone, Copy)]
struct PartBytes {
    /// Bytes that are counted in the budget.
    counted: u64,
    /// Whether it holds the document that is its own, which is not.
    own: bool,
}

/// The part of the budget of one lane, or of one who reads beside them.
pub(crate) struct ContentPart {
    budget: ContentBudget,
    held: Arc<Mutex<PartBytes>>,
    /// About how large its documents are, if it has read any: the largest of late.
    largest: Option<u64>,
}

impl ContentPart {
    /// Sets bytes aside for up to `most` documents that are about to be read; `None` if there is
    /// no room for one more. How large they are is known only then: what is set aside is a guess,
    /// and what is kept is counted as what it is.
    pub(crate) fn reserve(&self, most: usize, slow: bool) -> Option<Reserved> {
        let held = *lock(&self.held);
        let mut pool = self.budget.lock();
        let each = self.largest.unwrap_or(UNKNOWN);
        let own = !held.own;
        let others = (pool.part(held.counted, slow) / each).min(most as u64);
        let documents = (others + u64::from(own)).min(most as u64);
        if documents == 0 {
            return None;
        }
        let bytes = others * each;
        pool.take(bytes, slow);
        drop(pool);
        lock(&self.held).counted += bytes;
        let (budget, held) = (self.budget.clone(), Arc::clone(&self.held));
        let _counted = CountedContent { budget, held, counted: bytes, own: false, slow };
        let first = if self.largest.is_some() { documents as usize } else { 1 };
        Some(Reserved { documents: documents as usize, first, bytes, own, _counted })
    }

    /// Notes the largest of documents that were read together.
    pub(crate) fn learn(&mut self, largest: usize) {
        let before = self.largest.unwrap_or_default();
        self.largest = Some((largest as u64 + BESIDE).max(before - before / 8));
    }

    /// Counts a document of so many bytes for as long as what is given lives.
    pub(crate) fn count(&self, bytes: usize, slow: bool) -> CountedContent {
        let bytes = bytes as u64 + BESIDE;
        let mut held = lock(&self.held);
        let own = !std::mem::replace(&mut held.own, true);
        let counted = if own { 0 } else { bytes };
        held.counted += counted;
        drop(held);
        self.budget.lock().take(counted, slow);
        let (budget, held) = (self.budget.clone(), Arc::clone(&self.held));
        CountedContent { budget, held, counted, own, slow }
    }
}

/// What was set aside for documents to be read.
pub(crate) struct Reserved {
    /// How many may be read.
    pub(crate) documents: usize,
    /// How many of them at first: how large they are may be unknown.
    first: usize,
    /// What those may have together that are not the part's own.
    bytes: u64,
    /// Whether one of them is the part's own.
    own: bool,
    /// Counted until they are read.
    _counted: CountedContent,
}

impl Reserved {
    /// Whether documents of these sizes are no more than that.
    pub(crate) fn fits(&self, sizes: impl Iterator<Item = usize>) -> bool {
        let sizes: Vec<u64> = sizes.map(|size| size as u64 + BESIDE).collect();
        let own = sizes.iter().max().filter(|_| self.own).copied().unwrap_or_default();
        sizes.len() <= self.documents && sizes.iter().sum::<u64>() - own <= self.bytes
    }

    /// A way to read no more than that.
    pub(crate) fn reading(&self) -> ReadingRoom {
        ReadingRoom { next: self.first, left: self.bytes, own: self.own, largest: 0 }
    }
}

/// How much of what was set aside is left while documents are being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadingRoom {
    next: usize,
    left: u64,
    /// One that is read is not counted.
    own: bool,
    largest: usize,
}

impl ReadingRoom {
    /// How many documents to read next; none, if there may be no room for another.
    pub(crate) fn next(&self) -> usize {
        self.next
    }

    /// Notes how large those were that were read.
    pub(crate) fn read(&mut self, sizes: impl Iterator<Item = usize>) {
        let (mut bytes, mut largest) = (0, 0);
        for size in sizes {
            bytes += size as u64 + BESIDE;
            largest = largest.max(size);
        }
        if std::mem::take(&mut self.own) {
            bytes = bytes.saturating_sub(largest as u64 + BESIDE);
        }
        self.left = self.left.saturating_sub(bytes);
        self.largest = self.largest.max(largest);
        self.next = (self.left / (self.largest as u64 + BESIDE)) as usize;
    }

    /// The largest that was read.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }
}

/// Bytes of a part that are counted until this is dropped.
pub(crate) struct CountedContent {
    budget: ContentBudget,
    held: Arc<Mutex<PartBytes>>,
    counted: u64,
    /// It is the document that is the part's own.
    own: bool,
    /// Whether the client was slow when it was counted.
    slow: bool,
}

impl CountedContent {
    /// Counts what became of the document instead: the request that tells of it.
    pub(super) fn resize(&mut self, bytes: usize) {
        if !self.own {
            let bytes = bytes as u64 + BESIDE;
            let before = std::mem::replace(&mut self.counted, bytes);
            self.count(bytes, before);
        }
    }

    fn count(&self, more: u64, less: u64) {
        let mut pool = self.budget.lock();
        pool.take(more, self.slow);
        pool.give_back(less, self.slow);
        drop(pool);
        let mut held = lock(&self.held);
        held.counted = (held.counted + more).saturating_sub(less);
        held.own &= !(self.own && more == 0);
    }
}

impl Drop for CountedContent {
    fn drop(&mut self) {
        self.count(0, self.counted);
    }
}

impl fmt::Debug for CountedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountedContent").field("counted", &self.counted).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KIB: usize = 1 << 10;

    /// Reads documents of a size as a lane does, as many as it may; gives what counts them.
    fn read(lane: &mut ContentPart, most: usize, size: usize, slow: bool) -> Vec<CountedContent> {
        let Some(room) = lane.reserve(most, slow) else { return Vec::new() };
        let mut reading = room.reading();
        let mut count = 0;
        while reading.next() > 0 && count < room.documents {
            let next = reading.next().min(room.documents - count);
            reading.read((0..next).map(|_| size));
            count += next;
        }
        drop(room);
        lane.learn(reading.largest());
        (0..count).map(|_| lane.count(size, slow)).collect()
    }

    fn bytes(budget: &ContentBudget) -> Pool {
        *budget.lock()
    }

    #[test]
    fn whoever_does_not_know_how_large_they_are_begins_with_one() {
        let budget = ContentBudget::new(64 * KIB);
        let lane = budget.part();
        let room = lane.reserve(100, false).unwrap();
        let mut reading = room.reading();
        assert_eq!(reading.next(), 1);
        reading.read([1 << 20].into_iter());
        assert_eq!(reading.next(), 0, "there is no room for another one as large");
    }

    #[test]
    fn every_lane_has_a_document_whatever_its_size_and_whatever_others_hold() {
        let budget = ContentBudget::new(64 * KIB);
        let mut lanes: Vec<ContentPart> = (0..50).map(|_| budget.part()).collect();
        let held: Vec<_> = lanes.iter_mut().map(|lane| read(lane, 100, 1 << 20, true)).collect();
        assert!(held.iter().all(|held| held.len() == 1));
        assert_eq!(bytes(&budget), Pool::new(64 << 10), "each its own");
        let mut small = budget.part();
        assert_eq!(read(&mut small, 1, 10, false).len(), 1);
        assert!(read(&mut small, 100, 10, false).len() > 20, "and small ones find room beside");
    }

    #[test]
    fn a_document_is_counted_as_the_request_it_became() {
        let budget = ContentBudget::new(64 * KIB);
        let mut lane = budget.part();
        let mut held = read(&mut lane, 2, 10 * KIB, false);
        held.extend(read(&mut lane, 1, 10 * KIB, false));
        let before = bytes(&budget);
        held.iter_mut().for_each(|held| held.resize(100));
        assert_ne!(bytes(&budget), before);
        held.iter_mut().for_each(|held| held.resize(10 * KIB));
        assert_eq!(bytes(&budget), before);
        drop(held);
        assert_eq!(bytes(&budget), Pool::new(64 << 10));
        assert_eq!(read(&mut lane, 1, KIB, false).len(), 1, "its own is free again");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever lanes read and let go: no more than the limit beside their own, as long as
        /// documents are about as large as those before; and nothing stays counted in the end.
        #[test]
        fn what_all_hold_is_bounded(
            sizes in prop::collection::vec(1..200usize, 6),
            steps in prop::collection::vec((0..6usize, 1..64usize, any::<bool>(), any::<bool>()), 0..100),
        ) {
            let limit = 1_000 * KIB;
            let budget = ContentBudget::new(limit);
            let mut lanes: Vec<ContentPart> = sizes.iter().map(|_| budget.part()).collect();
            let mut held: Vec<Vec<CountedContent>> = sizes.iter().map(|_| Vec::new()).collect();
            for (which, most, slow, keeps) in steps {
                if keeps {
                    let read = read(&mut lanes[which], most, sizes[which] * KIB, slow);
                    prop_assert!(read.len() <= most);
                    held[which].extend(read);
                } else {
                    held[which].truncate(most / 8);
                }
                let counted = held.iter().flatten().map(|held| held.counted).sum::<u64>();
                prop_assert!(counted <= limit as u64);
                for held in &held {
                    prop_assert!(held.iter().filter(|held| held.own).count() <= 1);
                }
            }
            drop(held);
            prop_assert_eq!(bytes(&budget), Pool::new(limit as u64));
        }
    }
}
