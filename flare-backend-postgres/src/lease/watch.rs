//! Takes a prefix and a point in history; gives what happened there since, and what happens. Looks when this
//! process changed something, when a lease lapses, and in between as often as it polls.

use std::sync::Arc;
use std::time::Duration;

use flare_core::port::{KeyEvent, Scan, StoreRevision};
use flare_core::{Error, Result};
use futures::{StreamExt, stream};

use super::Shared;
use super::table::{self, News};

const OPERATION: &str = "watch";
/// How often it is made sure that somebody polls: the task that does may have ended with another runtime.
const REVIVE_EVERY: Duration = Duration::from_secs(5);

pub(super) fn watch(
    shared: Arc<Shared>,
    prefix: String,
    from: StoreRevision,
) -> Scan<'static, KeyEvent> {
    let start = i64::try_from(from.get()).unwrap_or(i64::MAX);
    let batches = stream::unfold(Some(start), move |from| {
        let (shared, prefix) = (Arc::clone(&shared), prefix.clone());
        async move {
            match next_events(&shared, &prefix, from?).await {
                Ok((events, seen)) => {
                    Some((events.into_iter().map(Ok).collect::<Vec<_>>(), Some(seen)))
                }
                Err(error) => Some((vec![Err(error)], None)),
            }
        }
    });
    batches.flat_map(stream::iter).boxed()
}

/// The events under a prefix after a revision; waits until there are some.
async fn next_events(
    shared: &Shared,
    prefix: &str,
    mut from: i64,
) -> Result<(Vec<KeyEvent>, i64), Error> {
    let watcher = shared.pulse.watch();
    loop {
        // Listening starts before looking: what happens in between is not missed.
        let changed = watcher.changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let look = || async {
            shared.end_lapsed(OPERATION).await?;
            let mut session = shared.database.session(OPERATION).await?;
            table::news(&mut session, prefix, from).await
        };
        let News { events, seen } = shared.database.attempts(OPERATION, look).await??;
        if !events.is_empty() {
            return Ok((events, seen));
        }
        // What happened elsewhere is seen too: forgetting it leaves no gap here.
        from = seen;
        loop {
            tokio::select! {
                biased;
                () = &mut changed => break,
                () = shared.database.clock.sleep(REVIVE_EVERY) => watcher.revive(),
            }
        }
    }
}
