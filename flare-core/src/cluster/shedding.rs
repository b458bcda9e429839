//! Takes how busy a node is, look by look; gives how much of its weight it keeps. Pure: it is told the
//! time.
//!
//! Down soon and in steps, up late and in steps:
//! - A step down after [`SUSTAINED`] of nothing but overload, and the next one after as long again, so that
//!   what was given away has left before more is.
//! - A step up after [`REGAIN`] of nothing but calm. Calm is less the more was given away: with one step
//!   more the node would still be well below overload, if load follows weight. So a step up does not by
//!   itself make the next step down.
//! - Should it all the same, load does not follow weight here: each time, the wait before a step up
//!   doubles, up to [`LONGEST_REGAIN`]. It is forgotten after as long in calm at full weight.
//! - Never below [`FLOOR`]: a node that is always overloaded works on, and so does a cluster of them.

use std::time::Duration;

/// How often a node looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Busier than this is overloaded, in percent.
const OVERLOADED: u64 = 90;
/// How busy a node may be, in percent, after a step up.
const WELL: u64 = 80;
/// One step, in percent of the node's weight.
const STEP: u32 = 25;
/// What is kept at least, in percent of the node's weight.
const FLOOR: u32 = 25;
/// All of it.
const WHOLE: u32 = 100;
/// How long overload has to last before a step down.
const SUSTAINED: Duration = Duration::from_secs(60);
/// How long calm has to last before a step up, at first.
const REGAIN: Duration = Duration::from_secs(600);
/// And at most.
const LONGEST_REGAIN: Duration = Duration::from_secs(16 * 600);
/// Looks further apart than this do not make one stretch: what was in between is unknown.
const GAP: Duration = Duration::from_secs(30);

/// How much of its weight a node keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shedding {
    kept: u32,
    mood: Mood,
    /// Since when it has been in this mood without a step.
    since: Duration,
    looked: Duration,
    regain: Duration,
    /// The last step was one up.
    regained: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Overloaded,
    Between,
    Calm,
}

impl Shedding {
    /// A node that keeps all its weight.
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            kept: WHOLE,
            mood: Mood::Between,
            since: now,
            looked: now,
            regain: REGAIN,
            regained: false,
        }
    }

    /// How much of the weight is kept, in percent, now that the node is so busy.
    pub(crate) fn look(&mut self, busy_percent: u64, now: Duration) -> u32 {
        let mood = self.mood(busy_percent);
        let apart = now.saturating_sub(self.looked) > GAP;
        if mood != self.mood || apart {
            (self.mood, self.since) = (mood, now);
        }
        self.looked = now;
        let lasted = now.saturating_sub(self.since);
        match mood {
            Mood::Overloaded if self.kept > FLOOR && lasted >= SUSTAINED => {
                if std::mem::take(&mut self.regained) {
                    self.regain = (self.regain * 2).min(LONGEST_REGAIN);
                }
                self.kept -= STEP;
                self.since = now;
            }
            Mood::Calm if self.kept < WHOLE && lasted >= self.regain => {
                self.regained = true;
                self.kept += STEP;
                self.since = now;
            }
            Mood::Calm if self.kept == WHOLE && lasted >= LONGEST_REGAIN => {
                (self.regain, self.regained) = (REGAIN, false);
            }
            _ => {}
        }
        self.kept
    }

    fn mood(&self, busy_percent: u64) -> Mood {
        let (kept, more) = (u64::from(self.kept), u64::from((self.kept + STEP).min(WHOLE)));
        if busy_percent > OVERLOADED {
            Mood::Overloaded
        } else if busy_percent.saturating_mul(more) <= WELL * kept {
            Mood::Calm
        } else {
            Mood::Between
        }
    }
}

#[cfg(test)]
#[path = "shedding_tests.rs"]
mod tests;
