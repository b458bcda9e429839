//! Takes which records are kept for whom; gives those of nobody as steps.
//!
//! Whoever is stored owns its records, and so does whoever a stored job is removing. Records come
//! after their owner: they are found first and the owner is looked for then, so one that is being
//! made is seen. Owners whose ids were made within the last hour are passed over all the same, and
//! so are messages that may have been received for less.

use std::fmt;
use std::time::Duration;

use flare_core::port::Step;
use flare_core::{Error, ErrorKind, Result};
use mongodb::bson::{Document, doc};

use super::MongoUpkeep;
use super::owner::Owner;
use crate::BACKEND;
use crate::schema::{Area, SCHEMA};

/// Nothing is taken for left over before it is this old.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Records that are kept for an owner.
pub(super) struct Kind {
    area: Area,
    /// What they are called.
    what: &'static str,
    /// What their owner is called.
    of: &'static str,
    /// Where they are, without prefix.
    pub(super) records: &'static str,
    pub(super) place: Place,
    /// Where their owners are, without prefix.
    pub(super) owners: &'static str,
    /// The kind of job that removes them.
    removal: Option<&'static str>,
    /// Whether a subscription of the owner's keeps them, too.
    kept_by_subscriptions: bool,
    /// The field with the time in nanoseconds from which on they are what they are.
    since: Option<&'static str>,
}

/// Where a record says whom it is kept for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// In the first field of its id.
    InId(&'static str),
    /// In a field with an index.
    Field(&'static str),
}

static KINDS: [Kind; 6] = [
    Kind {
        area: Area::Repository,
        what: "rows",
        of: "subscription",
        records: "rows",
        place: Place::InId("subscription"),
        owners: "subscriptions",
        removal: Some("remove-subscription"),
        kept_by_subscriptions: false,
        since: None,
    },
    Kind {
        area: Area::Repository,
        what: "lanes",
        of: "subscription",
        records: "lanes",
        place: Place::InId("subscription"),
        owners: "subscriptions",
        removal: Some("remove-subscription"),
        kept_by_subscriptions: false,
        since: None,
    },
    Kind {
        area: Area::Repository,
        what: "documents",
        of: "resource",
        records: "documents",
        place: Place::InId("resource"),
        owners: "resources",
        removal: Some("remove-resource"),
        kept_by_subscriptions: false,
        since: None,
    },
    Kind {
        area: Area::Repository,
        what: "seat counters",
        of: "resource",
        records: "partitions",
        place: Place::InId("resource"),
        owners: "resources",
        removal: Some("remove-resource"),
        // A fixup would count them again.
        kept_by_subscriptions: true,
        since: None,
    },
    Kind {
        area: Area::Repository,
        what: "rejects",
        of: "consumer",
        records: "rejects",
        place: Place::InId("consumer"),
        owners: "consumers",
        // Whichever node removes a consumer forgets its rejects right after it, and leaves no job.
        removal: None,
        kept_by_subscriptions: false,
        since: None,
    },
    Kind {
        area: Area::Queue,
        what: "messages",
        of: "queue",
        records: "messages",
        place: Place::Field("queue"),
        owners: "queues",
        removal: None,
        kept_by_subscriptions: false,
        // Somebody may make the queue again at any time: what is sent then is never old enough.
        since: Some("at"),
    },
];

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of a {}", self.what, self.of)
    }
}

/// The records of one kind of one owner who is not there.
#[derive(Debug)]
pub(super) struct Orphans {
    pub(super) kind: &'static Kind,
    pub(super) owner: Owner,
}

impl Orphans {
    fn step(&self) -> Step {
        let Kind { what, of, .. } = self.kind;
        let subject = format!("{what} of {of} {}", self.owner.name());
        Step::delete(subject, format!("there is no such {of}"))
    }

    /// What a step removes, if it is one that [`MongoUpkeep::orphans`] could have planned.
    pub(super) fn of_step(area: Area, step: &Step) -> Option<Self> {
        KINDS.iter().filter(|kind| kind.area == area).find_map(|kind| {
            let owner = step.id.strip_prefix(&format!("delete {} of {} ", kind.what, kind.of))?;
            let orphans = Self { kind, owner: Owner::parse(owner)? };
            (orphans.step().id == step.id && kind.can_have(&orphans.owner)).then_some(orphans)
        })
    }

    /// All of these records that are old enough at `now` (milliseconds of the server's clock).
    pub(super) fn filter(&self, now: i64) -> Document {
        let mut filter = self.kind.place.records_of(&self.owner);
        filter.extend(self.kind.old_enough(now));
        filter
    }
}

impl Kind {
    fn can_have(&self, owner: &Owner) -> bool {
        match (self.place, owner) {
            (Place::InId(_), Owner::Id(_)) => true,
            (Place::Field(_), Owner::Name(name)) => Owner::parse(name).as_ref() == Some(owner),
            _ => false,
        }
    }

    pub(super) fn old_enough(&self, now: i64) -> Document {
        let until = now.saturating_sub(grace()).saturating_mul(1_000_000);
        match self.since {
            Some(field) => doc! { field: { "$lt": until } },
            None => Document::new(),
        }
    }
}

fn grace() -> i64 {
    i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX)
}

impl MongoUpkeep {
    /// One step per kind and owner, ordered by both.
    pub(super) async fn orphans(&self) -> Result<Vec<Step>> {
        const OPERATION: &str = "plan";
        let now = self.server_millis(OPERATION).await?;
        let mut steps = Vec::new();
        for kind in KINDS.iter().filter(|kind| kind.area == self.area) {
            for owner in self.ownerless(kind, now).await? {
                let orphans = Orphans { kind, owner };
                if !self.is_orphaned(OPERATION, &orphans, now).await? {
                    continue;
                }
                let records = self.connection.collection(kind.records);
                let count = records.count_documents(orphans.filter(now));
                match self.connection.patiently(OPERATION, count).await? {
                    0 => {}
                    amount => steps.push(orphans.step().amount(amount)),
                }
            }
        }
        Ok(steps)
    }

    /// Whether nobody has these records, or will have.
    pub(super) async fn is_orphaned(
        &self,
        operation: &'static str,
        orphans: &Orphans,
        now: i64,
    ) -> Result<bool> {
        let Orphans { kind, owner } = orphans;
        let young = owner.made_at().is_some_and(|made| made > now.saturating_sub(grace()));
        if young || !kind.can_have(owner) {
            return Ok(false);
        }
        // The owner before the job that removes it, which ends after it.
        let mut keepers = vec![(kind.owners, doc! { "_id": owner.value() })];
        if let Some(removal) = kind.removal {
            keepers.push(("jobs", doc! { "kind": removal, "subject": owner.name() }));
        }
        if kind.kept_by_subscriptions {
            keepers.push(("subscriptions", doc! { "resource": owner.value() }));
        }
        for (collection, keeper) in keepers {
            let collection = self.connection.collection(collection);
            let question = collection.find_one(keeper).projection(doc! { "_id": 1 });
            if self.connection.run(operation, question).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The server's clock, in milliseconds.
    pub(super) async fn server_millis(&self, operation: &'static str) -> Result<i64> {
        let schema = self.connection.collection(SCHEMA);
        // Asked for beside a record that is there, as every pipeline may be and `hello` is not: it
        // may come from a proxy.
        let this = doc! { "$match": { "_id": self.area.name() } };
        let now = doc! { "$project": { "now": { "$toLong": "$$NOW" } } };
        let question = schema.aggregate([this, now]);
        let times = self.connection.all(operation, question, |record| record.number("now")).await?;
        times.first().copied().ok_or_else(|| {
            let error = Error::new(ErrorKind::Conflict, operation).with_backend(BACKEND);
            error.with_detail("the record of the schema's version has just been removed")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_known_by_the_id_of_their_step() {
        for kind in &KINDS {
            let owner = match kind.place {
                Place::InId(_) => Owner::Id([0x5a; 16]),
                Place::Field(_) => Owner::Name("slot-3".to_owned()),
            };
            let orphans = Orphans { kind, owner };
            let mut step = orphans.step();
            let read = Orphans::of_step(kind.area, &step).unwrap();
            assert_eq!(format!("{read:?}"), format!("{orphans:?}"));
            step.id.push_str(" and more");
            assert!(Orphans::of_step(kind.area, &step).is_none());
        }
    }

    #[test]
    fn a_queue_has_no_rows_and_a_subscription_no_messages() {
        let rows = Step::delete("rows of subscription slot-3", "");
        assert!(Orphans::of_step(Area::Repository, &rows).is_none());
        let id = Owner::Id([0x5a; 16]).name();
        let messages = Step::delete(format!("messages of queue {id}"), "");
        assert!(Orphans::of_step(Area::Queue, &messages).is_none());
    }

    #[test]
    fn kinds_name_collections_of_the_schema() {
        let known = Area::Repository.collections();
        for kind in KINDS.iter().filter(|kind| kind.area == Area::Repository) {
            for name in [kind.records, kind.owners] {
                assert!(known.iter().any(|collection| collection.name == name), "{name}");
            }
        }
    }
}
