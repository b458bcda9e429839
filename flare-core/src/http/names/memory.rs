//! What is known about names and for how long: addresses, reasons, and which names a server kept
//! silent about. Bounded; times are those of the monotonic clock.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use super::ask::{FoundName, Unresolved};

/// Addresses, or the reason why there are none.
pub(super) type Known = Result<Vec<IpAddr>, String>;

/// How long addresses are remembered, whatever their server says: a name with no lifetime at all is
/// still not asked for by each connection, and a wrong one is not kept for days.
const FOUND: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));
/// How long it is remembered that there is no such name: one who makes it waits no longer.
const UNKNOWN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long a failure of the servers is (RFC 9520 wants at least this).
const FAILED: Duration = Duration::from_secs(1);
/// How long a name counts as slow after it took long for nothing.
const SLOW: Duration = Duration::from_secs(60);
/// How long a name counts as proven after its addresses were good.
const PROVEN: Duration = Duration::from_secs(3600);

/// What is to be expected of looking a name up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameHistory {
    /// It was not looked up lately.
    New,
    /// It resolved the last time.
    Proven,
    /// It took long for nothing, lately.
    Slow,
}

/// What is known about names.
#[derive(Debug)]
pub(super) struct NameMemory {
    names: HashMap<String, KnownName>,
    limit: usize,
}

#[derive(Debug)]
struct KnownName {
    known: Option<Known>,
    /// Until when that is good.
    until: Duration,
    history: NameHistory,
    /// Until when that counts.
    history_until: Duration,
}

impl NameMemory {
    /// A memory for so many names.
    pub(super) fn new(limit: usize) -> Self {
        Self { names: HashMap::new(), limit }
    }

    /// What is still good about a name.
    pub(super) fn known(&self, host: &str, now: Duration) -> Option<&Known> {
        let entry = self.names.get(host).filter(|entry| now < entry.until)?;
        entry.known.as_ref()
    }

    /// What is to be expected of a name.
    pub(super) fn history(&self, host: &str, now: Duration) -> NameHistory {
        let entry = self.names.get(host).filter(|entry| now < entry.history_until);
        entry.map_or(NameHistory::New, |entry| entry.history)
    }

    /// Remembers what came of a look-up, and whether it took long.
    pub(super) fn learn(
        &mut self,
        host: &str,
        answer: Result<FoundName, Unresolved>,
        took_long: bool,
        now: Duration,
    ) {
        let until = now
            + match &answer {
                Ok(found) => found.lifetime.clamp(FOUND.0, FOUND.1),
                Err(unresolved) => {
                    unresolved.lifetime.map_or(FAILED, |said| said.clamp(UNKNOWN.0, UNKNOWN.1))
                }
            };
        let (history, history_until) = match (&answer, took_long) {
            (Ok(_), _) => (NameHistory::Proven, until + PROVEN),
            (Err(_), true) => (NameHistory::Slow, now + SLOW),
            (Err(_), false) => (NameHistory::New, now),
        };
        let known = answer.map(|found| found.addresses).map_err(|unresolved| unresolved.why);
        self.keep(host, KnownName { known: Some(known), until, history, history_until }, now);
    }

    /// Remembers that a look-up took long and was given up before anything came of it.
    pub(super) fn learn_slow(&mut self, host: &str, now: Duration) {
        let history = NameHistory::Slow;
        self.keep(
            host,
            KnownName { known: None, until: now, history, history_until: now + SLOW },
            now,
        );
    }

    fn keep(&mut self, host: &str, entry: KnownName, now: Duration) {
        if self.names.len() >= self.limit && !self.names.contains_key(host) {
            self.make_room(now);
        }
        self.names.insert(host.to_owned(), entry);
    }

    /// Forgets what is over; if nothing is, the name that is over first.
    fn make_room(&mut self, now: Duration) {
        self.names.retain(|_, entry| now < entry.over());
        if self.names.len() >= self.limit {
            let first = self.names.iter().min_by_key(|(_, entry)| entry.over());
            if let Some(first) = first.map(|(host, _)| host.clone()) {
                self.names.remove(&first);
            }
        }
    }
}

impl KnownName {
    fn over(&self) -> Duration {
        self.until.max(self.history_until)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn found(lifetime: u64) -> Result<FoundName, Unresolved> {
        Ok(FoundName { addresses: vec![[192, 0, 2, 1].into()], lifetime: seconds(lifetime) })
    }

    fn unknown(lifetime: Option<u64>) -> Result<FoundName, Unresolved> {
        Err(Unresolved { why: "no".to_owned(), lifetime: lifetime.map(seconds) })
    }

    #[test]
    fn each_kind_is_remembered_for_its_time() {
        for (answer, lifetime) in [
            (found(0), 1),
            (found(30), 30),
            (found(86_400), 3600),
            (unknown(Some(0)), 1),
            (unknown(Some(30)), 30),
            (unknown(Some(86_400)), 60),
            (unknown(None), 1),
        ] {
            let mut memory = NameMemory::new(10);
            let now = seconds(100);
            memory.learn("a", answer.clone(), false, now);
            let end = now + seconds(lifetime);
            assert!(memory.known("a", end - Duration::from_nanos(1)).is_some(), "{answer:?}");
            assert!(memory.known("a", end).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn a_name_stands_as_it_last_did() {
        let mut memory = NameMemory::new(10);
        assert_eq!(memory.history("a", seconds(0)), NameHistory::New);
        memory.learn("a", unknown(None), true, seconds(0));
        assert_eq!(memory.history("a", seconds(59)), NameHistory::Slow);
        assert_eq!(memory.history("a", seconds(60)), NameHistory::New);
        memory.learn("a", found(5), true, seconds(1));
        assert_eq!(memory.history("a", seconds(100)), NameHistory::Proven, "late is not never");
        memory.learn_slow("a", seconds(110));
        assert_eq!(memory.history("a", seconds(111)), NameHistory::Slow);
        assert_eq!(memory.known("a", seconds(111)), None);
        memory.learn("a", unknown(Some(30)), false, seconds(120));
        assert_eq!(memory.history("a", seconds(121)), NameHistory::New);
    }

    proptest! {
        /// However many names there are, so many are remembered, the newest among them.
        #[test]
        fn the_memory_is_bounded(names in prop::collection::vec(("[a-z]{1,2}", 0_u64..90), 1..200)) {
            let mut memory = NameMemory::new(8);
            for (at, (name, lifetime)) in names.iter().enumerate() {
                let now = seconds(at as u64);
                memory.learn(name, found(*lifetime), false, now);
                prop_assert!(memory.names.len() <= 8);
                prop_assert!(memory.known(name, now).is_some());
            }
        }
    }
}
