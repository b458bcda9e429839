//! Takes which records are kept for whom; gives those of nobody as steps, and removes them.
//!
//! Whoever is stored owns its records, and so does whoever a stored job is removing. Owners whose ids were made
//! within the last hour are passed over all the same.

use std::time::Duration;

use flare_core::model::{JobKind, ResourceId, SubscriptionId};
use flare_core::port::Step;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::Opened;
use crate::blocking::Reporter;
use crate::codec::{counted, read_id, word};
use crate::fault::Worked;
use crate::time::StoreClock;

/// Nothing is taken for left over before it is this old.
const GRACE: Duration = Duration::from_secs(60 * 60);
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
    id: [u8; 16],
}

impl Owner {
    const ALL: [Self; 2] = [Self::Subscription, Self::Resource];

    fn what(self) -> &'static str {
        match self {
            Self::Subscription => "rows of subscription",
            Self::Resource => "documents of resource",
        }
    }

    /// Numbers of ids that have records and no owner.
    fn find(self) -> &'static str {
        match self {
            Self::Subscription => {
                "SELECT i.id FROM subscription_ids i WHERE i.n NOT IN (SELECT n FROM subscriptions) \
                 AND EXISTS (SELECT 1 FROM rows r WHERE r.subscription = i.n) ORDER BY i.id"
            }
            Self::Resource => {
                "SELECT i.id FROM resource_ids i WHERE i.n NOT IN (SELECT n FROM resources) \
                 AND EXISTS (SELECT 1 FROM documents d WHERE d.resource = i.n AND d.gone <> 2) \
                 ORDER BY i.id"
            }
        }
    }

    fn is_there(self) -> &'static str {
        match self {
            Self::Subscription => "SELECT 1 FROM subscriptions WHERE id = ?1",
            Self::Resource => "SELECT 1 FROM resources WHERE id = ?1",
        }
    }

    fn removal(self) -> JobKind {
        match self {
            Self::Subscription => JobKind::RemoveSubscription,
            Self::Resource => JobKind::RemoveResource,
        }
    }

    fn number(self) -> &'static str {
        match self {
            Self::Subscription => "SELECT n FROM subscription_ids WHERE id = ?1",
            Self::Resource => "SELECT n FROM resource_ids WHERE id = ?1",
        }
    }

    fn count(self) -> &'static str {
        match self {
            Self::Subscription => "SELECT count(*) FROM rows WHERE subscription = ?1",
            Self::Resource => "SELECT count(*) FROM documents WHERE resource = ?1 AND gone <> 2",
        }
    }

    /// Removes some; the names of documents stay for as long as rows have them.
    fn remove(self, connection: &Connection, n: i64) -> rusqlite::Result<usize> {
        match self {
            Self::Subscription => {
                let some = "SELECT document FROM rows WHERE subscription = ?1 LIMIT ?2";
                connection.execute(
                    &format!(
                        "DELETE FROM dead_letters WHERE subscription = ?1 AND document IN ({some})"
                    ),
                    [n, AT_A_TIME],
                )?;
                connection.execute(
                    &format!("DELETE FROM rows WHERE subscription = ?1 AND document IN ({some})"),
                    [n, AT_A_TIME],
                )
            }
            Self::Resource => {
                let some = "SELECT n FROM documents WHERE resource = ?1 AND gone <> 2 LIMIT ?2";
                connection.execute(
                    &format!("DELETE FROM contents WHERE document IN ({some})"),
                    [n, AT_A_TIME],
                )?;
                connection.execute(
                    &format!(
                        "UPDATE documents SET revision = NULL, gone = 2, undispatched = 0, \
                         dispatched = NULL, dispatched_gone = 0, open = NULL, trace = NULL, \
                         moved = NULL, needs = NULL WHERE n IN ({some})"
                    ),
                    [n, AT_A_TIME],
                )
            }
        }
    }
}

impl Orphans {
    fn name(&self) -> String {
        match self.owner {
            Owner::Subscription => SubscriptionId::from_bytes(self.id).to_string(),
            Owner::Resource => ResourceId::from_bytes(self.id).to_string(),
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
            let id = *id.parse::<ResourceId>().ok()?.as_bytes();
            let orphans = Self { owner, id };
            (orphans.step().id == step.id).then_some(orphans)
        })
    }

    /// When its id was made, in milliseconds, if its id says so.
    fn made_at(&self) -> Option<i64> {
        let is_timed = self.id[6] >> 4 == 7;
        let millis = || self.id[..6].iter().fold(0, |millis, byte| millis << 8 | i64::from(*byte));
        is_timed.then(millis)
    }

    /// Whether nobody has these records, or will have.
    fn are_nobodys(&self, connection: &Connection, now: i64) -> rusqlite::Result<bool> {
        let grace = i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX);
        if self.made_at().is_some_and(|made| made > now - grace) {
            return Ok(false);
        }
        if connection.prepare_cached(self.owner.is_there())?.exists([self.id])? {
            return Ok(false);
        }
        let mut removal =
            connection.prepare_cached("SELECT 1 FROM jobs WHERE kind = ?1 AND subject = ?2")?;
        Ok(!removal.exists(params![word(self.owner.removal()), self.name()])?)
    }
}

impl Opened<'_> {
    /// The store's time, in milliseconds.
    fn now(&self) -> rusqlite::Result<i64> {
        let ahead = self.connection.query_row("SELECT ahead FROM store", [], |row| row.get(0))?;
        Ok(StoreClock { ahead }.at(self.file.machine.uptime()).unix_millis())
    }

    /// One step per owner who is not there and has records, ordered by owner.
    pub(super) fn orphans(&self) -> Worked<Vec<Step>> {
        let now = self.now()?;
        let mut steps = Vec::new();
        for owner in Owner::ALL {
            let mut find = self.connection.prepare(owner.find())?;
            let ids = find.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
            for id in ids {
                let Ok(id) = read_id(&id?, "id") else { continue };
                let orphans = Orphans { owner, id };
                if !orphans.are_nobodys(&self.connection, now)? {
                    continue;
                }
                let n: i64 = self.connection.query_row(owner.number(), [id], |row| row.get(0))?;
                let amount = self.connection.query_row(owner.count(), [n], counted)?;
                steps.push(orphans.step().amount(amount));
            }
        }
        Ok(steps)
    }

    /// Removes them bit by bit, looking for the owner again before each; tells whether there were any.
    pub(super) fn sweep(&mut self, orphans: &Orphans, said: &Reporter) -> Worked<bool> {
        let owner = orphans.owner;
        let (mut removed, mut total) = (0, 0);
        loop {
            let now = self.now()?;
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let n: Option<i64> =
                transaction.query_row(owner.number(), [orphans.id], |row| row.get(0)).optional()?;
            let Some(n) = n else { break };
            if !orphans.are_nobodys(&transaction, now)? {
                break;
            }
            total = total.max(removed + transaction.query_row(owner.count(), [n], counted)?);
            let some = owner.remove(&transaction, n)?;
            if some == 0 {
                tidy(&transaction)?;
                transaction.commit()?;
                break;
            }
            transaction.execute("UPDATE store SET forgotten = forgotten + 1", [])?;
            transaction.commit()?;
            removed += some as u64;
            said.advanced(removed, total);
        }
        Ok(removed > 0)
    }
}

/// Forgets names and numbers that nothing has any more.
fn tidy(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "DELETE FROM documents WHERE gone = 2 \
           AND NOT EXISTS (SELECT 1 FROM rows r WHERE r.document = documents.n); \
         DELETE FROM subscription_resources WHERE subscription NOT IN (SELECT n FROM subscriptions) \
           AND NOT EXISTS (SELECT 1 FROM rows r WHERE r.subscription = subscription_resources.subscription); \
         DELETE FROM subscription_ids WHERE n NOT IN (SELECT n FROM subscriptions) \
           AND n NOT IN (SELECT subscription FROM subscription_resources); \
         DELETE FROM resource_ids WHERE n NOT IN (SELECT n FROM resources) \
           AND n NOT IN (SELECT resource FROM subscriptions) \
           AND n NOT IN (SELECT resource FROM subscription_resources) \
           AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.resource = resource_ids.n); \
         UPDATE store SET forgotten = forgotten + 1;",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_known_by_the_id_of_their_step() {
        for owner in Owner::ALL {
            let orphans = Orphans { owner, id: [0x5a; 16] };
            let mut step = orphans.step();
            assert_eq!(Orphans::of_step(&step), Some(orphans));
            step.id.push_str(" and more");
            assert_eq!(Orphans::of_step(&step), None);
        }
    }

    #[test]
    fn an_id_says_when_it_was_made() {
        let mut id = [0; 16];
        id[..6].copy_from_slice(&1_700_000_000_000_u64.to_be_bytes()[2..]);
        id[6] = 0x70;
        assert_eq!(Orphans { owner: Owner::Resource, id }.made_at(), Some(1_700_000_000_000));
        assert_eq!(Orphans { owner: Owner::Resource, id: [0x11; 16] }.made_at(), None);
    }
}
