//! Takes odds, a longest time and a clock; makes calls late, as a plan's randomness has it.

use std::sync::Arc;
use std::time::Duration;

use flare_core::port::Clock;

use crate::FaultPlan;

/// How often and how much calls are late.
#[derive(Debug, Clone)]
pub(crate) struct Delay {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) probability: f64,
    pub(crate) longest: Duration,
}

impl Delay {
    /// Waits, if this call is one that is late.
    pub(crate) async fn strike(&self, plan: &FaultPlan) {
        if plan.roll(self.probability) {
            let nanos = u64::try_from(self.longest.as_nanos()).unwrap_or(u64::MAX);
            let late = Duration::from_nanos(plan.below(nanos));
            self.clock.sleep_until(self.clock.now() + late).await;
        }
    }
}
