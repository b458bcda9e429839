//! Takes the stores; gives the moment at which nothing is left to do, or says what is.

use std::time::Duration;

use super::left::Left;
use crate::cluster::has_workers;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::context::Context;

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(10);
/// How long the coordination store is waited for.
const ASKING: Duration = Duration::from_secs(1);

/// Waits until everything is delivered and counted, but no longer than `limit`.
pub(super) async fn settled(context: &Context, limit: Duration) -> Result<()> {
    let began = context.clock.monotonic();
    loop {
        let left = Left::counted(context).await?;
        if left.is_nothing() {
            if context.counters.are_saved() {
                return Ok(());
            }
            context.counters.ask();
        }
        if context.clock.monotonic().saturating_sub(began) >= limit {
            if left.is_nothing() {
                // All but counters, which a store that fails now may keep waiting for long.
                return Ok(());
            }
            let mut detail = format!("after {limit:?} {left}");
            if nobody_works(context).await {
                detail.push_str(": no runtime has run on these stores, or it has ended, so nothing is delivered");
            }
            return Err(Error::new(ErrorKind::Timeout, "settled").with_detail(detail));
        }
        context.sleep(LOOK).await;
    }
}

/// Whether it is certain that no runtime works on these stores.
async fn nobody_works(context: &Context) -> bool {
    !context.progress.is_running() && !others_work(context).await
}

/// Whether runtimes other than this one may work on these stores: also where the leases do not answer that.
pub(super) async fn others_work(context: &Context) -> bool {
    let asking = async {
        // One that cannot be asked may know of some.
        has_workers(&*context.lease).await.unwrap_or(true)
    };
    tokio::select! {
        biased;
        others = asking => others,
        () = context.sleep(ASKING) => true,
    }
}
