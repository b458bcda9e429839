//! What the server's clock says, as it can be told from here: read with some answers, and counted on by a
//! clock of ours that only goes forwards.
//!
//! A pipeline has the server's time at hand; the modifiers, which cost the server a fraction, have not. What
//! they stamp (when a document was put, since when a row waits) is the earliest that the server's clock can
//! say at that moment: what is due is then never taken for early, and what waited when a slot was taken over
//! is never taken for new. Whether a claim has lapsed is left to the server wherever that could matter.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use flare_core::Result;
use flare_core::model::Timestamp;
use mongodb::bson::doc;

use crate::connection::Connection;
use crate::record::{Record, now};

/// How long an answer is counted on: somebody may set the server's clock, or another server takes over.
const TRUSTED_FOR: Duration = Duration::from_secs(5);
/// Two clocks go apart by less than a part in so many.
const DRIFT: i64 = 1_000;
/// The server's clock goes by milliseconds.
const TICK: i64 = 1_000_000;

/// The server's clock was read. Times are of a clock of ours that only goes forwards, but for the server's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// When the server was asked.
    pub(crate) asked: Duration,
    /// When it had answered.
    pub(crate) answered: Duration,
    /// What its clock said in between, in nanoseconds.
    pub(crate) server: i64,
}

/// What the server's clock says: no less than `earliest`, no more than `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerTime {
    pub(crate) earliest: i64,
    pub(crate) latest: i64,
}

impl Sight {
    pub(crate) fn server_time(&self, now: Duration) -> ServerTime {
        let since = |then| self.server.saturating_add(nanos(now.saturating_sub(then)));
        ServerTime { earliest: since(self.answered), latest: since(self.asked) }
    }

    /// What the server's clock says at `now`, at least, however fast ours goes.
    fn earliest(&self, now: Duration) -> i64 {
        let passed = nanos(now.saturating_sub(self.answered));
        self.server.saturating_add(passed - passed / DRIFT)
    }

    /// What the server's clock says at `now`, at most, however slow ours goes.
    fn latest(&self, now: Duration) -> i64 {
        let passed = nanos(now.saturating_sub(self.asked));
        self.server.saturating_add(TICK).saturating_add(passed).saturating_add(passed / DRIFT)
    }

    fn is_trusted(&self, now: Duration) -> bool {
        now.saturating_sub(self.answered) < TRUSTED_FOR
    }
}

impl ServerTime {
    /// When `pause` will have passed: never in the future without one, never early with one.
    pub(crate) fn after(self, pause: Duration) -> i64 {
        if pause.is_zero() { self.earliest } else { self.latest.saturating_add(nanos(pause)) }
    }
}

/// The last sights of the server's clock. All connections to it share one.
#[derive(Debug, Default)]
pub(crate) struct ServerClock(Mutex<Option<Sight>>);

impl ServerClock {
    /// Notes what was read. Of two that agree the one that says more stays.
    fn saw(&self, sight: Sight) {
        let mut best = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = sight.answered;
        let says_more = |it: &Sight| {
            let agree = it.earliest(now) <= sight.latest(now);
            agree && it.is_trusted(now) && it.earliest(now) > sight.earliest(now)
        };
        // One that says more is kept, but ages: the new one is taken once it is not trusted any more.
        if !best.as_ref().is_some_and(says_more) {
            *best = Some(sight);
        }
    }

    /// What the server's clock says, the earliest in its own steps; none if it was not read lately.
    fn time(&self, now: Duration) -> Option<ServerTime> {
        let best = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let best = best.filter(|it| it.is_trusted(now))?;
        let earliest = best.earliest(now);
        Some(ServerTime {
            earliest: earliest - earliest.rem_euclid(TICK),
            latest: best.latest(now),
        })
    }
}

impl Connection {
    /// The server's time, as it says.
    pub(crate) async fn read_time(&self, operation: &'static str) -> Result<Timestamp> {
        let asked = self.clock.monotonic();
        let told = self.ask(operation, doc! { "at": now() }).await?;
        let at = Record::new(operation, &told).time("at")?;
        self.saw_time(asked, at);
        Ok(at)
    }

    /// Notes the server's time that came with an answer to what was asked at `asked`.
    pub(crate) fn saw_time(&self, asked: Duration, at: Timestamp) {
        let sight = Sight { asked, answered: self.clock.monotonic(), server: at.unix_nanos() };
        self.server_clock.saw(sight);
    }

    /// The server's time to stamp a write with: not in the future, nor before any time that was told here.
    pub(crate) async fn stamp(&self, operation: &'static str) -> Result<Timestamp> {
        let time = self.server_time(operation).await?;
        Ok(Timestamp::from_unix_nanos(time.earliest))
    }

    /// What the server's clock says.
    pub(crate) async fn server_time(&self, operation: &'static str) -> Result<ServerTime> {
        let lately = || self.server_clock.time(self.clock.monotonic());
        if let Some(time) = lately() {
            return Ok(time);
        }
        let at = self.read_time(operation).await?.unix_nanos();
        // An answer that took too long to be counted on was good when it was given.
        Ok(lately().unwrap_or(ServerTime { earliest: at, latest: at.saturating_add(TICK) }))
    }
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const START: Duration = Duration::from_secs(100);
    /// What the server's clock says at START.
    const SERVER: i64 = 5_000_000_000;

    /// The server was asked, and answered, so many milliseconds after START.
    fn sight(asked: u32, answered: u32, server: i64) -> Sight {
        Sight { asked: START + MILLI * asked, answered: START + MILLI * answered, server }
    }

    fn stamp(clock: &ServerClock, after: u32) -> Option<i64> {
        clock.time(START + MILLI * after).map(|time| time.earliest)
    }

    #[test]
    fn the_servers_time_goes_on_within_what_the_answer_took() {
        let time = sight(0, 2, SERVER).server_time(START + 10 * MILLI);
        assert_eq!(time, ServerTime { earliest: SERVER + 8 * TICK, latest: SERVER + 10 * TICK });
        assert_eq!(time.after(Duration::ZERO), SERVER + 8 * TICK);
        assert_eq!(time.after(MILLI), SERVER + 11 * TICK);
    }

    #[test]
    fn a_stamp_is_never_ahead_of_the_server_and_goes_by_its_steps() {
        let clock = ServerClock::default();
        assert_eq!(stamp(&clock, 0), None);
        clock.saw(sight(0, 2, SERVER));
        assert_eq!(stamp(&clock, 2), Some(SERVER));
        // Ours may have gone fast: of ten steps nine are certain.
        assert_eq!(stamp(&clock, 12), Some(SERVER + 9 * TICK));
        assert_eq!(stamp(&clock, 2 + 5_000), None, "it is asked again");
    }

    #[test]
    fn the_latest_is_never_behind_the_server() {
        let clock = ServerClock::default();
        clock.saw(sight(0, 2, SERVER));
        let latest = clock.time(START + MILLI * 1_000).unwrap().latest;
        // A step within which the clock was read, and what ours may have lost.
        assert_eq!(latest, SERVER + (1_000 + 1 + 1) * TICK);
    }

    #[test]
    fn no_stamp_is_before_a_time_that_was_told() {
        let clock = ServerClock::default();
        clock.saw(sight(0, 1, SERVER));
        // A slow answer says less, and is not taken.
        clock.saw(sight(1, 500, SERVER + TICK));
        assert_eq!(stamp(&clock, 501), Some(SERVER + 499 * TICK));
        clock.saw(sight(501, 502, SERVER + 502 * TICK));
        assert_eq!(stamp(&clock, 502), Some(SERVER + 502 * TICK));
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed_at_once() {
        let clock = ServerClock::default();
        clock.saw(sight(0, 1, SERVER));
        clock.saw(sight(100, 101, SERVER - 3_600_000 * TICK));
        assert_eq!(stamp(&clock, 101), Some(SERVER - 3_600_000 * TICK));
    }
}
