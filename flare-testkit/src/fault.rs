//! Takes a seed and probabilities; gives faults in the order of the calls, the same ones every
//! time. Knows no port: the faulty doubles ask it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::{Error, ErrorKind, Result};

/// What goes wrong and how often. Clones share one plan; the same calls in the same order meet
/// the same faults.
///
/// ```
/// use flare_testkit::FaultPlan;
///
/// let plan = FaultPlan::seeded(7).with_before(0.5);
/// let failed = (0..100).filter(|_| plan.before("send").is_err()).count();
/// assert!(failed > 0 && failed < 100);
/// assert_eq!(plan.injected(), failed as u64);
/// plan.heal();
/// assert!((0..100).all(|_| plan.before("send").is_ok()));
/// ```
#[derive(Clone)]
pub struct FaultPlan {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    random: fastrand::Rng,
    before: f64,
    after: f64,
    healed: bool,
    injected: u64,
}

impl FaultPlan {
    /// A plan without faults yet.
    pub fn seeded(seed: u64) -> Self {
        let inner = Inner {
            random: fastrand::Rng::with_seed(seed),
            before: 0.0,
            after: 0.0,
            healed: false,
            injected: 0,
        };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// The same plan; calls fail before their effect with this probability.
    #[must_use]
    pub fn with_before(self, probability: f64) -> Self {
        self.lock().before = probability;
        self
    }

    /// The same plan; calls fail after their effect with this probability.
    #[must_use]
    pub fn with_after(self, probability: f64) -> Self {
        self.lock().after = probability;
        self
    }

    /// To be asked before a call takes effect: [`ErrorKind::Unavailable`], or go on.
    pub fn before(&self, operation: &'static str) -> Result<()> {
        let probability = self.lock().before;
        if self.roll(probability) {
            return Err(fault(ErrorKind::Unavailable, operation));
        }
        Ok(())
    }

    /// To be asked once a call has taken effect: [`ErrorKind::Timeout`], or answer.
    pub fn after(&self, operation: &'static str) -> Result<()> {
        let probability = self.lock().after;
        if self.roll(probability) {
            return Err(fault(ErrorKind::Timeout, operation));
        }
        Ok(())
    }

    /// Whether a fault of this probability strikes now; if so, it counts as injected.
    pub fn roll(&self, probability: f64) -> bool {
        let mut inner = self.lock();
        // A fault that never strikes uses up no randomness: adding one changes no other.
        if inner.healed || probability <= 0.0 || inner.random.f64() >= probability {
            return false;
        }
        inner.injected += 1;
        true
    }

    /// A number below `end`, out of the plan's randomness; 0 if there is none.
    pub fn below(&self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.lock().random.u64(..end) }
    }

    /// Puts items into an order of the plan's choosing.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        self.lock().random.shuffle(items);
    }

    /// Stops all faults for good.
    pub fn heal(&self) {
        self.lock().healed = true;
    }

    /// How many faults have struck.
    pub fn injected(&self) -> u64 {
        self.lock().injected
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fault(kind: ErrorKind, operation: &'static str) -> Error {
    Error::new(kind, operation).with_backend("faulty").with_detail("injected by the fault plan")
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.lock();
        f.debug_struct("FaultPlan")
            .field("before", &inner.before)
            .field("after", &inner.after)
            .field("healed", &inner.healed)
            .field("injected", &inner.injected)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(seed: u64) -> Vec<bool> {
        let plan = FaultPlan::seeded(seed).with_before(0.3).with_after(0.3);
        (0..64).flat_map(|_| [plan.before("a").is_err(), plan.after("b").is_err()]).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        assert_eq!(faults(1), faults(1));
        assert_ne!(faults(1), faults(2));
    }

    #[test]
    fn errors_before_are_unavailable_and_after_are_timeouts() {
        let plan = FaultPlan::seeded(0).with_before(1.0).with_after(1.0);
        assert_eq!(plan.before("x").unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(plan.after("x").unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(plan.injected(), 2);
    }
}
