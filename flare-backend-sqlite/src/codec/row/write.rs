//! Takes rows as they are to be stored; gives the statements that do, and binds them. The usual ways of a row
//! (made, wanting more, settled) have one of their own, which reads nothing first.

use flare_core::model::{Epoch, Present, Round, Row, Spread, SpreadCause, Timestamp, Version};
use rusqlite::{Statement, params};

use super::{ATTEMPTED_GONE, GIVEN_UP_GONE, PRESENT, RowPlace, SETTLED_GONE, WANTED_GONE, present};
use crate::codec::{count, time};

/// Stores all of a row that is there; [`update`] binds it.
pub(crate) const UPDATE: &str = "UPDATE rows SET pending = ?3, state = ?4, wanted = ?5, settled = ?6, \
     due = ?7, since = ?8, generation = ?9, epoch = ?10, given_up = ?11, attempted = ?12, attempts = ?13, \
     first_failure = ?14, round = ?15, not_before = ?16, demanded = ?17, claim = ?18, claim_until = ?19, \
     claim_held = ?20, dead = ?21 WHERE subscription = ?1 AND document = ?2";

/// Stores a row as `Row::new` makes it; [`insert`] binds it.
pub(crate) const INSERT: &str = "INSERT INTO rows (subscription, document, bucket, state, wanted, due, since, \
     generation, round, pending, epoch, attempts, demanded, dead) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, 0, 0, 0, 0)";

/// What `Row::spread` does because of a change to a row that has nothing left to tell and wants less, and that
/// becomes pending by it: the usual case, in one statement. Any other is read and written.
pub(crate) const RESTART: &str = "UPDATE rows SET wanted = ?3, state = (state & ~9) | ?4, pending = 1, \
     generation = max(generation, ?5), due = max(?6, coalesce(not_before, ?6)), since = ?6, attempts = 0, \
     attempted = NULL, first_failure = NULL, demanded = 0 \
     WHERE subscription = ?1 AND document = ?2 AND pending = 0 AND wanted < ?3 \
     AND (settled IS NULL OR settled < ?3) AND (given_up IS NULL OR given_up < ?3) \
     AND claim IS NULL AND state BETWEEN 0 AND 47 AND needs IS NULL";

/// What `Row::apply` does to settle a version of a row that was never given up: the usual case, in one
/// statement. Any other is read and written.
pub(crate) const SETTLE: &str = "UPDATE rows SET settled = ?3, state = (state & ~58) | ?4, epoch = ?5, \
     pending = wanted > ?3 OR (wanted = ?3 AND (state & 1) > ?6), attempts = 0, attempted = NULL, \
     first_failure = NULL, demanded = 0, not_before = coalesce(?8, not_before), \
     due = max(due, coalesce(?8, due)) \
     WHERE subscription = ?1 AND document = ?2 AND epoch <= ?5 AND round = ?7 \
     AND (settled IS NULL OR settled < ?3) AND given_up IS NULL AND dead = 0 \
     AND state BETWEEN 0 AND 47 AND needs IS NULL";

/// Runs [`UPDATE`].
pub(crate) fn update(
    statement: &mut Statement<'_>,
    place: RowPlace,
    row: &Row,
) -> rusqlite::Result<()> {
    let revision = |version: Option<Version>| version.map(|version| version.revision().get());
    let claim = row.claim.as_ref();
    statement.execute(params![
        place.subscription,
        place.document,
        row.is_pending(),
        state(row),
        row.wanted.revision().get(),
        revision(row.settled),
        time(row.due),
        time(row.since),
        count(row.generation.get()),
        count(row.epoch.get()),
        revision(row.given_up),
        revision(row.attempted),
        row.attempts,
        row.first_failure.map(time),
        count(row.round.get()),
        row.not_before.map(time),
        row.demanded,
        claim.map(|claim| claim.id.as_bytes().as_slice()),
        claim.map(|claim| time(claim.until)),
        claim.map(|claim| present(claim.held)),
        row.dead.is_some(),
    ])?;
    Ok(())
}

/// Runs [`INSERT`] for a row that spread makes now.
pub(crate) fn insert(
    statement: &mut Statement<'_>,
    place: RowPlace,
    spread: &Spread,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let row = Row::new(spread, now);
    statement.execute([
        place.subscription,
        place.document,
        row.bucket().number().into(),
        state(&row),
        row.wanted.revision().get(),
        time(row.due),
        time(row.since),
        count(row.generation.get()),
        count(row.round.get()),
    ])?;
    Ok(())
}

/// Runs [`RESTART`], if that is what is to be done; tells whether the row was as it says.
pub(crate) fn restart(
    statement: &mut Statement<'_>,
    place: RowPlace,
    spread: &Spread,
    now: Timestamp,
) -> rusqlite::Result<bool> {
    if !matches!(spread.cause, SpreadCause::Change | SpreadCause::Refused) {
        return Ok(false);
    }
    let gone = i64::from(spread.wanted.is_gone()) * WANTED_GONE;
    let changed = statement.execute([
        place.subscription,
        place.document,
        spread.wanted.revision().get(),
        gone,
        count(spread.generation.get()),
        time(now),
    ])?;
    Ok(changed == 1)
}

/// A version that a lane's owner settles.
pub(crate) struct Settled {
    pub(crate) epoch: Epoch,
    pub(crate) round: Round,
    pub(crate) version: Version,
    pub(crate) present: Present,
    pub(crate) not_before: Option<Timestamp>,
}

/// Runs [`SETTLE`]; tells whether the row was as it says.
pub(crate) fn settle(
    statement: &mut Statement<'_>,
    place: RowPlace,
    settled: &Settled,
) -> rusqlite::Result<bool> {
    let gone = i64::from(settled.version.is_gone());
    let changed = statement.execute(params![
        place.subscription,
        place.document,
        settled.version.revision().get(),
        (gone * SETTLED_GONE) | (present(settled.present) << PRESENT),
        count(settled.epoch.get()),
        gone,
        count(settled.round.get()),
        settled.not_before.map(time),
    ])?;
    Ok(changed == 1)
}

/// Which of a row's versions are gone, and what the client holds.
fn state(row: &Row) -> i64 {
    let gone = |version: Option<Version>, bit: i64| match version {
        Some(version) if version.is_gone() => bit,
        _ => 0,
    };
    gone(Some(row.wanted), WANTED_GONE)
        | gone(row.settled, SETTLED_GONE)
        | gone(row.given_up, GIVEN_UP_GONE)
        | gone(row.attempted, ATTEMPTED_GONE)
        | (present(row.present) << PRESENT)
}

#[cfg(test)]
mod tests {
    use flare_core::model::{DocumentKey, DocumentUrl, Generation, ResourceId, SubscriptionId};

    use super::*;

    /// What [`INSERT`] says without being told.
    #[test]
    fn a_new_row_is_pending_and_has_nothing_behind_it() {
        let url = DocumentUrl::parse("http://a.example/1").unwrap();
        let document = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
        let wanted = Version::live(7.into());
        let spread =
            Spread::new(SubscriptionId::from_bytes([2; 16]), Generation::new(1), document, wanted);
        for cause in [SpreadCause::Change, SpreadCause::Resync(Round::new(3))] {
            let row = Row::new(&spread.clone().because(cause), Timestamp::EPOCH);
            assert!(row.is_pending() && !row.demanded);
            assert_eq!((row.settled, row.given_up, row.attempted), (None, None, None));
            assert_eq!(
                (row.dead, row.claim, row.not_before, row.first_failure),
                (None, None, None, None)
            );
            assert_eq!((row.epoch, row.attempts), (Epoch::ZERO, 0));
        }
    }

    /// The numbers that the statements have for the bits.
    #[test]
    fn the_bits_are_those_of_the_statements() {
        assert_eq!(WANTED_GONE | ATTEMPTED_GONE, 9);
        assert_eq!(SETTLED_GONE | ATTEMPTED_GONE | (3 << PRESENT), 58);
        assert_eq!(super::super::LARGEST_STATE, 47);
    }
}
