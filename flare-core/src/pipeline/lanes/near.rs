//! Takes lanes that got something to do; gives it to those that this process works, without a queue between.
//! Knows the lanes for as long as they are worked, and nothing of them afterwards.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::directory::Directory;
use crate::model::LaneId;
use crate::pipeline::lane::Handover;
use crate::port::Clock;
use crate::tools::lock;

/// The lanes that this process works, if any.
#[derive(Default)]
pub(crate) struct NearLanes {
    directory: Mutex<Weak<Directory>>,
    moments: AtomicU64,
}

/// A lane as the spread that wrote its rows knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneAddress {
    pub(crate) lane: LaneId,
    pub(crate) slot: u32,
    /// How many lanes its subscription has.
    pub(crate) lanes: u16,
}

impl NearLanes {
    /// These are worked from now on, in address of others.
    pub(super) fn are(&self, directory: &Arc<Directory>) {
        *lock(&self.directory) = Arc::downgrade(directory);
    }

    /// A moment of this process, later than all that were drawn before. What was stored before one was drawn
    /// is in whatever is read after it.
    pub(crate) fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether this process works so many slots, all there are.
    pub(crate) fn work_all(&self, slots: u32) -> bool {
        self.directory().is_some_and(|directory| directory.slots() >= slots as usize)
    }

    /// Hands rows to a lane, or has it look for what there is; tells whether it is certainly worked here.
    /// Its next owner begins with a look, so no rows written before are missed by both.
    pub(crate) fn tell(
        &self,
        address: LaneAddress,
        rows: Option<Handover>,
        clock: &dyn Clock,
    ) -> bool {
        self.directory().is_some_and(|directory| directory.tell(address, rows, clock))
    }

    fn directory(&self) -> Option<Arc<Directory>> {
        lock(&self.directory).upgrade()
    }
}

impl fmt::Debug for NearLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NearLanes").finish_non_exhaustive()
    }
}
