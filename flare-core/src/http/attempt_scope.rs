//! What the parts of an attempt that run deep inside the HTTP client, looking a name up, connecting and securing that,
//! know of it and tell of it. A connection that is finished for another attempt, or for none, tells nothing.

use std::cell::Cell;
use std::time::Duration;

use crate::model::AttemptPhases;

tokio::task_local! {
    /// The attempt that is being polled.
    static ATTEMPT: AttemptScope;
}

struct AttemptScope {
    /// When it has to be over, by the monotonic clock.
    ends: Duration,
    told: Cell<ToldPhases>,
}

/// What was told of an attempt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ToldPhases {
    pub(super) phases: AttemptPhases,
    /// When its connection was made, by the monotonic clock, if one was.
    pub(super) connected_at: Option<Duration>,
    /// When its connection began to be secured, by the monotonic clock, if it is.
    secured_from: Option<Duration>,
}

/// Runs an attempt, so that connections it asks for know when it ends; gives what they told of it.
pub(super) async fn within<F: Future>(ends: Duration, attempt: F) -> (F::Output, ToldPhases) {
    let scope = AttemptScope { ends, told: Cell::default() };
    let attempt = async {
        let output = attempt.await;
        (output, ATTEMPT.with(|scope| scope.told.get()))
    };
    ATTEMPT.scope(scope, attempt).await
}

/// When the attempt that asks for a connection has to be over; `None` if none does.
pub(super) fn ends() -> Option<Duration> {
    ATTEMPT.try_with(|scope| scope.ends).ok()
}

/// Its client's name was looked up in so long.
pub(super) fn looked_up(took: Duration) {
    change(|told| told.phases.dns = Some(took));
}

/// Its connection is there, and begins to be secured at `now` by the monotonic clock.
pub(super) fn securing(now: Duration) {
    change(|told| told.secured_from = Some(now));
}

/// Its connection was made at `now` by the monotonic clock, so long after it was asked for, the name's look-up included.
pub(super) fn connected(took: Duration, now: Duration) {
    change(|told| {
        let looking_up = told.phases.dns.unwrap_or_default();
        let securing = told.secured_from.map(|began| now.saturating_sub(began));
        let apart = looking_up.saturating_add(securing.unwrap_or_default());
        told.phases.connect = Some(took.saturating_sub(apart));
        told.phases.tls = securing;
        told.connected_at = Some(now);
    });
}

fn change(change: impl FnOnce(&mut ToldPhases)) {
    // Not polled for an attempt any more, the connection is made for the next one.
    _ = ATTEMPT.try_with(|scope| {
        let mut told = scope.told.get();
        change(&mut told);
        scope.told.set(told);
    });
}
