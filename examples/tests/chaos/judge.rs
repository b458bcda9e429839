//! Takes what came in a round; gives what of it breaks a promise. Pure.

use std::ops::Range;
use std::time::Instant;

use crate::client::{Arrival, Heard};
use crate::driver::Victim;
use crate::faults::Kind;
use crate::losses::Losses;
use crate::report::Round;
use crate::world::TAKEN_OVER_WITHIN;

/// P1 to P3 and P6, as far as a client sees them. A victim sends nothing while `unheard`: its lease has ended,
/// and it cannot have another.
pub fn judge(round: &mut Round, heard: &Heard, victim: &Victim, unheard: &Range<Instant>) {
    let by_victim = |it: &Arrival| victim.names.contains(&it.node);
    let mut broken = Vec::new();
    for doubled in &heard.doubled {
        let (first, again) = (&doubled.first, &doubled.again);
        if first.webhook_id != again.webhook_id {
            broken.push(format!("another webhook-id: {first:?}, {again:?}"));
        }
    }
    for backwards in &heard.backwards {
        if round.kind == Kind::Freeze && by_victim(&backwards.older) {
            round.late += 1;
        } else {
            broken.push(format!("backwards: {backwards:?}"));
        }
    }
    if round.late > round.in_doubt {
        broken.push(format!("{} late, {} in flight", round.late, round.in_doubt));
    }
    if round.kind.loses_a_node() {
        let unheard = heard.arrivals.iter().filter(|it| unheard.contains(&it.at));
        let without_lease = unheard.filter(|it| by_victim(it)).count();
        if without_lease > 0 {
            broken.push(format!("{without_lease} requests of a node whose lease had ended"));
        }
    }
    broken.extend(heard.malformed.iter().map(|text| format!("malformed: {text}")));
    round.violations.extend(broken);
}

/// What holds on a machine that has time for it: slots of a dead node are worked again soon, and only what a
/// node had in flight when it lost its place comes twice. Where everything takes ten times as long, a slot may
/// have to be taken from a node that could not store in time what it had been answered.
pub fn judge_pace(round: &mut Round, heard: &Heard, losses: &Losses) {
    let mut broken = Vec::new();
    for doubled in heard.doubled.iter().filter(|doubled| !losses.excuse(doubled)) {
        broken.push(format!("sent again without need: {doubled:?}"));
    }
    if round.doubled > round.in_doubt {
        broken.push(format!("{} doubled, {} in doubt", round.doubled, round.in_doubt));
    }
    for (what, took) in [("given to somebody", round.planned), ("worked", round.delivered)] {
        if round.kind.loses_a_node() && took.is_none_or(|took| took > TAKEN_OVER_WITHIN) {
            broken.push(format!("slots were {what} after {took:?}, not {TAKEN_OVER_WITHIN:?}"));
        }
    }
    round.violations.extend(broken);
}
