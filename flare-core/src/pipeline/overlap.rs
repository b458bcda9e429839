//! Takes what each of the resources that match one URL stores of its document; gives where a read,
//! a put or a delete finds it. Decides, and never awaits: `moves` does what follows from it.
//!
//! A document belongs to the most specific resource that matches. Where a more specific one was
//! created after the document was stored, it stays where it is until its next put: that one is
//! written to the more specific resource, with a note of where the document was live, and then
//! makes it gone there. Revisions of two resources are never compared: their fields and formats may
//! differ.
//!
//! # Who may meet whom
//! Only the write to one record is atomic, so between two of them anything may happen.
//! - *Two puts.* Both see the document live in the former resource and both note it; one of them is
//!   *created*, both make the former one gone, which the first of them does. One that stores nothing,
//!   because the other was faster with the same or a newer revision, reads the note that is stored
//!   and finishes that move: the node that stored it may have died.
//! - *A put and a delete.* The delete that looked before the put was written finds the document where
//!   it was, and comes before the put. If the put has made it gone there meanwhile, the delete looks
//!   again and comes after it. One that looks between the two writes of a move sees both live; the
//!   note says which one counts, and the delete finishes the move.
//! - *A read and a put.* Two records are not read at one moment: the new one may be read before it is
//!   written and the former one after it is gone. A tombstone in a less specific resource is
//!   therefore read once more ([`Overlap::is_doubtful`]), and by then the new record is there.
//! - *A put that was matched before the more specific resource was created, and is written late.* It
//!   is stored in the less specific one, as if it had come before the creation. If the more specific
//!   one has got a put of this document meanwhile, both are live. The next put or delete of the
//!   document looks at all resources that match, and the less specific one lets go.
//! - *The deletion of a resource that is called off.* Meanwhile puts went to the less specific one:
//!   the same.
//! - *A move that is finished late*, by the reconciler or a process that was frozen, while the more
//!   specific resource was deleted and the less specific one has got a newer put: the note names the
//!   version that has to go ([`detect_leave`](crate::model::detect_leave)), and the newer one stays.

use crate::model::{Document, DocumentKey, DocumentUrl, MovedFrom, Resource, Version};

/// How one document stands in the resources that match its URL.
#[derive(Debug)]
pub(crate) struct Overlap {
    url: DocumentUrl,
    /// The most specific one first.
    copies: Vec<ResourceCopy>,
}

/// What one of the resources stores of the document.
#[derive(Debug)]
struct ResourceCopy {
    resource: Resource,
    stored: Option<Document>,
}

impl ResourceCopy {
    fn version(&self) -> Option<Version> {
        self.stored.as_ref().map(|stored| stored.version)
    }

    fn live(&self) -> Option<MovedFrom> {
        let version = self.version().filter(|version| !version.is_gone())?;
        Some(MovedFrom::new(self.resource.id, version))
    }

    fn note(&self) -> Option<MovedFrom> {
        self.stored.as_ref()?.moved_from
    }
}

/// Where a delete takes effect.
#[derive(Debug)]
pub(crate) struct Deletion<'a> {
    /// By whose rules it is read.
    pub(crate) resource: &'a Resource,
    /// The document there.
    pub(crate) key: DocumentKey,
    /// It is live there, and might move on before it is deleted.
    pub(crate) may_move: bool,
    /// Where the document moved from, unless that is done.
    pub(crate) unfinished: Option<MovedFrom>,
    /// Where else it is live, least specific first.
    pub(crate) others: Vec<MovedFrom>,
}

impl Overlap {
    /// `stored` has what each of the resources stores, in their order.
    pub(crate) fn new(
        url: DocumentUrl,
        resources: Vec<Resource>,
        stored: impl IntoIterator<Item = Option<Document>>,
    ) -> Self {
        let copies = resources.into_iter().zip(stored);
        let copies = copies.map(|(resource, stored)| ResourceCopy { resource, stored }).collect();
        Self { url, copies }
    }

    /// Where the document is live, the most specific one first. One that it has left, by the note
    /// of a more specific one, does not count any more.
    fn holders(&self) -> impl DoubleEndedIterator<Item = (usize, MovedFrom)> {
        self.copies.iter().enumerate().filter_map(|(at, copy)| {
            let live = copy.live()?;
            let left = self.copies[..at].iter().any(|newer| newer.note() == Some(live));
            (!left).then_some((at, live))
        })
    }

    /// What a put into the most specific resource has to note.
    pub(crate) fn moves_from(&self) -> Option<MovedFrom> {
        self.holders().find(|(at, _)| *at > 0).map(|(_, live)| live)
    }

    /// Where the document of the most specific resource moved from, unless that is done.
    pub(crate) fn unfinished(&self) -> Option<MovedFrom> {
        self.copies.first()?.note()
    }

    /// Whether what the document leaves may have yet to leave another resource itself, which takes a third one.
    pub(crate) fn may_leave_several(&self) -> bool {
        self.copies.len() > 2
    }

    /// Whether nothing is live though a less specific resource had it: it may have moved while the
    /// records were read.
    pub(crate) fn is_doubtful(&self) -> bool {
        let had = |copy: &ResourceCopy| copy.version().is_some_and(Version::is_gone);
        self.holders().next().is_none() && self.copies.iter().skip(1).any(had)
    }

    /// Where a delete takes effect: where the document is live, else where its tombstone is, else
    /// where a put would store it.
    pub(crate) fn deletion(&self) -> Option<Deletion<'_>> {
        let mut holders = self.holders();
        let holder = holders.next().map(|(at, _)| at);
        let tombstone = || self.copies.iter().position(|copy| copy.stored.is_some());
        let at = holder.or_else(tombstone).unwrap_or(0);
        let copy = self.copies.get(at)?;
        Some(Deletion {
            resource: &copy.resource,
            key: DocumentKey::new(copy.resource.id, self.url.clone()),
            may_move: holder.is_some() && at > 0,
            unfinished: copy.note(),
            others: holders.rev().map(|(_, live)| live).collect(),
        })
    }

    /// The document, where it is live.
    pub(crate) fn into_live(self) -> Option<Document> {
        let at = self.holders().next()?.0;
        self.copies.into_iter().nth(at)?.stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChangeRule, Endpoint, ResourceId, Revision, Timestamp};

    fn url() -> DocumentUrl {
        DocumentUrl::parse("http://h/a/b").unwrap()
    }

    fn id(number: u8) -> ResourceId {
        ResourceId::from_bytes([number; 16])
    }

    fn live(r: i64) -> Version {
        Version::live(Revision::new(r))
    }

    fn gone(r: i64) -> Version {
        Version::gone(Revision::new(r))
    }

    fn from(number: u8, r: i64) -> MovedFrom {
        MovedFrom::new(id(number), live(r))
    }

    /// Resources numbered from 0, each with a version and a note.
    fn overlap(stored: &[(Option<Version>, Option<MovedFrom>)]) -> Overlap {
        let resource = |number: usize| {
            let endpoint = Endpoint::parse("http://h/{x}/{y}").unwrap();
            let rule = ChangeRule::new("rev", None).unwrap();
            Resource::new(id(number as u8), endpoint, rule, Timestamp::EPOCH)
        };
        let document = |(number, (version, note)): (usize, &(Option<Version>, _))| {
            let key = DocumentKey::new(id(number as u8), url());
            let mut document = Document::new(key, (*version)?, Timestamp::EPOCH);
            document.moved_from = *note;
            Some(document)
        };
        let resources = (0..stored.len()).map(resource).collect();
        Overlap::new(url(), resources, stored.iter().enumerate().map(document))
    }

    #[test]
    fn a_put_notes_where_the_document_is_live() {
        for (stored, note) in [
            (vec![(None, None), (None, None)], None),
            (vec![(None, None), (Some(live(1)), None)], Some(from(1, 1))),
            (vec![(None, None), (Some(gone(1)), None)], None),
            (vec![(Some(gone(9)), None), (Some(live(1)), None)], Some(from(1, 1))),
            (vec![(Some(live(9)), None), (Some(live(1)), None)], Some(from(1, 1))),
            (vec![(Some(live(9)), Some(from(1, 1))), (Some(live(1)), None)], None),
            (vec![(Some(live(9)), Some(from(1, 1))), (Some(live(2)), None)], Some(from(1, 2))),
            (vec![(None, None), (None, None), (Some(live(3)), None)], Some(from(2, 3))),
            // A move within a move: the middle one looks after the last itself.
            (
                vec![(None, None), (Some(live(2)), Some(from(2, 1))), (Some(live(1)), None)],
                Some(from(1, 2)),
            ),
        ] {
            assert_eq!(overlap(&stored).moves_from(), note, "{stored:?}");
        }
    }

    #[test]
    fn a_delete_takes_effect_where_the_document_is() {
        for (stored, at, may_move, others) in [
            (vec![(None, None), (None, None)], 0, false, vec![]),
            (vec![(None, None), (Some(live(1)), None)], 1, true, vec![]),
            (vec![(None, None), (Some(gone(1)), None)], 1, false, vec![]),
            (vec![(Some(gone(1)), None), (Some(gone(1)), None)], 0, false, vec![]),
            (vec![(Some(gone(1)), None), (Some(live(1)), None)], 1, true, vec![]),
            (vec![(Some(live(1)), None), (Some(gone(1)), None)], 0, false, vec![]),
            (vec![(Some(live(2)), Some(from(1, 1))), (Some(live(1)), None)], 0, false, vec![]),
            (vec![(Some(gone(2)), Some(from(1, 1))), (Some(live(1)), None)], 0, false, vec![]),
            (
                vec![(Some(live(2)), None), (Some(live(5)), None), (Some(live(1)), None)],
                0,
                false,
                vec![from(2, 1), from(1, 5)],
            ),
        ] {
            let overlap = overlap(&stored);
            let deletion = overlap.deletion().unwrap();
            let found = (deletion.key.resource, deletion.may_move, deletion.others);
            assert_eq!(found, (id(at), may_move, others), "{stored:?}");
            assert_eq!(deletion.unfinished, stored[usize::from(at)].1, "{stored:?}");
        }
    }

    #[test]
    fn a_read_finds_the_live_one_and_looks_again_in_doubt() {
        for (stored, found, doubtful) in [
            (vec![(None, None), (None, None)], None, false),
            (vec![(None, None), (Some(live(1)), None)], Some(1), false),
            (vec![(None, None), (Some(gone(1)), None)], None, true),
            (vec![(Some(gone(3)), None), (None, None)], None, false),
            (vec![(Some(gone(3)), None), (Some(live(1)), None)], Some(1), false),
            (vec![(Some(live(3)), None), (Some(gone(1)), None)], Some(0), false),
            (vec![(Some(gone(3)), Some(from(1, 1))), (Some(live(1)), None)], None, false),
        ] {
            let overlap = overlap(&stored);
            assert_eq!(overlap.is_doubtful(), doubtful, "{stored:?}");
            let live = overlap.into_live().map(|document| document.key.resource);
            assert_eq!(live, found.map(id), "{stored:?}");
        }
    }
}
