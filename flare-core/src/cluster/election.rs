//! Leadership, as a value, which one node has at a time. Without it no node
//! can write a plan; when it ends, so does all work under it.

use std::time::Duration;

use tracing::{Instrument, info, info_span, warn};

use super::context::NodeContext;
use super::keys;
use super::leader::lead;
use super::mirror::View;
use super::plan::SlotPlan;
use super::registry::Registration;
use super::state::State;
use crate::error::{Error, ErrorKind, Result};
use crate::observe;
use crate::port::{Expect, StoreRevision, Write, Written};

/// How long a node waits before it stands, at most: all of them see an empty seat at once.
const SCATTER: Duration = Duration::from_millis(100);

/// The right to write plans, for as long as it lasts.
#[derive(Debug)]
pub(crate) struct Leadership<'a> {
    context: &'a NodeContext,
    registration: &'a Registration,
    term: StoreRevision,
}

impl Leadership<'_> {
    /// Whether the plan was made under a later leadership: this one is over.
    pub(crate) fn is_behind(&self, plan: &SlotPlan) -> bool {
        plan.term > self.term.get()
    }

    pub(crate) fn context(&self) -> &NodeContext {
        self.context
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.get()
    }

    /// Stores a plan in place of the one at `expect`.
    ///
    /// The lease is trusted when the write is sent; should it arrive late all the same, it takes
    /// effect only on the very plan it was made from.
    pub(crate) async fn write(&self, plan: &SlotPlan, expect: Expect) -> Result<Written> {
        if self.registration.trust.node_left(&*self.context.clock).is_zero() {
            let error = Error::new(ErrorKind::Lost, "write_plan");
            return Err(error.with_detail("leadership is not certain any more"));
        }
        let write = Write::new(keys::PLAN, plan.encode()).expect(expect);
        self.context.timed("write", self.context.lease.write(write)).await
    }
}

/// Stands whenever there is no leader, and leads while it is this node; until dropped.
pub(crate) async fn stand(context: &NodeContext, registration: &Registration, mut view: View) {
    let mut failures = 0;
    loop {
        let state = view.borrow_and_update().clone();
        let mine = |lease| lease == Some(registration.lease);
        let outcome = match &state.leader {
            Some(leader) if mine(leader.lease) && leader.node == Some(registration.id) => {
                let leadership = Leadership { context, registration, term: leader.term };
                hold(&leadership, view.clone()).await
            }
            None if may_stand(&state, registration) => {
                // Alone there is no other node to be faster than.
                let scatter = if state.nodes.len() > 1 { SCATTER } else { Duration::ZERO };
                run_for_it(context, registration, scatter).await
            }
            _ => Ok(StoreRevision::default()),
        };
        match outcome {
            Ok(seen) => {
                failures = 0;
                wait_for(context, &mut view, seen).await;
            }
            Err(error) => {
                failures += 1;
                warn!(?error, "the election failed, will retry");
                context.pause(failures).await;
            }
        }
    }
}

/// Waits for a change, and until the picture is as new as `seen` (or a store's answer takes).
async fn wait_for(context: &NodeContext, view: &mut View, seen: StoreRevision) {
    if seen == StoreRevision::default() {
        if view.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        return;
    }
    tokio::select! {
        biased;
        _ = view.wait_for(|state| state.revision >= seen) => {}
        () = context.sleep(context.settings.call_limit) => {}
    }
}

/// A node that leaves stands only if no other can: its slots have to be handed over.
fn may_stand(state: &State, registration: &Registration) -> bool {
    let me = registration.id;
    // A plan that this version cannot read it must not replace; nor one of another number of slots, unless
    // that is no node's any more.
    let slots = registration.slots();
    let ours = |plan: &SlotPlan| plan.slots.len() == slots as usize || state.all_want(slots);
    let readable = state
        .plan
        .as_ref()
        .is_none_or(|stored| stored.plan.as_ref().is_some_and(|plan| ours(plan)));
    state.is_read()
        && readable
        && state.nodes.get(&me).and_then(Option::as_ref).is_some_and(|record| {
            record.roles.leads && (!record.draining || !state.has_other_leader(me))
        })
}

async fn run_for_it(
    context: &NodeContext,
    registration: &Registration,
    scatter: Duration,
) -> Result<StoreRevision> {
    context.sleep(context.up_to(scatter)).await;
    let write = Write::new(keys::LEADER, registration.id.to_string())
        .lease(registration.lease)
        .expect(Expect::Absent);
    match context.timed("write", context.lease.write(write)).await? {
        Written::At(term) => Ok(term),
        Written::Conflict(other) => Ok(other.map_or(StoreRevision::default(), |it| it.revision)),
    }
}

/// Leads until another node does, or this node leaves and another one can.
async fn hold(leadership: &Leadership<'_>, mut view: View) -> Result<StoreRevision> {
    let (term, me) = (leadership.term, leadership.registration.id);
    info!(node = %me, term = term.get(), "leads the cluster");
    let mut plans = view.clone();
    let leaves = |state: &State| {
        let record = state.nodes.get(&me).and_then(Option::as_ref);
        record.is_some_and(|it| it.draining) && state.has_other_leader(me)
    };
    let over = |state: &State| state.leader.is_none_or(|leader| leader.term != term);
    let mut failed = false;
    let span = info_span!(observe::LEAD, node = %me, term = term.get());
    let resigns = tokio::select! {
        biased;
        state = view.wait_for(|state| over(state) || leaves(state)) => match state {
            Ok(state) => !over(&state),
            Err(_) => return Ok(StoreRevision::default()),
        },
        ended = lead(leadership, &mut plans).instrument(span) => {
            warn!(node = %me, error = ?ended, "gives leadership up");
            failed = true;
            true
        }
    };
    info!(node = %me, term = term.get(), "does not lead any more");
    if !resigns {
        // What is shown already says so: look at it again.
        return Ok(view.borrow().revision);
    }
    let context = leadership.context;
    let expect = Expect::At(term);
    let deleted = context.timed("delete", context.lease.delete(keys::LEADER, expect)).await?;
    if failed {
        // Others first: what was wrong here may be right there.
        context.sleep(context.settings.call_limit).await;
    }
    match deleted {
        Written::At(seen) => Ok(seen),
        // Another node has the seat: the picture is about to show it.
        Written::Conflict(_) => Ok(StoreRevision::default()),
    }
}
