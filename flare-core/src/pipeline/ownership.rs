//! Takes the coordination port; gives the slots this runtime may work, with an epoch each time.
//! Without a cluster one lease covers all slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::context::Context;
use super::stage::{chain, pause_after};
use super::stop::Stop;
use crate::error::Result;
use crate::model::{Tenure, Timestamp};
use crate::port::{Clock, Expect, LeaseGrant, LeaseId, Write, Written};

/// The key whose holder works all slots.
const KEY: &str = "flare/owner";

/// A change of what this runtime may work.
#[derive(Debug)]
pub(crate) enum OwnershipChange {
    /// These slots are this runtime's.
    Granted(Term),
    /// They are to be given up. Whoever works them finishes, and says so by dropping the sender.
    Released(oneshot::Sender<()>),
    /// They are somebody else's, perhaps: requests in flight are dropped at once.
    Lost,
}

/// The time during which slots are this runtime's.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    /// Which slots.
    pub(crate) slots: std::ops::Range<u32>,
    /// Since when, under which epoch.
    pub(crate) tenure: Tenure,
    /// How far the store's clock is ahead of ours, in nanoseconds.
    ahead: i64,
    trust: Arc<Trust>,
}

impl Term {
    /// Store time, as well as it can be told from here.
    pub(crate) fn store_time(&self, now: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(now.unix_nanos().saturating_add(self.ahead))
    }

    /// Our time for a store time.
    pub(crate) fn local_time(&self, store: Timestamp) -> Timestamp {
        Timestamp::from_unix_nanos(store.unix_nanos().saturating_sub(self.ahead))
    }

    /// Whether the slots are certainly still ours: only then may a send start.
    pub(crate) fn is_trusted(&self, clock: &dyn Clock) -> bool {
        self.trust.left(clock) > Duration::ZERO
    }
}

/// Until when a lease cannot have lapsed, by the monotonic clock.
#[derive(Debug)]
struct Trust(AtomicU64);

impl Trust {
    /// A grant that was asked for at `asked`: counted from before the request, with a margin.
    fn new(grant: &LeaseGrant, asked: Duration) -> Self {
        Self(AtomicU64::new(Self::end(grant, asked)))
    }

    fn prolong(&self, grant: &LeaseGrant, asked: Duration) {
        self.0.store(Self::end(grant, asked), Ordering::Release);
    }

    fn end(grant: &LeaseGrant, asked: Duration) -> u64 {
        let trusted = asked + grant.ttl * 3 / 4;
        u64::try_from(trusted.as_nanos()).unwrap_or(u64::MAX)
    }

    fn left(&self, clock: &dyn Clock) -> Duration {
        let end = Duration::from_nanos(self.0.load(Ordering::Acquire));
        end.saturating_sub(clock.monotonic())
    }
}

/// Holds all slots with one lease, taking them over once nobody else does.
pub(crate) async fn own_all_slots(
    context: Arc<Context>,
    changes: mpsc::Sender<OwnershipChange>,
    mut stop: Stop,
) {
    let mut failures = 0;
    while !stop.is_requested() {
        let term = tokio::select! {
            biased;
            () = stop.requested() => return,
            taken = take_over(&context) => taken,
        };
        match term {
            Ok(Some((term, lease))) => {
                failures = 0;
                info!(epoch = %term.tenure.epoch, "took over all lanes");
                hold(&context, &changes, term, lease, &mut stop).await;
            }
            Ok(None) => failures = 0,
            Err(error) => {
                failures += 1;
                warn!(error = %chain(&error), "could not take over lanes, will retry");
                let pause = context.jittered(pause_after(failures));
                tokio::select! {
                    biased;
                    () = stop.requested() => return,
                    () = context.sleep(pause) => {}
                }
            }
        }
    }
}

/// Tries to become the owner; waits a while if somebody else is.
async fn take_over(context: &Context) -> Result<Option<(Term, LeaseId)>> {
    let asked = context.clock.monotonic();
    let grant = context.lease.grant(context.settings.lease_ttl).await?;
    match try_take(context, &grant, asked).await {
        Ok(Some(term)) => Ok(Some((term, grant.id))),
        other => {
            // Not ours to keep; if this fails too, the lease lapses by itself.
            if let Err(error) = context.lease.revoke(grant.id).await {
                warn!(error = %chain(&error), "could not give a lease back");
            }
            match other {
                Ok(_) => {
                    wait_for_owner(context).await?;
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
    }
}

async fn try_take(context: &Context, grant: &LeaseGrant, asked: Duration) -> Result<Option<Term>> {
    let write = Write::new(KEY, "").lease(grant.id).expect(Expect::Absent);
    let Written::At(_) = context.lease.write(write).await? else {
        return Ok(None);
    };
    let before = context.now();
    let drawn = context.repository.next_epoch().await?;
    let tenure = Tenure { epoch: drawn.epoch, taken_at: drawn.at };
    Ok(Some(Term {
        slots: 0..context.slots,
        tenure,
        ahead: drawn.at.unix_nanos().saturating_sub(before.unix_nanos()),
        trust: Arc::new(Trust::new(grant, asked)),
    }))
}

/// Waits until the owner's key changes, or long enough that looking again is cheap.
async fn wait_for_owner(context: &Context) -> Result<()> {
    let snapshot = context.lease.list(KEY).await?;
    if snapshot.entries.is_empty() {
        return Ok(());
    }
    let mut changes = context.lease.watch(KEY, snapshot.revision);
    tokio::select! {
        biased;
        change = changes.next() => match change {
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        },
        () = context.sleep(context.settings.lease_ttl) => Ok(()),
    }
}

/// Keeps the lease alive; tells when it is granted, lost or given back.
async fn hold(
    context: &Context,
    changes: &mpsc::Sender<OwnershipChange>,
    term: Term,
    lease: LeaseId,
    stop: &mut Stop,
) {
    let trust = Arc::clone(&term.trust);
    let epoch = term.tenure.epoch;
    if changes.send(OwnershipChange::Granted(term)).await.is_err() {
        return;
    }
    let stopped = tokio::select! {
        biased;
        () = stop.requested() => true,
        () = keep_alive(context, lease, &trust) => false,
    };
    if stopped {
        let (done, drained) = oneshot::channel();
        if changes.send(OwnershipChange::Released(done)).await.is_ok() {
            // Lanes finish what is in flight; the lease has to live as long.
            tokio::select! {
                biased;
                _ = drained => {}
                () = keep_alive(context, lease, &trust) => {
                    let _ = changes.send(OwnershipChange::Lost).await;
                }
            }
        }
    } else if changes.send(OwnershipChange::Lost).await.is_err() {
        return;
    }
    if let Err(error) = context.lease.revoke(lease).await {
        warn!(error = %chain(&error), "could not give the lease back, it lapses by itself");
    }
    info!(%epoch, "gave all lanes up");
}

/// Prolongs the lease for as long as it can be trusted; returns when it cannot any more.
async fn keep_alive(context: &Context, lease: LeaseId, trust: &Trust) {
    loop {
        let left = trust.left(&*context.clock);
        if left.is_zero() {
            warn!("the lease may have lapsed");
            return;
        }
        // Three tries fit into what is left, whatever fails.
        context.sleep(left / 3).await;
        let asked = context.clock.monotonic();
        let prolonged = tokio::select! {
            biased;
            prolonged = context.lease.keep_alive(lease) => prolonged,
            () = context.sleep(trust.left(&*context.clock)) => continue,
        };
        match prolonged {
            Ok(grant) => trust.prolong(&grant, asked),
            Err(error) if error.is_temporary() => {
                warn!(error = %chain(&error), "could not prolong the lease, will retry");
            }
            Err(error) => {
                warn!(error = %chain(&error), "the lease is lost");
                return;
            }
        }
    }
}
