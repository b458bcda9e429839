//! Takes the coordination port; gives the slots this runtime may work, with an epoch each time.
//! Here one lease covers all slots; in a cluster the same changes come from there.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::context::Context;
use super::slots::Slots;
use super::stage::{chain, pause_after};
use super::stop::Stop;
use super::term::{Term, Trust};
use crate::error::Result;
use crate::port::{Expect, LeaseGrant, LeaseId, Write, Written};

/// The key whose holder works all slots.
pub(crate) const KEY: &str = "flare/owner";

/// A change of what this runtime may work.
#[derive(Debug)]
pub(crate) enum OwnershipChange {
    /// These slots are this runtime's, under an epoch greater than any they had before.
    Granted(Term),
    /// These are to be given up. Whoever works them finishes, before `until` of the monotonic clock
    /// if there is such a time, and says so by dropping the sender.
    Released { slots: Slots, until: Option<Duration>, done: oneshot::Sender<()> },
    /// These are somebody else's, perhaps: requests in flight are dropped at once.
    Lost { slots: Slots },
}

/// Until when a lease that was asked for at `asked` cannot have lapsed: counted from before the
/// request, with a margin.
fn trusted_until(grant: &LeaseGrant, asked: Duration) -> Duration {
    asked + grant.ttl * 3 / 4
}

/// Holds all slots with one lease, taking them over once nobody else does.
pub(crate) async fn own_all_slots(
    context: Arc<Context>,
    changes: mpsc::Sender<OwnershipChange>,
    mut stop: Stop,
) {
    let (mut failures, mut stands_by) = (0, false);
    while !stop.is_requested() {
        let term = tokio::select! {
            biased;
            () = stop.requested() => return,
            taken = take_over(&context, &mut stands_by) => taken,
        };
        match term {
            Ok(Some(held)) => {
                (failures, stands_by) = (0, false);
                info!(epoch = %held.term.epoch, "took over all lanes");
                hold(&context, &changes, held, &mut stop).await;
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

/// The lease this runtime has, and what it may work with it.
struct Hold {
    term: Term,
    trust: Arc<Trust>,
    lease: LeaseId,
}

/// Tries to become the owner; waits a while if somebody else is.
async fn take_over(context: &Context, stands_by: &mut bool) -> Result<Option<Hold>> {
    let asked = context.clock.monotonic();
    let grant = context.lease.grant(context.settings.lease_ttl).await?;
    match try_take(context, &grant, asked).await {
        Ok(Some(held)) => Ok(Some(held)),
        other => {
            // Not ours to keep; if this fails too, the lease lapses by itself.
            if let Err(error) = context.lease.revoke(grant.id).await {
                warn!(error = %chain(&error), "could not give a lease back");
            }
            match other {
                Ok(_) => {
                    if !std::mem::replace(stands_by, true) {
                        info!("stands by: another runtime works these stores");
                    }
                    wait_for_owner(context).await?;
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
    }
}

async fn try_take(context: &Context, grant: &LeaseGrant, asked: Duration) -> Result<Option<Hold>> {
    let write = Write::new(KEY, "").lease(grant.id).expect(Expect::Absent);
    let Written::At(_) = context.lease.write(write).await? else {
        return Ok(None);
    };
    let drawn = context.repository.next_epoch().await?;
    let trust = Arc::new(Trust::until(trusted_until(grant, asked)));
    Ok(Some(Hold {
        term: Term::drawn((0..context.all_slots()).collect(), drawn, Arc::clone(&trust)),
        trust,
        lease: grant.id,
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
    held: Hold,
    stop: &mut Stop,
) {
    let Hold { term, trust, lease } = held;
    let (epoch, slots) = (term.epoch, term.slots.clone());
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
        let release = OwnershipChange::Released { slots: slots.clone(), until: None, done };
        if changes.send(release).await.is_ok() {
            // Lanes finish what is in flight; the lease has to live as long.
            tokio::select! {
                biased;
                _ = drained => {}
                () = keep_alive(context, lease, &trust) => {
                    let _ = changes.send(OwnershipChange::Lost { slots }).await;
                }
            }
        }
    } else if changes.send(OwnershipChange::Lost { slots }).await.is_err() {
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
            Ok(grant) => trust.prolong(trusted_until(&grant, asked), &*context.clock),
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
