//! Takes how far versions have been spread, within the writer's transaction; stores it with the documents.

use flare_core::Result;
use flare_core::model::{DocumentKey, PartitionId, Version};
use flare_core::port::{ClosePartition, Closed, OpenPartitions, Opened};
use rusqlite::params;

use super::find::{NumberFinder, name_of};
use crate::codec::document::{self, Head, moved};
use crate::codec::unreadable_record;
use crate::engine::Tx;
use crate::fault::Worked;

/// Stores open sets; the answer is the set that is stored.
pub(super) fn open(tx: &mut Tx<'_>, opens: &[OpenPartitions]) -> Worked<Vec<Result<Opened>>> {
    const OPERATION: &str = "open_partitions";
    tx.each(OPERATION, opens, |tx, OpenPartitions { key, version, partitions }| {
        let Some((n, mut head)) = at_version(tx, OPERATION, key, *version)? else {
            return Ok(Opened::Superseded);
        };
        if !head.is_undispatched() {
            return Ok(Opened::Dispatched);
        }
        if let Some(open) = head.open {
            return Ok(Opened::Open(open));
        }
        head.open = Some(partitions.clone());
        store(tx, n, &head)?;
        Ok(Opened::Open(partitions.clone()))
    })
}

/// Removes partitions from open sets; the removal that empties one dispatches its version.
pub(super) fn close(tx: &mut Tx<'_>, closes: &[ClosePartition]) -> Worked<Vec<Result<Closed>>> {
    const OPERATION: &str = "close_partitions";
    tx.each(OPERATION, closes, |tx, ClosePartition { key, version, partition }| {
        let Some((n, mut head)) = at_version(tx, OPERATION, key, *version)? else {
            return Ok(Closed::Superseded);
        };
        if take_out(&mut head, *partition) {
            store(tx, n, &head)?;
        }
        Ok(if head.is_undispatched() { Closed::Open } else { Closed::Dispatched })
    })
}

fn take_out(head: &mut Head, partition: PartitionId) -> bool {
    let Some(open) = &mut head.open else { return false };
    let before = open.len();
    open.retain(|it| *it != partition);
    let (changed, empty) = (open.len() != before, open.is_empty());
    if empty {
        dispatch(head, head.version);
    }
    changed || empty
}

/// Raises what is dispatched; what was to be done before the version is told of is done with it.
fn dispatch(head: &mut Head, version: Version) {
    head.dispatched = head.dispatched.max(Some(version.min(head.version)));
    if !head.is_undispatched() {
        head.open = None;
        head.moved_from = None;
    }
}

/// Marks versions as spread to all partitions.
pub(in crate::repository) fn mark(
    tx: &mut Tx<'_>,
    versions: &[(DocumentKey, Version)],
) -> Worked<Vec<Result<()>>> {
    const OPERATION: &str = "mark_dispatched";
    // Mostly the version that is stored is the one that was spread.
    let mut newest = tx.sql(
        "UPDATE documents SET dispatched = revision, dispatched_gone = gone, undispatched = 0, \
         open = NULL, moved = NULL \
         WHERE n = ?1 AND revision = ?2 AND gone = ?3 AND +undispatched = 1 AND needs IS NULL",
    )?;
    tx.each(OPERATION, versions, |tx, (key, version)| {
        let Some(resource) = tx.resource(key.resource)? else { return Ok(()) };
        let Some(n) = tx.document(resource, &key.url)? else { return Ok(()) };
        let (revision, gone) = (version.revision().get(), version.is_gone());
        if newest.execute(params![n, revision, gone])? == 1 {
            return Ok(());
        }
        let Some((n, mut head)) = stored(tx, OPERATION, key)? else { return Ok(()) };
        let before = head.dispatched;
        dispatch(&mut head, *version);
        if head.dispatched != before {
            store(tx, n, &head)?;
        }
        Ok(())
    })
}

fn stored(
    tx: &mut Tx<'_>,
    operation: &'static str,
    key: &DocumentKey,
) -> Worked<Option<(i64, Head)>> {
    let Some(resource) = tx.resource(key.resource)? else { return Ok(None) };
    let found = NumberFinder::new(tx.connection)?.find(tx, resource, &key.url)?;
    let Some(found) = found else { return Ok(None) };
    let head = found.head().transpose();
    let head = head.map_err(|why| unreadable_record(operation, name_of(key), why))?;
    Ok(head.map(|head| (found.n, head)))
}

/// A document that is at this version.
fn at_version(
    tx: &mut Tx<'_>,
    operation: &'static str,
    key: &DocumentKey,
    version: Version,
) -> Worked<Option<(i64, Head)>> {
    Ok(stored(tx, operation, key)?.filter(|(_, head)| head.version == version))
}

fn store(tx: &Tx<'_>, n: i64, head: &Head) -> rusqlite::Result<()> {
    let mut update = tx.sql(
        "UPDATE documents SET dispatched = ?2, dispatched_gone = ?3, undispatched = ?4, open = ?5, \
         moved = ?6 WHERE n = ?1",
    )?;
    update.execute(params![
        n,
        head.dispatched.map(|version| version.revision().get()),
        head.dispatched.is_some_and(Version::is_gone),
        head.is_undispatched(),
        head.open.as_deref().map(document::open),
        head.moved_from.map(moved),
    ])?;
    Ok(())
}
