//! What a node is in its cluster, and the figures the cluster holds itself to.

use std::time::Duration;

use super::record::Roles;
use crate::model::Invalid;
use crate::model::duration::{MAX_DURATION, TOO_LONG};

/// What a node is called, what it weighs and what it may do in the cluster of its stores. All nodes
/// should agree on all but `name`, `roles`, `weight` and `shed_load`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// What this node is called. Need not be unique; a node that keeps its name over restarts is
    /// given much of what it had.
    pub name: String,
    /// What it may be used for.
    pub roles: Roles,
    /// Its part of the slots, in relation to the others' weights. With 0 it stands by: it works slots
    /// only while no node with a weight is there.
    pub weight: u32,
    /// How long a node that died keeps its slots from others. Asked of the store, which may grant
    /// more.
    pub ttl: Duration,
    /// Longest wait for one answer of a store.
    pub call_limit: Duration,
    /// How long a node has to be there before slots are moved to it.
    pub settle_after: Duration,
    /// Most slots that are moved at a time only to balance, in percent of all.
    pub move_percent: u32,
    /// How long after such a move the next one may begin.
    pub move_every: Duration,
    /// How long a node may take to give a slot up; then it is taken. At least `ttl`.
    pub hand_over_limit: Duration,
    /// How often a node's load is published, if it changed.
    pub publish_every: Duration,
    /// Whether the node lowers its own weight while it is overloaded: by a quarter after a minute of
    /// it, at most to a quarter, and back in steps after long calm. A host that knows better turns it
    /// off and sets the weight itself ([`ClusterHandle::set_weight`](super::ClusterHandle::set_weight)).
    pub shed_load: bool,
    /// How often all keys are read again, for a watch may have gone silent.
    pub sweep_every: Duration,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            name: "flare".to_owned(),
            roles: Roles::ALL,
            weight: 100,
            ttl: Duration::from_secs(15),
            call_limit: Duration::from_secs(3),
            settle_after: Duration::from_secs(5),
            move_percent: 5,
            move_every: Duration::from_secs(2),
            hand_over_limit: Duration::from_secs(30),
            publish_every: Duration::from_secs(10),
            shed_load: true,
            sweep_every: Duration::from_secs(60),
        }
    }
}

impl ClusterSettings {
    /// Refuses figures that contradict each other.
    pub fn check(&self) -> Result<(), Invalid> {
        let rules = [
            (self.name.is_empty(), "name", "is empty"),
            (self.weight > 1_000_000, "weight", "must be at most 1000000"),
            (self.ttl < Duration::from_secs(1), "ttl", "must be at least 1s"),
            (self.call_limit.is_zero(), "call-limit", "must not be zero"),
            // A call that hangs must leave time for another one while the lease is trusted.
            (self.call_limit > self.ttl / 4, "call-limit", "must be at most a quarter of ttl"),
            (self.hand_over_limit < self.ttl, "hand-over-limit", "must be at least ttl"),
            (self.move_percent == 0, "move-percent", "must be at least 1"),
            (self.move_percent > 100, "move-percent", "must be at most 100"),
            (self.publish_every.is_zero(), "publish-every", "must not be zero"),
            (self.sweep_every < self.ttl, "sweep-every", "must be at least ttl"),
            (self.ttl > MAX_DURATION, "ttl", TOO_LONG),
            (self.settle_after > MAX_DURATION, "settle-after", TOO_LONG),
            (self.move_every > MAX_DURATION, "move-every", TOO_LONG),
            (self.hand_over_limit > MAX_DURATION, "hand-over-limit", TOO_LONG),
            (self.publish_every > MAX_DURATION, "publish-every", TOO_LONG),
            (self.sweep_every > MAX_DURATION, "sweep-every", TOO_LONG),
        ];
        match rules.into_iter().find(|(broken, ..)| *broken) {
            Some((_, field, reason)) => Err(Invalid::new(field, reason)),
            None => Ok(()),
        }
    }

    /// How many slots may move at a time only to balance.
    pub(crate) fn moves(&self, slots: u32) -> usize {
        let share = u64::from(slots) * u64::from(self.move_percent) / 100;
        usize::try_from(share).unwrap_or(usize::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_sound_and_contradictions_name_their_field() {
        let sound = ClusterSettings::default();
        assert_eq!(sound.check(), Ok(()));
        assert_eq!((sound.moves(1_024), sound.moves(3)), (51, 1));
        let secs = Duration::from_secs;
        for (field, broken) in [
            ("hand-over-limit", ClusterSettings { hand_over_limit: secs(14), ..sound.clone() }),
            ("call-limit", ClusterSettings { call_limit: secs(4), ..sound.clone() }),
            ("name", ClusterSettings { name: String::new(), ..sound.clone() }),
            ("move-percent", ClusterSettings { move_percent: 0, ..sound.clone() }),
        ] {
            assert_eq!(broken.check().unwrap_err().field(), field);
        }
    }

    #[test]
    fn a_time_that_cannot_be_added_to_another_is_refused_by_its_name() {
        type Spoil = fn(&mut ClusterSettings);
        let table: [(&str, Spoil); 7] = [
            ("ttl", |it| (it.ttl, it.hand_over_limit, it.sweep_every) = (MAX, MAX, MAX)),
            ("call-limit", |it| it.call_limit = MAX),
            ("settle-after", |it| it.settle_after = MAX),
            ("move-every", |it| it.move_every = MAX),
            ("hand-over-limit", |it| it.hand_over_limit = MAX),
            ("publish-every", |it| it.publish_every = MAX),
            ("sweep-every", |it| it.sweep_every = MAX),
        ];
        const MAX: Duration = Duration::MAX;
        for (field, spoil) in table {
            let mut settings = ClusterSettings::default();
            spoil(&mut settings);
            assert_eq!(settings.check().unwrap_err().field(), field);
        }
    }
}
