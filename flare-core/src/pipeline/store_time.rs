//! Takes the store's counter; gives an epoch drawn from it, and how far the store's clock is ahead of
//! ours, as the same answer tells.

use std::time::Duration;

use super::context::Context;
use crate::error::Result;
use crate::model::Timestamp;
use crate::port::EpochGrant;

/// A draw that takes longer tells too little of the store's clock, which was read at some time during it:
/// a process that was frozen meanwhile would take that clock for as far ahead as it was frozen.
const SOON: Duration = Duration::from_secs(1);
/// On a store that always takes longer, the quickest of so many draws has to do.
const TRIES: u32 = 3;

/// How far the store's clock is ahead of ours, in nanoseconds: at most, so that what is due by the
/// store's clock is never taken for early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead(i64);

impl Ahead {
    /// Told from an epoch that was asked for at `before`, by our clock.
    pub(crate) fn of(drawn: &EpochGrant, before: Timestamp) -> Self {
        Self(drawn.at.unix_nanos().saturating_sub(before.unix_nanos()))
    }

    /// Store time, as well as it can be told from here.
    pub(crate) fn store_time(self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(now.unix_nanos().saturating_add(self.0))
    }

    /// Our time for a store time.
    pub(crate) fn local_time(self, store: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(store.unix_nanos().saturating_sub(self.0))
    }
}

/// Draws an epoch greater than all that were drawn before, and tells the store's time by it.
pub(crate) async fn draw(context: &Context) -> Result<(EpochGrant, Ahead)> {
    let mut closest: Option<(Duration, Ahead)> = None;
    let mut tries = 0;
    loop {
        let (before, began) = (context.now(), context.clock.monotonic());
        let drawn = context.repository.next_epoch().await?;
        let took = context.clock.monotonic().saturating_sub(began);
        let (least, ahead) = match closest {
            Some(other) if other.0 <= took => other,
            _ => (took, Ahead::of(&drawn, before)),
        };
        tries += 1;
        if least <= SOON || tries == TRIES {
            return Ok((drawn, ahead));
        }
        closest = Some((least, ahead));
    }
}
