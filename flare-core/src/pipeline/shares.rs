//! Takes which resources the workers of a stage are at; gives who may begin with what, and when that
//! comes back which has to wait. Plain state: no store, no clock, no queue.
//!
//! A stage has one worker more than its settings say. While the others are busy, the last one does
//! not begin with a resource that a worker is at already: so however much there is to do for a few
//! resources, the change of another one finds a worker.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::ResourceId;

/// What has to wait comes back no sooner than this, and no later than that.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(30);
/// What has to wait comes back so many times as fast as it is worked on: no worker runs out of work, and
/// little comes back too early.
const AHEAD: u32 = 2;
/// Resources remembered for their pace.
const MANY: usize = 1_024;

/// Who is at what.
#[derive(Debug)]
pub(super) struct Shares {
    /// All but the last one.
    workers: usize,
    busy: usize,
    resources: HashMap<ResourceId, Share>,
}

#[derive(Debug, Default)]
struct Share {
    workers: usize,
    /// How long all workers at it together take for a document.
    pace: Duration,
    /// When the last of what had to wait comes back, on the monotonic clock.
    back_at: Duration,
}

impl Shares {
    pub(super) fn new(workers: usize) -> Self {
        Self { workers: workers.max(1), busy: 0, resources: HashMap::new() }
    }

    /// Whether all are busy but the last one.
    pub(super) fn is_busy(&self) -> bool {
        self.busy >= self.workers
    }

    /// Whether no worker is left for the change of another resource.
    pub(super) fn is_full(&self) -> bool {
        self.busy > self.workers
    }

    /// A worker begins with resources; gives those that it may begin with.
    pub(super) fn begin(
        &mut self,
        wanted: impl IntoIterator<Item = ResourceId>,
        now: Duration,
    ) -> Vec<ResourceId> {
        if self.resources.len() >= MANY {
            self.resources.retain(|_, share| share.workers > 0 || share.back_at > now);
        }
        let is_last = self.is_busy();
        let free = |share: Option<&Share>| share.is_none_or(|share| share.workers == 0);
        let mut begun: Vec<ResourceId> = wanted.into_iter().collect();
        begun.retain(|resource| !is_last || free(self.resources.get(resource)));
        for resource in &begun {
            self.resources.entry(*resource).or_default().workers += 1;
        }
        if !begun.is_empty() {
            self.busy += 1;
        }
        begun
    }

    /// A worker is done with a resource that it began with, and has ended if that was its `last`.
    pub(super) fn leave(&mut self, resource: ResourceId, last: bool) {
        if let Some(share) = self.resources.get_mut(&resource) {
            share.workers = share.workers.saturating_sub(1);
        }
        if last {
            self.busy = self.busy.saturating_sub(1);
        }
    }

    /// A worker took so long for some documents of a resource.
    pub(super) fn took(&mut self, resource: ResourceId, documents: usize, time: Duration) {
        let documents = u32::try_from(documents.max(1)).unwrap_or(u32::MAX);
        let share = self.resources.entry(resource).or_default();
        let workers = u32::try_from(share.workers.max(1)).unwrap_or(u32::MAX);
        let pace = time / documents / workers;
        share.pace = if share.pace.is_zero() { pace } else { (share.pace * 3 + pace) / 4 };
    }

    /// After what time documents come back that have to wait.
    pub(super) fn back_after(
        &mut self,
        resource: ResourceId,
        documents: usize,
        now: Duration,
    ) -> Duration {
        let documents = u32::try_from(documents).unwrap_or(u32::MAX);
        let share = self.resources.entry(resource).or_default();
        let at = share.back_at.clamp(now + SOONEST, now + LATEST);
        share.back_at = at.saturating_add(share.pace.saturating_mul(documents) / AHEAD);
        at - now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resource(number: u8) -> ResourceId {
        ResourceId::from_bytes([number; 16])
    }

    #[test]
    fn the_last_worker_is_kept_for_others() {
        let (mut shares, bulk, other) = (Shares::new(2), resource(1), resource(2));
        let now = Duration::ZERO;
        assert_eq!(shares.begin([bulk], now), [bulk]);
        assert_eq!(shares.begin([bulk], now), [bulk]);
        assert!(shares.is_busy());
        assert_eq!(shares.begin([bulk], now), []);
        assert!(!shares.is_full(), "a worker that has nothing to do is not busy");
        assert_eq!(shares.begin([bulk, other], now), [other]);
        assert!(shares.is_full());
        shares.leave(other, true);
        assert_eq!(shares.begin([other], now), [other]);
        shares.leave(bulk, true);
        assert_eq!(shares.begin([bulk], now), [], "one at it, one at the other, one left");
    }

    #[test]
    fn what_a_worker_is_done_with_may_begin_again_though_the_worker_goes_on() {
        let (mut shares, bulk, other) = (Shares::new(1), resource(1), resource(2));
        let now = Duration::ZERO;
        assert_eq!(shares.begin([bulk, other], now), [bulk, other]);
        assert_eq!(shares.begin([other], now), [], "a worker is at it");
        shares.leave(other, false);
        assert!(shares.is_busy(), "with the bulk");
        assert_eq!(shares.begin([bulk, other], now), [other]);
    }

    #[test]
    fn what_waits_comes_back_as_fast_as_it_is_worked_on() {
        let (mut shares, bulk, now) = (Shares::new(4), resource(1), Duration::from_secs(9));
        assert_eq!(shares.back_after(bulk, 50, now), SOONEST, "nothing is known of it yet");
        shares.begin([bulk], now);
        shares.begin([bulk], now);
        // Each of two workers takes 10 ms for a document.
        shares.took(bulk, 100, Duration::from_secs(1));
        let back: Vec<_> = (0..4).map(|_| shares.back_after(bulk, 50, now).as_millis()).collect();
        assert_eq!(back, [100, 225, 350, 475]);
        let last = (0..1_000).map(|_| shares.back_after(bulk, 50, now)).last();
        assert_eq!(last, Some(LATEST));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whichever begin and end: no resource has all workers, and one that has none may begin
        /// whenever there is a worker.
        #[test]
        fn a_resource_that_has_nobody_may_always_begin(
            workers in 1..6_usize,
            steps in prop::collection::vec(
                (prop::collection::btree_set(0..4_u8, 1..4), 0..8_usize), 0..200,
            ),
        ) {
            let mut shares = Shares::new(workers);
            let mut at_work: Vec<Vec<ResourceId>> = Vec::new();
            let with = |at_work: &[Vec<ResourceId>], it: ResourceId| {
                at_work.iter().filter(|begun| begun.contains(&it)).count()
            };
            for (wanted, ends) in steps {
                if ends < at_work.len() {
                    let begun = at_work.remove(ends);
                    for (number, it) in begun.iter().enumerate() {
                        shares.leave(*it, number + 1 == begun.len());
                    }
                }
                if shares.is_full() {
                    prop_assert_eq!(at_work.len(), workers + 1);
                    continue;
                }
                let wanted: Vec<ResourceId> = wanted.into_iter().map(resource).collect();
                let begun = shares.begin(wanted.clone(), Duration::ZERO);
                for it in wanted {
                    prop_assert!(begun.contains(&it) || with(&at_work, it) > 0);
                }
                if !begun.is_empty() {
                    at_work.push(begun);
                }
                prop_assert!((0..4).all(|it| with(&at_work, resource(it)) <= workers));
            }
        }

        #[test]
        fn nothing_waits_for_ever(
            took in prop::collection::vec((0..100_usize, 0..u64::MAX / 2), 0..20),
            documents in prop::collection::vec(0..5_000_usize, 1..50),
        ) {
            let (mut shares, bulk, now) = (Shares::new(4), resource(1), Duration::from_secs(5));
            for (documents, nanos) in took {
                shares.took(bulk, documents, Duration::from_nanos(nanos));
            }
            let mut before = Duration::ZERO;
            for documents in documents {
                let back = shares.back_after(bulk, documents, now);
                prop_assert!((SOONEST..=LATEST).contains(&back));
                prop_assert!(back >= before);
                before = back;
            }
        }
    }
}
