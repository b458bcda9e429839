//! Takes documents that a host's own transactions put into the store; announces them to the partition stage, as
//! `ingest` does its own. Awaits the store, which says when there are some. Never announces what was announced: what
//! it takes it has alone, however many nodes look, and if that is lost the reconciler finds it.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::context::Context;
use super::ingest::announce;
use super::moves::finish_found;
use super::stage::{chain, pause_after};
use super::stop::Stop;
use crate::error::Result;

/// Documents announced at a time.
const AT_ONCE: usize = 1_000;
/// How long the store may wait for one.
const WAIT: Duration = Duration::from_secs(60);

/// Announces what is put beside Flare until told to stop; for a store that such things happen to.
pub(crate) async fn announce_puts_beside(context: Arc<Context>, mut stop: Stop) {
    let mut failures = 0;
    loop {
        let turn = tokio::select! {
            biased;
            () = stop.requested() => return,
            turn = turn(&context) => turn,
        };
        let Err(error) = turn else {
            failures = 0;
            continue;
        };
        failures += 1;
        warn!(error = %chain(&error), "could not announce what was put beside Flare");
        tokio::select! {
            biased;
            () = stop.requested() => return,
            () = context.sleep(context.jittered(pause_after(failures))) => {}
        }
    }
}

async fn turn(context: &Context) -> Result<()> {
    let taken = context.repository.take_puts_beside(AT_ONCE, WAIT).await?;
    announce(context, finish_found(context, taken).await).await
}
