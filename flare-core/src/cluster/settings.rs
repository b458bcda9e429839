//! What a node is in its cluster, and the figures the cluster holds itself to.

use std::time::Duration;

use super::record::Roles;
use crate::model::Invalid;
use crate::model::duration::{MAX_DURATION, TOO_LONG};
use crate::tools::setters;

/// What a node is called, what it weighs and what it may do in the cluster of its stores. All nodes
/// should agree on all but `name`, `roles`, `weight` and `shed_load`.
///
/// ```
/// use flare_core::cluster::{ClusterSettings, Roles};
///
/// let settings = ClusterSettings::default().name("eu-1").roles(Roles::NOT_ELIGIBLE);
/// assert_eq!(settings.check(), Ok(()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields, default)
)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// What this node is called. Need not be unique; a node that keeps its name over restarts is
    /// given much of what it had.
    pub name: String,
    /// What it may be used for.
    #[cfg_attr(feature = "serde", serde(with = "listed"))]
    pub roles: Roles,
    /// Its part of the slots, in relation to the others' weights. With 0 it stands by: it works slots
    /// only while no node with a weight is there.
    pub weight: u32,
    /// How long a node that died keeps its slots from others. Asked of the store, which may grant
    /// more.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub ttl: Duration,
    /// Longest wait for one answer of a store.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub call_limit: Duration,
    /// How long a node has to be there before slots are moved to it.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub settle_after: Duration,
    /// Most slots that are moved at a time only to balance, in percent of all.
    pub move_percent: u32,
    /// How long after such a move the next one may begin.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub move_every: Duration,
    /// How long a node may take to give a slot up; then it is taken. At least `ttl`.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub hand_over_limit: Duration,
    /// How often a node's load is published, if it changed.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
    pub publish_every: Duration,
    /// Whether the node lowers its own weight while it is overloaded: by a quarter after a minute of
    /// it, at most to a quarter, and back in steps after long calm. A host that knows better turns it
    /// off and sets the weight itself ([`ClusterHandle::set_weight`](super::ClusterHandle::set_weight)).
    pub shed_load: bool,
    /// How often all keys are read again, for a watch may have gone silent.
    #[cfg_attr(feature = "serde", serde(with = "crate::model::duration"))]
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

setters!(ClusterSettings {
    name: impl Into<String>,
    roles: Roles,
    weight: u32,
    ttl: Duration,
    call_limit: Duration,
    settle_after: Duration,
    move_percent: u32,
    move_every: Duration,
    hand_over_limit: Duration,
    publish_every: Duration,
    shed_load: bool,
    sweep_every: Duration,
});

impl ClusterSettings {
    /// Refuses figures that contradict each other.
    pub fn check(&self) -> Result<(), Invalid> {
        let rules = [
            (self.name.is_empty(), "name", "is empty"),
            (self.weight > 1_000_000, "weight", "must be at most 1000000"),
            (self.ttl < Duration::from_secs(1), "ttl", "must be at least 1s"),
            (self.call_limit.is_zero(), "call_limit", "must not be zero"),
            // A call that hangs must leave time for another one while the lease is trusted.
            (self.call_limit > self.ttl / 4, "call_limit", "must be at most a quarter of ttl"),
            (self.hand_over_limit < self.ttl, "hand_over_limit", "must be at least ttl"),
            (self.move_percent == 0, "move_percent", "must be at least 1"),
            (self.move_percent > 100, "move_percent", "must be at most 100"),
            (self.publish_every.is_zero(), "publish_every", "must not be zero"),
            (self.sweep_every < self.ttl, "sweep_every", "must be at least ttl"),
            (self.ttl > MAX_DURATION, "ttl", TOO_LONG),
            (self.settle_after > MAX_DURATION, "settle_after", TOO_LONG),
            (self.move_every > MAX_DURATION, "move_every", TOO_LONG),
            (self.hand_over_limit > MAX_DURATION, "hand_over_limit", TOO_LONG),
            (self.publish_every > MAX_DURATION, "publish_every", TOO_LONG),
            (self.sweep_every > MAX_DURATION, "sweep_every", TOO_LONG),
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

/// Roles as a configuration lists them: `["lead", "work", "ingest"]`. What is stored of a node has a form of
/// its own.
#[cfg(feature = "serde")]
mod listed {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Roles;

    #[derive(PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Role {
        Lead,
        Work,
        Ingest,
    }

    pub(super) fn serialize<S: Serializer>(
        roles: &Roles,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let all =
            [(Role::Lead, roles.leads), (Role::Work, roles.works), (Role::Ingest, roles.ingests)];
        serializer.collect_seq(all.iter().filter(|(_, has)| *has).map(|(role, _)| role))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Roles, D::Error> {
        let listed = Vec::<Role>::deserialize(deserializer)?;
        if listed.is_empty() {
            let reason = "must have at least one of \"lead\", \"work\", \"ingest\"";
            return Err(D::Error::custom(reason));
        }
        let has = |role| listed.contains(&role);
        Ok(Roles { leads: has(Role::Lead), works: has(Role::Work), ingests: has(Role::Ingest) })
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
            ("hand_over_limit", ClusterSettings { hand_over_limit: secs(14), ..sound.clone() }),
            ("call_limit", ClusterSettings { call_limit: secs(4), ..sound.clone() }),
            ("name", ClusterSettings { name: String::new(), ..sound.clone() }),
            ("move_percent", ClusterSettings { move_percent: 0, ..sound.clone() }),
        ] {
            assert_eq!(broken.check().unwrap_err().field(), field);
        }
    }

    #[test]
    fn a_time_that_cannot_be_added_to_another_is_refused_by_its_name() {
        type Spoil = fn(&mut ClusterSettings);
        let table: [(&str, Spoil); 7] = [
            ("ttl", |it| (it.ttl, it.hand_over_limit, it.sweep_every) = (MAX, MAX, MAX)),
            ("call_limit", |it| it.call_limit = MAX),
            ("settle_after", |it| it.settle_after = MAX),
            ("move_every", |it| it.move_every = MAX),
            ("hand_over_limit", |it| it.hand_over_limit = MAX),
            ("publish_every", |it| it.publish_every = MAX),
            ("sweep_every", |it| it.sweep_every = MAX),
        ];
        const MAX: Duration = Duration::MAX;
        for (field, spoil) in table {
            let mut settings = ClusterSettings::default();
            spoil(&mut settings);
            assert_eq!(settings.check().unwrap_err().field(), field);
        }
    }

    #[cfg(feature = "serde")]
    #[test]
    fn a_configuration_lists_the_roles_and_writes_times_as_people_do() {
        let said = r#"{"name":"eu-1","roles":["work","lead"],"ttl":"5s","shed-load":false}"#;
        let read: ClusterSettings = serde_json::from_str(said).unwrap();
        let meant = ClusterSettings::default().name("eu-1").ttl(Duration::from_secs(5));
        let mut meant = meant.shed_load(false);
        meant.roles.ingests = false;
        assert_eq!(read, meant);
        let shown = serde_json::to_value(&read).unwrap();
        assert_eq!(shown["roles"], serde_json::json!(["lead", "work"]));
        assert_eq!(shown["call-limit"], "3s");
        for wrong in
            [r#"{"roles":[]}"#, r#"{"roles":["rule"]}"#, r#"{"ttl":5}"#, r#"{"call_limit":"1s"}"#]
        {
            assert!(serde_json::from_str::<ClusterSettings>(wrong).is_err(), "{wrong}");
        }
    }
}
