//! Takes changes to the rows of one subscription; gives them in the orders the port asks for:
//! by due time, by time of death.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use flare_core::model::{
    BucketRange, DeadLetterId, DocumentKey, DocumentUrl, LaneState, ResourceId, Row, Spread,
    SubscriptionId, Timestamp,
};
use flare_core::port::{Pending, PendingQuery};

use super::compact::CompactRow;

/// The rows of one subscription, and its lanes' states.
#[derive(Debug)]
pub(super) struct RowTable {
    subscription: SubscriptionId,
    /// All of a subscription's documents are of one resource.
    resource: Option<ResourceId>,
    rows: HashMap<DocumentUrl, CompactRow>,
    /// Derived: the pending rows, earliest due first.
    pending: BTreeSet<(Timestamp, DocumentUrl)>,
    /// Derived: those of them that were demanded.
    demanded: BTreeSet<(Timestamp, DocumentUrl)>,
    /// Derived: the dead letters, earliest death first.
    dead: BTreeMap<(Timestamp, DeadLetterId), DocumentUrl>,
    pub(super) lanes: BTreeMap<u16, LaneState>,
}

/// Where a row stands in the derived orders.
#[derive(PartialEq)]
struct Places {
    due: Option<Timestamp>,
    demanded: Option<Timestamp>,
    dead: Option<(Timestamp, DeadLetterId)>,
}

impl Places {
    fn of(row: &Row) -> Self {
        Self {
            due: row.is_pending().then_some(row.due),
            demanded: (row.is_pending() && row.demanded).then_some(row.due),
            dead: row.dead.as_ref().map(|dead| (dead.died_at, dead.id)),
        }
    }

    const NONE: Self = Self { due: None, demanded: None, dead: None };
}

impl RowTable {
    pub(super) fn new(subscription: SubscriptionId) -> Self {
        Self {
            subscription,
            resource: None,
            rows: HashMap::new(),
            pending: BTreeSet::new(),
            demanded: BTreeSet::new(),
            dead: BTreeMap::new(),
            lanes: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.lanes.is_empty()
    }

    /// Makes a row want a version; `intern` gives the key a new row is kept under. Gives the URL it is
    /// kept under if the row is new.
    pub(super) fn spread(
        &mut self,
        spread: &Spread,
        now: Timestamp,
        intern: impl FnOnce(&DocumentKey) -> DocumentKey,
    ) -> Option<DocumentUrl> {
        self.resource = Some(spread.document.resource);
        if self.change(&spread.document.url, |row| row.spread(spread, now)).is_some() {
            return None;
        }
        if !spread.makes_row() {
            return None;
        }
        let spread = Spread { document: intern(&spread.document), ..spread.clone() };
        let row = Row::new(&spread, now);
        self.index(&row.key.url, &Places::NONE, &Places::of(&row));
        let url = row.key.url.clone();
        self.rows.insert(url.clone(), CompactRow::pack(row));
        Some(url)
    }

    /// Applies `change` to a row, and keeps the derived orders right.
    pub(super) fn change<R>(
        &mut self,
        url: &DocumentUrl,
        change: impl FnOnce(&mut Row) -> R,
    ) -> Option<R> {
        let mut row = self.get(url)?;
        let before = Places::of(&row);
        let answer = change(&mut row);
        // The stored key, not the caller's: equal, but shared with the document.
        self.index(&row.key.url, &before, &Places::of(&row));
        self.rows.insert(row.key.url.clone(), CompactRow::pack(row));
        Some(answer)
    }

    fn index(&mut self, url: &DocumentUrl, before: &Places, after: &Places) {
        moved(&mut self.pending, url, before.due, after.due);
        moved(&mut self.demanded, url, before.demanded, after.demanded);
        if before.dead != after.dead {
            if let Some(place) = before.dead {
                self.dead.remove(&place);
            }
            if let Some(place) = after.dead {
                self.dead.insert(place, url.clone());
            }
        }
    }

    pub(super) fn get(&self, url: &DocumentUrl) -> Option<Row> {
        let (url, row) = self.rows.get_key_value(url)?;
        let document = DocumentKey::new(self.resource?, url.clone());
        Some(row.unpack(self.subscription, document))
    }

    pub(super) fn pending(&self, query: &PendingQuery) -> Vec<Row> {
        let due_by = query.due_by.unwrap_or(Timestamp::MAX);
        let among = if query.demanded { &self.demanded } else { &self.pending };
        let due = among.iter().take_while(|(due, _)| *due <= due_by).map(|(_, url)| url);
        // With one lane every bucket is in it, and none needs to be worked out.
        due.filter(|url| query.buckets == BucketRange::ALL || query.buckets.contains(url.bucket()))
            .filter_map(|url| self.get(url))
            .take(query.limit)
            .collect()
    }

    /// The pending rows due by a time, earliest first.
    pub(super) fn due_by(&self, time: Timestamp) -> impl Iterator<Item = &DocumentUrl> {
        self.pending.iter().take_while(move |(due, _)| *due <= time).map(|(_, url)| url)
    }

    /// The pending rows due after a time.
    pub(super) fn due_after(&self, time: Timestamp) -> impl Iterator<Item = &DocumentUrl> {
        self.pending.iter().rev().take_while(move |(due, _)| *due > time).map(|(_, url)| url)
    }

    pub(super) fn count_pending(&self) -> Pending {
        let rows = self.pending.iter().filter_map(|(_, url)| self.rows.get(url));
        let oldest = rows.map(CompactRow::since).min();
        let next_due = self.pending.first().map(|(due, _)| *due);
        Pending::new(self.pending.len() as u64, oldest, next_due)
    }

    pub(super) fn count_dead(&self) -> usize {
        self.dead.len()
    }

    pub(super) fn dead(&self) -> impl Iterator<Item = Row> + '_ {
        self.dead.values().filter_map(|url| self.get(url))
    }

    pub(super) fn find_dead(&self, ids: &HashSet<DeadLetterId>) -> HashMap<DeadLetterId, Row> {
        let wanted = self.dead.iter().filter(|((_, id), _)| ids.contains(id));
        wanted.filter_map(|((_, id), url)| Some((*id, self.get(url)?))).collect()
    }

    pub(super) fn died_by(&self, time: Timestamp) -> impl Iterator<Item = &DocumentUrl> {
        self.dead.iter().take_while(move |((died, _), _)| *died <= time).map(|(_, url)| url)
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = &DocumentUrl> {
        self.rows.keys()
    }

    pub(super) fn remove(&mut self, url: &DocumentUrl) {
        if let Some(row) = self.get(url) {
            self.index(url, &Places::of(&row), &Places::NONE);
            self.rows.remove(url);
        }
    }
}

/// Keeps one of the orders by due time right.
fn moved(
    order: &mut BTreeSet<(Timestamp, DocumentUrl)>,
    url: &DocumentUrl,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
) {
    if before == after {
        return;
    }
    if let Some(due) = before {
        order.remove(&(due, url.clone()));
    }
    if let Some(due) = after {
        order.insert((due, url.clone()));
    }
}
