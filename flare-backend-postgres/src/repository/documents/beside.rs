//! Takes how long to wait for documents that were put beside Flare; gives those that no task tells of. Looks now
//! and then where the queue is elsewhere, and at once when it is woken; where commits store their tasks themselves it
//! only sees to what was put before there was a queue.

use std::time::Duration;

use flare_core::Result;
use flare_core::port::Undispatched;

use super::super::PostgresRepository;

impl PostgresRepository {
    pub(super) async fn take_beside(
        &self,
        limit: usize,
        wait: Duration,
    ) -> Result<Vec<Undispatched>> {
        let clock = &self.database.clock;
        let give_up_at = clock.monotonic().saturating_add(wait);
        loop {
            let look = || self.look_beside(limit);
            let seen = self.database.attempts("take_puts_beside", look).await?;
            let left = give_up_at.saturating_sub(clock.monotonic());
            if !seen.found.is_empty() || left.is_zero() {
                return Ok(seen.found);
            }
            if seen.took_some {
                continue;
            }
            if seen.announced {
                clock.sleep(left).await;
                return Ok(Vec::new());
            }
            // A wake-up that comes while it looks is kept.
            tokio::select! {
                () = self.woken.notified() => {}
                () = clock.sleep(left.min(self.look_every)) => {}
            }
        }
    }
}
