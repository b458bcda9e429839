//! Takes the passing of time; gives what has outlived its retention forgotten: details of dead
//! letters, tombstones that everybody was told of, and their rows. Comes round again and again.

use std::collections::BTreeMap;

use futures::StreamExt;

use super::held::{Ended, Held, Next};
use crate::error::Result;
use crate::model::{ResourceId, RowKey, Timestamp, Version};
use crate::port::{DocumentHead, Member, RowRemoval};

/// What the job that does this works on; there is one.
pub(super) const SUBJECT: &str = "retention";

/// Has a turn at expiry: the whole of a pass.
///
/// Tombstones go in two passes. The first removes settled rows; the second, once no spread task of
/// that time lives any more, the tombstones that still have no row. In between a late task may have
/// made a row anew, which could never be settled if its document were gone.
pub(super) async fn expire(held: &mut Held<'_>) -> Result<Next, Ended> {
    let settings = &held.context().settings;
    if let Some(until) = waiting_for(held.job().cursor.as_deref()) {
        // Whoever drops out of the second pass starts over with the first: rows that went in this
        // one have not been gone for long enough.
        held.keep_at(None).await?;
        clear(held, until, Pass::Second).await?;
        return Ok(Next::Later { cursor: None, after: settings.expire_every });
    }
    drop_dead_letters(held).await?;
    let until = held.now() - settings.tombstone_retention;
    Ok(match clear(held, until, Pass::First).await? {
        0 => Next::Later { cursor: None, after: settings.expire_every },
        _ => Next::Later { cursor: Some(cursor(until)), after: settings.task_lifetime },
    })
}

fn cursor(until: Timestamp) -> String {
    until.unix_nanos().to_string()
}

/// The tombstones a second pass is about; `None` before a first one.
fn waiting_for(cursor: Option<&str>) -> Option<Timestamp> {
    cursor?.parse().ok().map(Timestamp::from_unix_nanos)
}

async fn drop_dead_letters(held: &mut Held<'_>) -> Result<(), Ended> {
    let context = held.context();
    let until = held.now() - context.settings.dead_letter_retention;
    let limit = context.batch_limit();
    loop {
        let dropped = context.repository.drop_dead_letters(until, limit).await?;
        held.keep().await?;
        if dropped < limit as u64 {
            return Ok(());
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Second,
}

/// Goes over all tombstones stored by `until`; tells how many there are.
async fn clear(held: &mut Held<'_>, until: Timestamp, pass: Pass) -> Result<usize, Ended> {
    let context = held.context();
    let mut found = 0;
    let mut pages = context.repository.tombstones(until).chunks(context.batch_limit());
    while let Some(page) = pages.next().await {
        found += page.len();
        let mut by_resource: BTreeMap<ResourceId, Vec<DocumentHead>> = BTreeMap::new();
        for tombstone in page {
            let tombstone = tombstone?;
            by_resource.entry(tombstone.key.resource).or_default().push(tombstone);
        }
        for (resource, tombstones) in by_resource {
            let bare = clear_rows(held, resource, &tombstones).await?;
            let bare = tombstones.iter().zip(bare).filter(|(_, bare)| *bare);
            for (tombstone, _) in bare.filter(|_| pass == Pass::Second) {
                context.repository.remove_document(&tombstone.key, tombstone.version).await?;
            }
        }
        held.keep().await?;
    }
    Ok(found)
}

/// Removes the settled rows of tombstones of one resource; tells of each tombstone whether it had
/// none at all.
async fn clear_rows(
    held: &mut Held<'_>,
    resource: ResourceId,
    tombstones: &[DocumentHead],
) -> Result<Vec<bool>, Ended> {
    let context = held.context();
    let limit = context.batch_limit();
    let mut bare = vec![true; tombstones.len()];
    let mut rows = Vec::with_capacity(limit);
    for partition in context.repository.partitions(resource).await? {
        for member in context.repository.members(resource, partition).await? {
            for (place, tombstone) in tombstones.iter().enumerate() {
                rows.push((place, row(&member, tombstone)));
                if rows.len() == limit {
                    remove_rows(held, std::mem::take(&mut rows), &mut bare).await?;
                }
            }
        }
    }
    remove_rows(held, rows, &mut bare).await?;
    Ok(bare)
}

fn row(member: &Member, tombstone: &DocumentHead) -> (RowKey, Version) {
    (RowKey::new(member.subscription, tombstone.key.url.clone()), tombstone.version)
}

/// Removes the settled ones of a batch of rows; notes which tombstones had one.
async fn remove_rows(
    held: &mut Held<'_>,
    rows: Vec<(usize, (RowKey, Version))>,
    bare: &mut [bool],
) -> Result<(), Ended> {
    if rows.is_empty() {
        return Ok(());
    }
    let (places, rows): (Vec<usize>, Vec<_>) = rows.into_iter().unzip();
    let removals = held.context().repository.remove_settled_rows(rows).await;
    for (place, removal) in places.into_iter().zip(removals) {
        bare[place] &= removal? == RowRemoval::Missing;
    }
    held.keep().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_pass_has_a_cursor() {
        let until = Timestamp::from_unix_millis(-5);
        assert_eq!(waiting_for(Some(&cursor(until))), Some(until));
        for first in [None, Some(""), Some("of another version")] {
            assert_eq!(waiting_for(first), None);
        }
    }
}
