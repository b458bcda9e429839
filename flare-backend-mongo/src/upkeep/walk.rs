//! Takes all owners there are, in order; gives those that records name and that are not among them.
//! Asks only for what lies between known owners, many gaps at a time, so its cost grows with the
//! number of owners and not with that of records: a question about a hundred gaps takes as long as a
//! dozen about one.

use flare_core::Result;
use flare_core::model::RecordKind;
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, doc};

use super::MongoUpkeep;
use super::orphans::{Kind, Place};
use super::owner::Owner;
use crate::record::Record;

const OPERATION: &str = "plan";
/// How many gaps one question is about at most.
const GAPS: usize = 100;

/// What lies between two owners, neither of them included.
#[derive(Debug, Clone, PartialEq)]
struct Gap {
    after: Option<Owner>,
    before: Option<Owner>,
}

impl Place {
    /// Where the owner is named, in a question and in an answer's order.
    fn path(self) -> &'static str {
        match self {
            Self::InId(_) => "_id",
            Self::Field(field) => field,
        }
    }

    /// All records of an owner.
    pub(super) fn records_of(self, owner: &Owner) -> Document {
        match self {
            Self::InId(_) => {
                doc! { "_id": { "$gte": self.start(owner), "$lt": self.end(owner) } }
            }
            Self::Field(field) => doc! { field: owner.value() },
        }
    }

    /// What sorts before all records of an owner, and after those of all before it.
    fn start(self, owner: &Owner) -> Bson {
        match self {
            // A record that is cut short sorts before all that go on.
            Self::InId(field) => doc! { field: owner.value() }.into(),
            Self::Field(_) => owner.value(),
        }
    }

    fn end(self, owner: &Owner) -> Bson {
        match self {
            Self::InId(field) => doc! { field: owner.value(), "end": Bson::MaxKey }.into(),
            Self::Field(_) => owner.value(),
        }
    }

    fn within(self, gap: &Gap) -> Document {
        let mut range = match (&gap.after, self) {
            (Some(after), _) => doc! { "$gt": self.end(after) },
            // Only ids, and names, are compared with these at all.
            (None, Self::InId(_)) => doc! { "$gte": {} },
            (None, Self::Field(_)) => doc! { "$gte": "" },
        };
        if let Some(before) = &gap.before {
            range.insert("$lt", self.start(before));
        }
        doc! { self.path(): range }
    }

    /// Whom a record is kept for, if it is laid out as Flare's are.
    fn owner(self, record: &Document) -> Option<Owner> {
        match self {
            Self::InId(field) => match record.get_document("_id").ok()?.iter().next()? {
                (first, value) if first == field => {
                    Owner::read(value).filter(|owner| matches!(owner, Owner::Id(_)))
                }
                _ => None,
            },
            Self::Field(field) => Owner::read(record.get(field)?),
        }
    }
}

/// The gaps around these owners, from `after` on; to the very end if there are no more owners.
fn gaps(after: Option<&Owner>, owners: &[Owner], last: bool) -> Vec<Gap> {
    let mut after = after.cloned();
    let mut gaps = Vec::with_capacity(owners.len() + 1);
    for owner in owners {
        gaps.push(Gap { after: after.take(), before: Some(owner.clone()) });
        after = Some(owner.clone());
    }
    if last {
        gaps.push(Gap { after, before: None });
    }
    gaps
}

/// What is left of the gaps behind an owner who was found in one of them.
fn behind(owner: &Owner, mut gaps: Vec<Gap>) -> Vec<Gap> {
    gaps.retain(|gap| gap.before.as_ref().is_none_or(|before| before > owner));
    if let Some(first) = gaps.first_mut()
        && first.after.as_ref().is_none_or(|after| after < owner)
    {
        first.after = Some(owner.clone());
    }
    gaps
}

impl MongoUpkeep {
    /// Owners that records of this kind name and that are not stored, in order. Those that were
    /// stored meanwhile are among them: look again.
    pub(super) async fn ownerless(&self, kind: &Kind, now: i64) -> Result<Vec<Owner>> {
        let owners = self.connection.collection(kind.owners);
        let all = async move {
            owners.find(doc! {}).sort(doc! { "_id": 1 }).projection(doc! { "_id": 1 }).await
        };
        let read = |record: Record<'_>| Ok(record.any("_id").and_then(Owner::read));
        let mut owners = self.connection.scan(OPERATION, RecordKind::Subscription, all, read);
        let mut found = Vec::new();
        let mut after = None;
        let mut last = false;
        while !last {
            let mut some = Vec::with_capacity(GAPS);
            while some.len() < GAPS && !last {
                match owners.try_next().await? {
                    None => last = true,
                    Some(owner) => some.extend(owner),
                }
            }
            found.extend(self.in_gaps(kind, gaps(after.as_ref(), &some, last), now).await?);
            after = some.pop().or(after);
        }
        Ok(found)
    }

    /// The owners that records in these gaps name.
    async fn in_gaps(&self, kind: &Kind, mut gaps: Vec<Gap>, now: i64) -> Result<Vec<Owner>> {
        let (place, path) = (kind.place, kind.place.path());
        let records = self.connection.collection(kind.records);
        let mut found: Vec<Owner> = Vec::new();
        let mut foreign: Vec<Bson> = Vec::new();
        let mut width = GAPS;
        while !gaps.is_empty() {
            let asked = width.min(gaps.len());
            let ranges = gaps.iter().take(asked).map(|gap| place.within(gap));
            let ranges: Vec<Document> = ranges.collect();
            let mut conditions = vec![doc! { "$or": ranges }];
            if !foreign.is_empty() {
                conditions.push(doc! { "_id": { "$nin": foreign.clone() } });
            }
            let mut filter = doc! { "$and": conditions };
            filter.extend(kind.old_enough(now));
            let question =
                records.find_one(filter).sort(doc! { path: 1 }).projection(doc! { path: 1 });
            let Some(record) = self.connection.patiently(OPERATION, question).await? else {
                gaps.drain(..asked);
                width = (width * 2).min(GAPS);
                continue;
            };
            match place.owner(&record) {
                Some(owner) if found.last().is_none_or(|last| *last < owner) => {
                    gaps = behind(&owner, gaps);
                    found.push(owner);
                    // Where one was left over there are often more.
                    width = 1;
                }
                // Somebody else's, though it lies among ours.
                _ => foreign.extend(record.get("_id").cloned()),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(number: u8) -> Owner {
        Owner::Id([number; 16])
    }

    fn gap(after: Option<u8>, before: Option<u8>) -> Gap {
        Gap { after: after.map(owner), before: before.map(owner) }
    }

    #[test]
    fn gaps_leave_out_the_known_owners_only() {
        assert_eq!(gaps(None, &[], true), [gap(None, None)]);
        let around = [gap(None, Some(3)), gap(Some(3), Some(5)), gap(Some(5), None)];
        assert_eq!(gaps(None, &[owner(3), owner(5)], true), around);
        let from = [gap(Some(1), Some(3))];
        assert_eq!(gaps(Some(&owner(1)), &[owner(3)], false), from);
    }

    #[test]
    fn the_search_goes_on_behind_what_was_found() {
        let all = gaps(None, &[owner(3), owner(5)], true);
        let rest = behind(&owner(4), all.clone());
        assert_eq!(rest, [gap(Some(4), Some(5)), gap(Some(5), None)]);
        assert_eq!(behind(&owner(9), all.clone()), [gap(Some(9), None)]);
        assert_eq!(behind(&owner(1), all.clone())[0], gap(Some(1), Some(3)));
        assert_eq!(behind(&owner(3), all)[0], gap(Some(3), Some(5)), "one that came meanwhile");
    }

    #[test]
    fn only_records_laid_out_as_ours_have_an_owner() {
        let place = Place::InId("resource");
        let id = owner(1).value();
        let ours = doc! { "_id": { "resource": id.clone(), "url": "http://a" } };
        assert_eq!(place.owner(&ours), Some(owner(1)));
        for foreign in [
            doc! { "_id": "text" },
            doc! { "_id": {} },
            doc! { "_id": { "url": "http://a", "resource": id.clone() } },
            doc! { "_id": { "resource": "text" } },
            doc! { "resource": id },
        ] {
            assert_eq!(place.owner(&foreign), None, "{foreign}");
        }
    }
}
