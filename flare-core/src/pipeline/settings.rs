//! Takes the host's wishes; gives the figures the stages hold themselves to.

use std::time::Duration;

use crate::model::duration::{MAX_DURATION, TOO_LONG};
use crate::model::{Invalid, Placement};
use crate::tools::setters;

/// In seconds.
const DAY: u64 = 24 * 3_600;

/// How the pipeline works; every figure has a default that suits most hosts.
///
/// ```
/// use std::time::Duration;
/// use flare_core::Settings;
///
/// let settings = Settings::default().timeout(Duration::from_secs(3)).concurrency(8);
/// assert_eq!(settings.check(), Ok(()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[non_exhaustive]
pub struct Settings {
    /// Most subscriptions in a partition.
    pub partition_limit: u32,
    /// Slots that lanes are hashed onto; `None`: as many as suit the queue
    /// ([`QueueFacts::slots`](crate::port::QueueFacts::slots)). All runtimes on the same stores must
    /// agree on it. A power of two is best: a node then reads no other subscriptions than those it
    /// works. With an odd number it reads all, with an odd factor as many times more as that.
    pub slots: Option<u32>,
    /// Slots beside those, each for one subscription at a time
    /// ([`Flare::pin`](crate::Flare::pin)). All runtimes on the same stores must agree on it, and a
    /// cluster on the number it began with.
    pub pinned_slots: u32,
    /// Where wake-ups of lanes wait. All runtimes on the same stores must agree on it. To change it:
    /// set up the queues it needs
    /// ([`QueueUpkeep::placed`](crate::upkeep::QueueUpkeep::placed)), restart, clean up the old ones;
    /// what was in them is found in the stores.
    pub placement: Placement,
    /// Workers on a queue between stages: one always, the others while there is much in it. While all
    /// of them are at something long, one more looks after the resources that they are not at.
    pub workers: usize,
    /// Most messages a stage takes at a time.
    pub batch: usize,
    /// Most calls that put or delete under way, however quick the store is, and most that wait for a
    /// moment to be; one more is answered *busy*.
    pub ingest_limit: usize,
    /// How long a put may wait for those before it. Of calls that put or delete only as many are
    /// under way as the store has lately answered within this time (16 always); one more waits for a
    /// quarter of it and is then answered *busy*. Longer for a store that needs nearly as much for a
    /// single put.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub ingest_wait: Duration,
    /// Requests in flight for a subscription that does not say.
    pub concurrency: u32,
    /// Requests in flight for all subscriptions together, beside one for each, which is its own: no
    /// more than this and one for each are ever in flight. Of these a subscription may have as many as
    /// are left for others (half of them, if it is alone), and all that are slow, or have not answered
    /// yet, half together: so those that are not slow find some, whatever the others do. Slow is a
    /// client most of whose answers take longer than half a second.
    pub in_flight_limit: usize,
    /// Bytes of documents in memory for all lanes together, from reading them to the answer, beside
    /// one document for each lane, which is its own; shared like requests in flight.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::size"))]
    pub content_limit: usize,
    /// Those of them that are younger than `young_for`: what keeps the processor busy.
    pub young_limit: usize,
    /// When a request counts as waiting for a slow client and makes room for another one.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub young_for: Duration,
    /// Time for one request of a subscription that does not say.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub timeout: Duration,
    /// The longest a version is tried, whatever a subscription's `ttl` says, and where it says
    /// nothing.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub max_ttl: Duration,
    /// The longest a client may have itself held by `Retry-After`.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub hold_limit: Duration,
    /// A client that only fails for this long is suspended.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub suspend_after: Duration,
    /// Bytes of a client's answer that are kept.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::size"))]
    pub excerpt_limit: usize,
    /// How often changes are looked for whose spreading got lost.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub reconcile_every: Duration,
    /// How often a lane looks for rows whose wake-up got lost.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub rederive_every: Duration,
    /// How often all subscriptions of a node's slots are read, for a change of one may have gone unnoticed, and
    /// all queues that are needed are looked for.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub sweep_every: Duration,
    /// How often stored jobs are looked for: removals after a deletion, expiry.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub jobs_every: Duration,
    /// The longest a spread task may live, from the reading of the subscriptions to the writing
    /// of the last row: what it leaves behind after a deletion is removed once that has passed.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub task_lifetime: Duration,
    /// How often what is past its retention is looked for.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub expire_every: Duration,
    /// How long it is known that a document was deleted, once all were told: a put at or below
    /// that revision is stale for as long.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub tombstone_retention: Duration,
    /// How long a dead letter is listed and can be replayed.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub dead_letter_retention: Duration,
    /// Most entries of the log of what operators and nodes did ([`Flare::audit_log`](crate::Flare::audit_log));
    /// with 0 none is stored.
    pub audit_limit: u32,
    /// How long they are kept.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub audit_retention: Duration,
    /// How often lag and queue depths are counted for the metrics, if there are any.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub sample_every: Duration,
    /// How many subscriptions, and how many consumers, have metrics of their own: those furthest behind and those that
    /// fail most; the others are counted together. Zero for none.
    pub metered_subscriptions: usize,
    /// How long a shutdown may take: until other nodes, if there are any, have taken over, and requests
    /// in flight are finished.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub drain_limit: Duration,
    /// Which ways of a change may be short. For tests: the long ones do the same, and are there for whatever
    /// the short ones cannot do.
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub shortcuts: Shortcuts,
}

/// Which ways of a change may be short.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortcuts {
    /// Documents of a resource with one partition are spread in one call of the store.
    pub spread_at_once: bool,
    /// Lanes of this process are told without a queue, and handed what was written for them.
    pub hand_over: bool,
}

impl Shortcuts {
    /// All of them, or none.
    pub const fn new(taken: bool) -> Self {
        Self { spread_at_once: taken, hand_over: taken }
    }
}

setters!(Settings {
    partition_limit: u32,
    slots: impl Into<Option<u32>>,
    pinned_slots: u32,
    placement: Placement,
    workers: usize,
    batch: usize,
    ingest_limit: usize,
    ingest_wait: Duration,
    concurrency: u32,
    in_flight_limit: usize,
    content_limit: usize,
    young_limit: usize,
    young_for: Duration,
    timeout: Duration,
    max_ttl: Duration,
    hold_limit: Duration,
    suspend_after: Duration,
    excerpt_limit: usize,
    reconcile_every: Duration,
    rederive_every: Duration,
    sweep_every: Duration,
    jobs_every: Duration,
    task_lifetime: Duration,
    expire_every: Duration,
    tombstone_retention: Duration,
    dead_letter_retention: Duration,
    audit_limit: u32,
    audit_retention: Duration,
    sample_every: Duration,
    metered_subscriptions: usize,
    drain_limit: Duration,
});

impl Settings {
    /// Refuses figures that would make the work impossible.
    pub fn check(&self) -> Result<(), Invalid> {
        let positive = [
            ("partition_limit", self.partition_limit as usize),
            ("slots", self.slots.map_or(1, |slots| slots as usize)),
            ("workers", self.workers),
            ("batch", self.batch),
            ("ingest_limit", self.ingest_limit),
            ("concurrency", self.concurrency as usize),
            ("in_flight_limit", self.in_flight_limit),
            ("content_limit", self.content_limit),
            ("young_limit", self.young_limit),
        ];
        let times = [
            ("ingest_wait", self.ingest_wait),
            ("timeout", self.timeout),
            ("max_ttl", self.max_ttl),
            ("suspend_after", self.suspend_after),
            ("reconcile_every", self.reconcile_every),
            ("rederive_every", self.rederive_every),
            ("sweep_every", self.sweep_every),
            ("sample_every", self.sample_every),
            ("jobs_every", self.jobs_every),
            ("task_lifetime", self.task_lifetime),
            ("expire_every", self.expire_every),
            ("tombstone_retention", self.tombstone_retention),
            ("dead_letter_retention", self.dead_letter_retention),
            ("audit_retention", self.audit_retention),
        ];
        let may_be_nothing = [
            ("young_for", self.young_for),
            ("hold_limit", self.hold_limit),
            ("drain_limit", self.drain_limit),
        ];
        let none = positive.into_iter().find(|(_, value)| *value == 0);
        let none = none.map(|(field, _)| (field, "must be at least 1"));
        let empty = times.into_iter().find(|(_, time)| time.is_zero());
        let empty = empty.map(|(field, _)| (field, "must be longer than nothing"));
        let long = times.into_iter().chain(may_be_nothing).find(|(_, time)| *time > MAX_DURATION);
        let long = long.map(|(field, _)| (field, TOO_LONG));
        match none.or(empty).or(long) {
            Some((field, reason)) => Err(Invalid::new(field, reason)),
            None => Ok(()),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            partition_limit: 1_000,
            slots: None,
            pinned_slots: 0,
            placement: Placement::Shared,
            workers: 4,
            batch: 100,
            ingest_limit: 1_024,
            ingest_wait: Duration::from_millis(400),
            concurrency: 32,
            in_flight_limit: 1_024,
            content_limit: 16 << 20,
            young_limit: 128,
            young_for: Duration::from_millis(20),
            timeout: Duration::from_secs(10),
            max_ttl: Duration::from_hours(7 * 24),
            hold_limit: Duration::from_hours(24),
            suspend_after: Duration::from_hours(5 * 24),
            excerpt_limit: 1_024,
            reconcile_every: Duration::from_secs(5),
            rederive_every: Duration::from_secs(60),
            sweep_every: Duration::from_secs(300),
            jobs_every: Duration::from_secs(2),
            task_lifetime: Duration::from_secs(15 * 60),
            expire_every: Duration::from_secs(3_600),
            tombstone_retention: Duration::from_secs(7 * DAY),
            dead_letter_retention: Duration::from_secs(30 * DAY),
            audit_limit: 10_000,
            audit_retention: Duration::from_secs(90 * DAY),
            sample_every: Duration::from_secs(15),
            metered_subscriptions: 100,
            drain_limit: Duration::from_secs(15),
            shortcuts: Shortcuts::new(true),
        }
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_says_only_what_differs() {
        let said = r#"{"max-ttl":"72h","content-limit":"1MiB","slots":64,"placement":"isolated"}"#;
        let meant = Settings::default().max_ttl(Duration::from_hours(72)).content_limit(1 << 20);
        let meant = meant.slots(64).placement(Placement::Isolated);
        assert_eq!(serde_json::from_str::<Settings>(said).unwrap(), meant);
        let shown = serde_json::to_string(&meant).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&shown).unwrap(), meant);
        for wrong in [r#"{"max_ttl":"72h"}"#, r#"{"shortcuts":null}"#, r#"{"timeout":10}"#] {
            assert!(serde_json::from_str::<Settings>(wrong).is_err(), "{wrong}");
        }
    }
}
