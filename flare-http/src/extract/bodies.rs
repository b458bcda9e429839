//! Takes the bodies of all requests as they stream in; gives each as many bytes of memory as are
//! left, until its request is answered. Never lets them have more than the limit together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the bodies of all requests may hold together.
///
/// Each may have as much as is left for others: many large ones, however slowly they arrive, leave
/// room for small ones.
#[derive(Debug)]
pub(crate) struct Bodies {
    limit: usize,
    held: AtomicUsize,
}

impl Bodies {
    /// So many bytes for all, but no less than one body of `largest` needs.
    pub(crate) fn new(limit: usize, largest: usize) -> Self {
        Self { limit: limit.max(largest.saturating_mul(2)), held: AtomicUsize::new(0) }
    }

    /// Room for one body, which has nothing yet.
    pub(crate) fn begin(self: &Arc<Self>) -> BodyRoom {
        BodyRoom { bodies: Arc::clone(self), own: 0 }
    }
}

/// What one body holds; others may have it when this is dropped.
#[derive(Debug)]
pub(crate) struct BodyRoom {
    bodies: Arc<Bodies>,
    own: usize,
}

impl BodyRoom {
    /// Whether `more` bytes would fit now.
    pub(crate) fn fits(&self, more: usize) -> bool {
        self.fits_beside(more, self.bodies.held.load(Ordering::Acquire))
    }

    /// Takes so many more bytes; tells whether it could.
    pub(crate) fn grow(&mut self, more: usize) -> bool {
        let held = &self.bodies.held;
        let grown = held.fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
            self.fits_beside(more, held).then(|| held.saturating_add(more))
        });
        if grown.is_ok() {
            self.own += more;
        }
        grown.is_ok()
    }

    /// Whether it may have `more` while all hold `held`: no more than is left then.
    fn fits_beside(&self, more: usize, held: usize) -> bool {
        let (own, all) = (self.own.saturating_add(more), held.saturating_add(more));
        own <= self.bodies.limit.saturating_sub(all)
    }
}

impl Drop for BodyRoom {
    fn drop(&mut self) {
        self.bodies.held.fetch_sub(self.own, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_the_largest_size_always_fits_alone() {
        for limit in [0, 100, 1_000] {
            let bodies = Arc::new(Bodies::new(limit, 100));
            let mut room = bodies.begin();
            assert!((0..10).all(|_| room.grow(10)), "{limit}");
        }
    }

    #[test]
    fn many_large_bodies_leave_room_for_small_ones_and_give_theirs_back() {
        let bodies = Arc::new(Bodies::new(1_000, 100));
        let mut large: Vec<BodyRoom> = (0..20).map(|_| bodies.begin()).collect();
        let full = large.iter_mut().filter_map(|room| room.grow(90).then_some(())).count();
        assert_eq!(full, 10);
        assert!(!bodies.begin().fits(90));
        let mut small = bodies.begin();
        assert!(small.fits(10) && small.grow(10));
        drop((large, small));
        assert_eq!(bodies.held.load(Ordering::Acquire), 0);
    }
}
