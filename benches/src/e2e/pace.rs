//! Takes how often something is to happen; says when, to a few dozen microseconds, where a timer of the
//! runtime goes by milliseconds.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::Result;

/// Moments at an even distance.
pub(super) struct Pace {
    moments: mpsc::Receiver<()>,
}

impl Pace {
    /// The first moment is now.
    pub(super) fn new(every: Duration) -> Self {
        // Whoever is late gets what was missed at once: the load stays what it is said to be.
        let (say, moments) = mpsc::channel(1_000);
        std::thread::spawn(move || {
            let begin = super::now_nanos();
            for number in 0_u64.. {
                let due = begin + u64::try_from(every.as_nanos()).unwrap_or(u64::MAX) * number;
                let wait = due.saturating_sub(super::now_nanos());
                std::thread::sleep(Duration::from_nanos(wait));
                if say.blocking_send(()).is_err() {
                    return;
                }
            }
        });
        Self { moments }
    }

    /// Waits for the next moment.
    pub(super) async fn next(&mut self) -> Result<()> {
        self.moments.recv().await.ok_or_else(|| "the thread that keeps the pace ended".into())
    }
}
