//! Takes the documents of a batch of tasks; gives those that still have to be spread, for one read
//! of the store. A task that comes twice, or late, costs no more than that.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::batch::batches;
use super::context::Context;
use super::load::Documents;
use crate::error::Result;
use crate::model::{Document, DocumentKey, DocumentUrl, PartitionId, ResourceId, Version};

/// What was read longer ago is read again before more is written: meanwhile another node may have
/// got the same tasks, and done them.
const FRESH: Duration = Duration::from_secs(2);

/// How far the documents of one resource had been spread when they were read.
#[derive(Debug)]
pub(super) struct Outstanding {
    resource: ResourceId,
    /// `None` for what is gone from the store, or cannot be read.
    heads: HashMap<DocumentUrl, Option<Document>>,
    /// Of the monotonic clock; `None` if nothing was read yet.
    read_at: Option<Duration>,
}

impl Outstanding {
    /// Nothing is known of a resource's documents before it has to be: the store sees by itself what is left
    /// of them, if it can spread them at once.
    pub(super) fn unread(resource: ResourceId) -> Self {
        Self { resource, heads: HashMap::new(), read_at: None }
    }

    /// Reads all documents together, and gives them by resource. One that cannot be read counts as
    /// gone: it stays undispatched, so that a node that can read it finds it.
    pub(super) async fn read(
        context: &Context,
        keys: BTreeSet<DocumentKey>,
    ) -> Result<HashMap<ResourceId, Self>> {
        let read_at = Some(context.clock.monotonic());
        let mut all: HashMap<ResourceId, Self> = HashMap::new();
        for keys in batches(context.batch_limit(), keys) {
            let read = |keys| context.repository.document_heads(keys);
            let heads = context.each_readable(keys.clone(), read).await?;
            for (DocumentKey { resource, url }, head) in keys.into_iter().zip(heads) {
                let fresh = || Self { resource, heads: HashMap::new(), read_at };
                let head = head.ok().flatten();
                all.entry(resource).or_insert_with(fresh).heads.insert(url, head);
            }
        }
        Ok(all)
    }

    /// Leaves those documents that still have to be spread, to one partition if it is named. If that
    /// was read a while ago it is read again.
    pub(super) async fn keep(
        &mut self,
        context: &Context,
        partition: Option<PartitionId>,
        documents: &mut Documents,
    ) -> Result<()> {
        let now = context.clock.monotonic();
        if self.read_at.is_none_or(|read_at| now.saturating_sub(read_at) >= FRESH) {
            let key = |url: &DocumentUrl| DocumentKey::new(self.resource, url.clone());
            let newer = Self::read(context, documents.keys().map(key).collect()).await?;
            for (_, newer) in newer {
                self.heads.extend(newer.heads);
                self.read_at = newer.read_at;
            }
        }
        documents.retain(|url, version| self.has(url, *version, partition));
        Ok(())
    }

    /// Whether a version still has to be spread, to one partition if it is named. What is gone from
    /// the store has nothing left to tell.
    pub(super) fn has(
        &self,
        url: &DocumentUrl,
        version: Version,
        partition: Option<PartitionId>,
    ) -> bool {
        match self.heads.get(url) {
            None => true,
            Some(None) => false,
            Some(Some(head)) => owes(head, version, partition),
        }
    }
}

/// Whether a task to spread a version, to one partition if it is named, still has something to do.
///
/// A version that is not the stored one has nothing: the write that replaced it announced the newer
/// version, and the reconciler finds that one if its task is lost. Where no partitions are noted any
/// of them may be the one that is missing.
fn owes(head: &Document, version: Version, partition: Option<PartitionId>) -> bool {
    let open = match (partition, &head.open) {
        (Some(partition), Some(open)) => open.contains(&partition),
        _ => true,
    };
    open && head.owes(version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Revision, Timestamp};

    fn live(revision: i64) -> Version {
        Version::live(Revision::new(revision))
    }

    /// A document at revision 2, dispatched up to a version and open to partitions.
    fn head(dispatched: Option<Version>, open: Option<&[u32]>) -> Document {
        let url = DocumentUrl::parse("http://a.example/users/1").unwrap();
        let key = DocumentKey::new(ResourceId::from_bytes([1; 16]), url);
        let mut head = Document::new(key, live(2), Timestamp::EPOCH);
        head.dispatched = dispatched;
        head.open = open.map(|open| open.iter().copied().map(PartitionId::new).collect());
        head
    }

    #[test]
    fn only_what_is_stored_undispatched_and_open_is_left_to_do() {
        let (gone, none) = (Version::gone(Revision::new(2)), None::<&[u32]>);
        let cases = [
            (head(None, none), live(2), None, true),
            (head(Some(live(1)), none), live(2), Some(7), true),
            (head(Some(live(1)), none), live(1), None, false),
            (head(None, none), gone, None, false),
            (head(None, none), live(3), Some(7), false),
            (head(Some(live(2)), none), live(2), None, false),
            (head(Some(live(2)), none), live(2), Some(7), false),
            (head(None, Some(&[7, 9])), live(2), None, true),
            (head(None, Some(&[7, 9])), live(2), Some(7), true),
            (head(None, Some(&[7, 9])), live(2), Some(8), false),
            (head(None, Some(&[7, 9])), live(1), Some(7), false),
        ];
        for (head, version, partition, left) in cases {
            let found = owes(&head, version, partition.map(PartitionId::new));
            assert_eq!(found, left, "{version} to {partition:?} of {head:?}");
        }
    }
}
