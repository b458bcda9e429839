//! Takes the clocks of this machine, or a test's; gives the time since the machine was started, which all
//! processes on it share and nobody can set, and how far the store's time is ahead of it.

use std::sync::Arc;
use std::time::Duration;

use flare_core::model::Timestamp;
use flare_core::port::{Clock, SystemClock};

/// How often a time is noted in the file. Over a restart of the machine the store's clock goes on from
/// there, and so much later, if the wall clock says less.
pub(crate) const NOTED_EVERY: Duration = Duration::from_secs(1);

/// By how much the wall clock has to be ahead of the store's for the store's to be set forward.
const WORTH_SETTING: Duration = Duration::from_secs(1);

/// What tells the time.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    clock: Arc<dyn Clock>,
    /// Whether the clock is the machine's own, or a test's.
    own: bool,
}

/// The store's clock: by how many nanoseconds it is ahead of the machine's uptime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoreClock {
    pub(crate) ahead: i64,
}

/// The store's clock as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredClock {
    /// The boot of a machine whose uptime it is ahead of.
    pub(crate) boot: String,
    pub(crate) clock: StoreClock,
    /// A time that it told.
    pub(crate) told: Timestamp,
}

impl Machine {
    /// The machine this process runs on.
    pub(crate) fn this() -> Self {
        Self { clock: Arc::new(SystemClock::new()), own: true }
    }

    /// One whose time somebody moves.
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, own: false }
    }

    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long the machine has been running, time that it was suspended included.
    pub(crate) fn uptime(&self) -> Duration {
        if self.own { own_uptime(&*self.clock) } else { self.clock.monotonic() }
    }

    /// Which boot that counts from: a name that tells the boots of all machines apart.
    pub(crate) fn boot(&self) -> String {
        if self.own { own_boot() } else { "a test's".to_owned() }
    }
}

#[cfg(target_os = "linux")]
fn own_uptime(_: &dyn Clock) -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Where the system has no such clock that processes could share, the wall clock has to do.
#[cfg(not(target_os = "linux"))]
fn own_uptime(clock: &dyn Clock) -> Duration {
    clock.now().since(Timestamp::EPOCH)
}

#[cfg(target_os = "linux")]
fn own_boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // A container may have a clock of its own.
    let clock = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", id.trim(), clock.display())
}

#[cfg(not(target_os = "linux"))]
fn own_boot() -> String {
    "wall clock".to_owned()
}

impl StoredClock {
    /// Whether its time goes on in this boot: then so do the leases that end by the boot's uptime.
    pub(crate) fn goes_on(&self, boot: &str, uptime: Duration) -> bool {
        self.boot == boot && self.clock.at(uptime) >= self.told
    }

    /// The clock to go by in a boot, whose wall clock shows `wall`. It never goes back, and is set forward
    /// where the wall clock is well ahead: one that was wrong when the machine started has been put right.
    pub(crate) fn resumed(&self, boot: &str, uptime: Duration, wall: Timestamp) -> StoreClock {
        let shown = self.clock.at(uptime);
        let goes_on = self.goes_on(boot, uptime);
        if goes_on && wall <= shown + WORTH_SETTING {
            return self.clock;
        }
        let least = if goes_on { shown } else { self.told + NOTED_EVERY };
        StoreClock::showing(wall.max(least), uptime)
    }
}

impl StoreClock {
    /// A clock that shows `time` now.
    fn showing(time: Timestamp, uptime: Duration) -> Self {
        Self { ahead: time.unix_nanos().saturating_sub(nanos(uptime)) }
    }

    /// What it shows when the machine has been running for so long.
    pub(crate) fn at(self, uptime: Duration) -> Timestamp {
        Timestamp::from_unix_nanos(self.ahead.saturating_add(nanos(uptime)))
    }
}

/// A duration as the file has it.
pub(crate) fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const NOON: Timestamp = Timestamp::from_unix_seconds(1_700_000_000);

    fn stored(boot: &str, clock: StoreClock, told: Timestamp) -> StoredClock {
        StoredClock { boot: boot.to_owned(), clock, told }
    }

    #[test]
    fn a_new_file_shows_the_wall_clock() {
        let none = stored("", StoreClock { ahead: 0 }, Timestamp::EPOCH);
        assert_eq!(none.resumed("a", HOUR, NOON).at(HOUR), NOON);
    }

    #[test]
    fn all_processes_of_a_boot_go_by_one_clock_whatever_the_wall_clock_says() {
        let ahead = StoreClock::showing(NOON + HOUR, HOUR);
        let clock = stored("a", ahead, NOON + HOUR).resumed("a", 2 * HOUR, NOON);
        assert_eq!(clock, ahead, "somebody set the wall clock back");
        assert_eq!(clock.at(2 * HOUR), NOON + 2 * HOUR);
        let close = StoreClock::showing(NOON - Duration::from_millis(900), HOUR);
        assert_eq!(stored("a", close, NOON - HOUR).resumed("a", HOUR, NOON), close);
    }

    #[test]
    fn a_wall_clock_that_was_put_right_is_followed_forward() {
        let wrong = stored("a", StoreClock::showing(NOON - HOUR, HOUR), NOON - HOUR);
        assert!(wrong.goes_on("a", HOUR));
        assert_eq!(wrong.resumed("a", HOUR, NOON).at(HOUR), NOON);
    }

    #[test]
    fn after_a_restart_of_the_machine_it_goes_on_and_never_back() {
        let before = stored("a", StoreClock::showing(NOON - HOUR, 9 * HOUR), NOON - HOUR);
        assert!(!before.goes_on("b", HOUR));
        assert_eq!(before.resumed("b", HOUR, NOON).at(HOUR), NOON);
        let later = stored("a", StoreClock::showing(NOON + HOUR, 9 * HOUR), NOON + HOUR);
        let clock = later.resumed("b", HOUR, NOON);
        assert_eq!(clock.at(HOUR), NOON + HOUR + NOTED_EVERY, "the wall clock lost an hour");
    }

    #[test]
    fn a_boot_whose_clock_began_anew_is_another() {
        let stored = stored("a", StoreClock::showing(NOON + HOUR, 9 * HOUR), NOON + HOUR);
        assert!(!stored.goes_on("a", Duration::ZERO));
        let clock = stored.resumed("a", Duration::ZERO, NOON);
        assert_eq!(clock.at(Duration::ZERO), NOON + HOUR + NOTED_EVERY);
    }

    #[test]
    fn this_machine_knows_its_boot_and_its_uptime() {
        let machine = Machine::this();
        assert_eq!(machine.boot(), Machine::this().boot());
        let before = machine.uptime();
        assert!(before > Duration::ZERO && Machine::this().uptime() >= before);
    }
}
