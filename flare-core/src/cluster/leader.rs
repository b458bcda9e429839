//! Takes leadership and the picture of the cluster; gives plans, one from the other, each stored
//! only in place of the one it was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, warn};

use super::context::NodeContext;
use super::election::Leadership;
use super::handover::{Draft, Knowledge, draft};
use super::meter;
use super::mirror::View;
use super::moves::Moves;
use super::plan::{SlotPlan, SlotState};
use super::state::State;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{AuditAction, Epoch, NodeId, Takeover, Timestamp};
use crate::port::{Expect, StoreRevision, Written};

/// What a leader remembers: when it first saw things, by the monotonic clock. A new leader begins
/// anew, so it waits longer than it had to and never less.
#[derive(Debug, Default)]
struct LeaderMemory {
    /// Since when nodes are there.
    arrived: BTreeMap<NodeId, Duration>,
    /// Those of them that said that they leave.
    leaving: BTreeSet<NodeId>,
    /// Since when the plans of these generations want slots back.
    asked_back: BTreeMap<u64, Duration>,
    /// When slots may move again only to balance.
    balance_at: Duration,
    /// The newest plan this leader knows of; older pictures are no ground to decide on.
    known: StoreRevision,
}

/// Writes plans until something is wrong with this leader; tells what.
pub(crate) async fn lead(leadership: &Leadership<'_>, view: &mut View) -> Error {
    let context = leadership.context();
    let mut memory = LeaderMemory::default();
    let mut failures = 0;
    loop {
        let state = view.borrow_and_update().clone();
        let wake_at = match turn(leadership, &mut memory, &state).await {
            Ok(wake_at) => {
                failures = 0;
                wake_at
            }
            Err(error) if error.is_temporary() => {
                failures += 1;
                warn!(?error, "the plan could not be stored, will retry");
                context.pause(failures).await;
                continue;
            }
            Err(error) => return error,
        };
        tokio::select! {
            biased;
            changed = view.changed() => if changed.is_err() {
                return Error::new(ErrorKind::Internal, "lead").with_detail("the store is not watched any more");
            },
            () = context.sleep_until(wake_at) => {}
        }
    }
}

/// Looks at the cluster once; tells when to look again even if nothing changes.
async fn turn(
    leadership: &Leadership<'_>,
    memory: &mut LeaderMemory,
    state: &Arc<State>,
) -> Result<Option<Duration>> {
    let context = leadership.context();
    // Who is not in an older picture may have joined since, and own what a newer plan gave it.
    if state.revision < memory.known {
        return Ok(None);
    }
    let (plan, expect) = match &state.plan {
        None => (Arc::new(SlotPlan::empty(context.slots)), Expect::Absent),
        Some(stored) => match &stored.plan {
            Some(plan) => (Arc::clone(plan), Expect::At(stored.revision)),
            None => return Err(refuse("the plan cannot be read by this version")),
        },
    };
    if leadership.is_behind(&plan) {
        return Err(refuse("a later leader wrote a plan"));
    }
    let plan = match plan.slots.len() == context.slots as usize {
        true => plan,
        // The nodes that worked by it are gone: what it says of slots means nothing any more.
        false if state.all_want(context.slots) => Arc::new(plan.emptied(context.slots)),
        false => {
            return Err(refuse("the plan has another number of slots than this node's settings"));
        }
    };
    let now = context.monotonic();
    memory.look(context, state, &plan, now);
    match memory.decide(context, state, &plan, now) {
        None => Ok(memory.next_look(context, state, &plan, now)),
        Some(draft) => {
            if draft.balances {
                memory.balance_at = now + context.settings.move_every;
            }
            let (known, moves) = store(leadership, draft, state, &plan, expect).await?;
            memory.known = known;
            memory.tell(&moves, context.monotonic());
            Ok(None)
        }
    }
}

fn refuse(detail: &'static str) -> Error {
    Error::new(ErrorKind::Conflict, "lead").with_detail(detail)
}

/// Draws an epoch if a node takes slots over, and stores the plan; tells which plan is there now, and
/// what this one moved.
async fn store(
    leadership: &Leadership<'_>,
    draft: Draft,
    state: &State,
    last: &SlotPlan,
    expect: Expect,
) -> Result<(StoreRevision, Moves)> {
    let context = leadership.context();
    let mut takeover = Takeover { epoch: Epoch::ZERO, at: Timestamp::EPOCH };
    if draft.needs_takeover() {
        // Drawn after all reasons for the plan were there: the nodes that worked these slots have stopped.
        let drawn = context.timed("next_epoch", context.repository.next_epoch()).await?;
        meter::epoch_drawn();
        let newest = last.slots.iter().filter_map(SlotState::worker).map(|(_, it)| it.epoch).max();
        if newest.is_some_and(|newest| newest >= drawn.epoch) {
            return Err(Error::new(ErrorKind::Corrupt, "next_epoch")
                .with_detail("the repository gave an epoch again, it may have been set back"));
        }
        takeover = Takeover { epoch: drawn.epoch, at: drawn.at };
    }
    // A node that is giving slots up was told how long it has.
    let moving = last.slots.iter().any(SlotState::is_moving);
    let told = if moving { last.grace } else { Duration::ZERO };
    let grace = context.settings.hand_over_limit.max(told);
    let plan = draft.finish(leadership.term(), grace, takeover);
    let moving = plan.slots.iter().filter(|slot| slot.is_moving()).count();
    match leadership.write(&plan, expect).await? {
        Written::At(revision) => {
            let moves = Moves::between(state, last, &plan);
            info!(
                generation = plan.generation,
                epoch = takeover.epoch.get(),
                moving,
                free = moves.free,
                orphaned = moves.orphaned,
                handed_over = moves.handed_over,
                "made a plan"
            );
            meter::moved(&moves);
            Ok((revision, moves))
        }
        Written::Conflict(Some(other)) => Ok((other.revision, Moves::default())),
        Written::Conflict(None) => Err(Error::new(ErrorKind::Unavailable, "write_plan")
            .with_detail("the plan was deleted meanwhile")),
    }
}

impl LeaderMemory {
    /// Notes what is there for the first time, and forgets what is not there any more.
    fn look(&mut self, context: &NodeContext, state: &State, plan: &SlotPlan, now: Duration) {
        self.leaving.extend(state.records().filter(|(_, it)| it.draining).map(|(id, _)| id));
        // One that leaves in good order says so first, and hands over what it works.
        let gone = self.arrived.keys().filter(|id| !state.nodes.contains_key(id));
        let lost = gone.filter(|id| plan.names(**id) && !self.leaving.contains(id));
        lost.for_each(|id| context.tell(*id, AuditAction::Lost));
        self.arrived.retain(|id, _| state.nodes.contains_key(id));
        self.leaving.retain(|id| state.nodes.contains_key(id));
        for id in state.nodes.keys() {
            self.arrived.entry(*id).or_insert(now);
        }
        let wanted: BTreeSet<u64> = releases(plan).map(|(_, since)| since).collect();
        self.asked_back.retain(|since, _| wanted.contains(since));
        for since in wanted {
            self.asked_back.entry(since).or_insert(now);
        }
        // A leader who knew nothing a moment ago lets the cluster show itself first.
        if self.balance_at.is_zero() {
            self.balance_at = now + context.settings.settle_after.min(context.settings.move_every);
        }
    }

    /// Says what a plan moved that could not be told from it alone.
    fn tell(&self, moves: &Moves, now: Duration) {
        if moves.forced > 0 {
            let (slots, nodes) = (moves.forced, &moves.forced_from);
            warn!(slots, ?nodes, "took slots by force: their owners did not give them up in time");
        }
        for since in moves.asked.iter().filter_map(|generation| self.asked_back.get(generation)) {
            meter::handed_over(now.saturating_sub(*since));
        }
    }

    /// The next plan but for its epoch, if there is to be one.
    fn decide(
        &self,
        context: &NodeContext,
        state: &State,
        plan: &SlotPlan,
        now: Duration,
    ) -> Option<Draft> {
        let settled = self.settled(context, now);
        let due = |node, since| self.due(context, state, plan, node, since);
        let overdue = |node, since| due(node, since).is_some_and(|due| due <= now);
        let moves = if self.balance_at <= now { context.settings.moves(context.slots) } else { 0 };
        draft(state, plan, &Knowledge { settled: &settled, overdue: &overdue, moves })
    }

    fn settled(&self, context: &NodeContext, now: Duration) -> BTreeSet<NodeId> {
        let settled = |since: &Duration| *since + context.settings.settle_after <= now;
        self.arrived.iter().filter(|(_, since)| settled(since)).map(|(id, _)| *id).collect()
    }

    /// When a node must have given up what the plan of that generation wanted back. Its own lease
    /// may be longer than ours: one that has not read that plan works on for as long.
    fn due(
        &self,
        context: &NodeContext,
        state: &State,
        plan: &SlotPlan,
        node: NodeId,
        since: u64,
    ) -> Option<Duration> {
        let record = state.nodes.get(&node).and_then(Option::as_ref);
        let ttl = record.map_or(Duration::ZERO, |record| record.ttl());
        let asked = self.asked_back.get(&since)?;
        Some(*asked + context.settings.hand_over_limit.max(plan.grace).max(ttl))
    }

    /// When something will be different only because time has passed.
    fn next_look(
        &self,
        context: &NodeContext,
        state: &State,
        plan: &SlotPlan,
        now: Duration,
    ) -> Option<Duration> {
        let settles = self.arrived.values().map(|since| *since + context.settings.settle_after);
        let due = |(node, since)| self.due(context, state, plan, node, since);
        let due = releases(plan).filter_map(due);
        settles.chain(due).chain([self.balance_at]).filter(|at| *at > now).min()
    }
}

/// Who is asked to give slots up, and since which plan.
fn releases(plan: &SlotPlan) -> impl Iterator<Item = (NodeId, u64)> {
    plan.slots.iter().filter_map(|slot| match slot {
        SlotState::Releasing { node, since, .. } => Some((*node, *since)),
        _ => None,
    })
}
