//! Takes which records are kept for whom; gives those of nobody as steps, and removes them.
//!
//! Whoever is stored owns its records, and so does whoever a stored job is removing. Owners whose ids were made
//! within the last hour are passed over all the same.

use flare_core::Result;
use flare_core::model::{JobKind, ResourceId, SubscriptionId};
use flare_core::port::{Step, StepProgress};
use uuid::Uuid;

use super::PostgresUpkeep;
use crate::codec::{counted, word};
use crate::connection::{Session, Value};
use crate::fault::Worked;

/// Records that are removed in one transaction: others write between two of them.
const AT_A_TIME: i64 = 1_000;

/// Whom records are kept for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Subscription,
    Resource,
}

/// The records of an owner who is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orphans {
    owner: Owner,
    id: Uuid,
}

/// Whether an id `i.id` was made more than an hour ago, as far as it says: it begins with the milliseconds.
macro_rules! old {
    () => {
        "(substr(i.id::text, 15, 1) <> '7' OR \
          ('x' || lpad(substr(replace(i.id::text, '-', ''), 1, 12), 16, '0'))::bit(64)::bigint \
              < flare.now() / 1000000 - 3600000)"
    };
}

/// Whether nobody has, or will have, the records of an owner.
macro_rules! nobodys {
    ($owners:literal) => {
        concat!(
            old!(),
            " AND NOT EXISTS (SELECT 1 FROM flare.",
            $owners,
            " o WHERE o.id = i.id) \
             AND NOT EXISTS (SELECT 1 FROM flare.jobs j WHERE j.kind = $1 AND j.subject = i.id::text)"
        )
    };
}

impl Owner {
    const ALL: [Self; 2] = [Self::Subscription, Self::Resource];

    fn what(self) -> &'static str {
        match self {
            Self::Subscription => "rows of subscription",
            Self::Resource => "documents of resource",
        }
    }

    fn removal(self) -> JobKind {
        match self {
            Self::Subscription => JobKind::RemoveSubscription,
            Self::Resource => JobKind::RemoveResource,
        }
    }

    /// Ids that have records and no owner.
    fn find(self) -> &'static str {
        match self {
            Self::Subscription => concat!(
                "SELECT i.id FROM flare.subscription_ids i WHERE ",
                nobodys!("subscriptions"),
                " AND EXISTS (SELECT 1 FROM flare.rows r WHERE r.subscription = i.n) ORDER BY i.id"
            ),
            Self::Resource => concat!(
                "SELECT i.id FROM flare.resource_ids i WHERE ",
                nobodys!("resources"),
                " AND EXISTS (SELECT 1 FROM flare.documents d WHERE d.resource = i.n AND d.gone <> 2) \
                 ORDER BY i.id"
            ),
        }
    }

    /// How many records an owner has who is not there.
    fn count(self) -> &'static str {
        match self {
            Self::Subscription => concat!(
                "SELECT count(*) FROM flare.rows r JOIN flare.subscription_ids i ON i.n = r.subscription \
                 WHERE i.id = $2 AND ",
                nobodys!("subscriptions")
            ),
            Self::Resource => concat!(
                "SELECT count(*) FROM flare.documents d JOIN flare.resource_ids i ON i.n = d.resource \
                 WHERE d.gone <> 2 AND i.id = $2 AND ",
                nobodys!("resources")
            ),
        }
    }

    /// Locks some of those records; gives the numbers of their documents.
    fn lock(self) -> &'static str {
        match self {
            Self::Subscription => concat!(
                "SELECT r.document FROM flare.rows r JOIN flare.subscription_ids i ON i.n = r.subscription \
                 WHERE i.id = $2 AND ",
                nobodys!("subscriptions"),
                " ORDER BY r.document LIMIT $3 FOR UPDATE OF r"
            ),
            Self::Resource => concat!(
                "SELECT d.n FROM flare.documents d JOIN flare.resource_ids i ON i.n = d.resource \
                 WHERE d.gone <> 2 AND i.id = $2 AND ",
                nobodys!("resources"),
                " ORDER BY d.n LIMIT $3 FOR UPDATE OF d"
            ),
        }
    }
}

impl Orphans {
    fn name(&self) -> String {
        match self.owner {
            Owner::Subscription => SubscriptionId::from_bytes(self.id.into_bytes()).to_string(),
            Owner::Resource => ResourceId::from_bytes(self.id.into_bytes()).to_string(),
        }
    }

    fn step(&self) -> Step {
        let reason = match self.owner {
            Owner::Subscription => "there is no such subscription",
            Owner::Resource => "there is no such resource",
        };
        Step::delete(format!("{} {}", self.owner.what(), self.name()), reason)
    }

    /// What a step removes, if it is one that could have been planned.
    pub(super) fn of_step(step: &Step) -> Option<Self> {
        Owner::ALL.into_iter().find_map(|owner| {
            let id = step.id.strip_prefix(&format!("delete {} ", owner.what()))?;
            let id = Uuid::from_bytes(*id.parse::<ResourceId>().ok()?.as_bytes());
            let orphans = Self { owner, id };
            (orphans.step().id == step.id).then_some(orphans)
        })
    }

    async fn count(&self, session: &mut Session<'_>) -> Worked<u64> {
        let kind = word(self.owner.removal());
        let values: [&dyn Value; 2] = [&kind, &self.id];
        counted(session.query_opt(self.owner.count(), &values).await?.as_ref())
    }
}

impl PostgresUpkeep {
    /// One step per owner who is not there and has records, ordered by owner.
    pub(super) async fn orphans(&self) -> Result<Vec<Step>> {
        self.database.patiently("plan", || self.look_for_orphans()).await
    }

    async fn look_for_orphans(&self) -> Worked<Vec<Step>> {
        let mut session = self.database.session("plan").await?;
        let mut steps = Vec::new();
        for owner in Owner::ALL {
            for row in session.query(owner.find(), &[&word(owner.removal())]).await? {
                let orphans = Orphans { owner, id: row.try_get(0)? };
                steps.push(orphans.step().amount(orphans.count(&mut session).await?));
            }
        }
        Ok(steps)
    }

    /// Removes them bit by bit, looking for the owner again before each; tells whether there were any.
    pub(super) async fn sweep(&self, orphans: &Orphans, said: &dyn StepProgress) -> Result<bool> {
        let database = &self.database;
        let count = || async { orphans.count(&mut database.session("apply").await?).await };
        let total = database.patiently("apply", count).await?;
        let mut removed = 0;
        loop {
            let some = database.patiently("apply", || self.sweep_some(orphans)).await?;
            if some == 0 {
                return Ok(removed > 0);
            }
            removed += some;
            said.advanced(removed.min(total), Some(total));
        }
    }

    async fn sweep_some(&self, orphans: &Orphans) -> Worked<u64> {
        const ROWS: &str = "DELETE FROM flare.rows WHERE document = ANY($1) \
             AND subscription = (SELECT n FROM flare.subscription_ids WHERE id = $2)";
        const CONTENTS: &str = "WITH t AS (DELETE FROM flare.tombstones WHERE document = ANY($1)) \
             DELETE FROM flare.contents WHERE document = ANY($1)";
        // A name stays for as long as rows have it.
        const NAMES: &str = "UPDATE flare.documents SET revision = NULL, gone = 2, undispatched = false, \
             dispatched = NULL, dispatched_gone = 0, open = NULL, trace = NULL, moved = NULL, needs = NULL \
             WHERE n = ANY($1)";
        const UNUSED: &str = "DELETE FROM flare.documents d WHERE d.n = ANY($1) AND d.gone = 2 \
             AND NOT EXISTS (SELECT 1 FROM flare.rows r WHERE r.document = d.n)";
        let kind = word(orphans.owner.removal());
        let mut session = self.database.session("apply").await?;
        let values: [&dyn Value; 3] = [&kind, &orphans.id, &AT_A_TIME];
        let found = session.begin(orphans.owner.lock(), &values).await?;
        let numbers = found.iter().map(|row| row.try_get(0));
        let numbers = numbers.collect::<std::result::Result<Vec<i64>, _>>()?;
        match orphans.owner {
            Owner::Subscription => {
                session.finish(ROWS, &[&numbers, &orphans.id]).await?;
            }
            Owner::Resource => {
                session.query(CONTENTS, &[&numbers]).await?;
                session.query(NAMES, &[&numbers]).await?;
                session.finish(UNUSED, &[&numbers]).await?;
            }
        }
        Ok(numbers.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_known_by_the_id_of_their_step() {
        for owner in Owner::ALL {
            let orphans = Orphans { owner, id: Uuid::from_bytes([0x5a; 16]) };
            let mut step = orphans.step();
            assert_eq!(Orphans::of_step(&step), Some(orphans));
            step.id.push_str(" and more");
            assert_eq!(Orphans::of_step(&step), None);
        }
    }
}
