//! Takes the members of a partition and documents that changed; gives which of them make a row: those that
//! the member's filter wants, and those whose client may have been told of them before.
//!
//! A document that a filter refuses makes no row for a client that was never told of it. That has to stay
//! true whatever else happens to the same document at the same time. The lane is the judge: it reads the
//! newest version and the newest filter before it tells anything. So a row too many costs a silent
//! settlement, and only a row that is missing could do harm. It does not:
//!
//! - *A newer version is stored while this one is spread.* What is read and judged here is the newest. If
//!   that is refused, no row is made; the newer version has a spread of its own, which judges it again.
//!   Whichever version is the last has a spread that began after it was stored, and judged it.
//! - *A row is made beside this, by the late spread of an older version that was wanted, or by a backfill.*
//!   Which rows there are is read after the document was, so a row that is not found is made later: its lane
//!   loads it after that, and reads this version or a newer one. A row that was there is found, and wants
//!   this version as after any change.
//! - *The filter is replaced meanwhile.* Members are read after the document was stored. A replacement that
//!   returned before the put was called is among them by its generation, and a filter is only remembered
//!   for the generation it was read with. One that is under way may be seen or not: a new filter acts from
//!   each document's next change on.
//! - *A filter, a document or the resource cannot be read.* Then the row is made, for a node that can.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use futures::future::join_all;

use crate::error::Result;
use crate::model::{
    DocumentKey, DocumentUrl, Filter, FilterVerdict, Generation, RecordName, Resource, ResourceId,
    SpreadCause, Subscription, SubscriptionId,
};
use crate::pipeline::batch::batches;
use crate::pipeline::context::Context;
use crate::pipeline::load::Documents;
use crate::pipeline::reading::show_each;
use crate::pipeline::turn::Turn;
use crate::port::Member;
use crate::tools::lock;

/// Subscriptions read side by side, the first time their filters are needed.
const SIDE_BY_SIDE: usize = 32;
/// Filters, and resources, that are remembered; beyond it they are read again.
const REMEMBERED: usize = 64 * 1024;

/// Which documents make a row for which members.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// For each member the documents that its filter wants, in their order; all of them if there is nothing.
    wanted: Vec<Option<Arc<Vec<bool>>>>,
    /// For each document the members that have a row of it, if a filter refuses it.
    held: Vec<HashSet<SubscriptionId>>,
}

impl Selection {
    /// Finds out what members' filters say of documents, if any of them has one.
    pub(super) async fn of(
        turn: &Turn<'_>,
        members: &[Member],
        documents: &Documents,
    ) -> Result<Self> {
        if !members.iter().any(|member| member.filtered) {
            return Ok(Self::default());
        }
        let context = turn.context;
        let Some(resource) = context.member_filters.resource(context, turn.resource).await? else {
            return Ok(Self::default());
        };
        let filters = context.member_filters.of(context, members).await?;
        turn.advances();
        let mut numbers: HashMap<&Filter, usize> = HashMap::new();
        let mut distinct = Vec::new();
        for filter in filters.iter().flatten() {
            numbers.entry(filter).or_insert_with(|| {
                distinct.push(filter);
                distinct.len() - 1
            });
        }
        let (wanted, refused) = judge(turn, &resource, &distinct, documents).await?;
        let wanted: Vec<_> = wanted.into_iter().map(Arc::new).collect();
        let of_member = |filter: &Option<Filter>| {
            let number = numbers.get(filter.as_ref()?)?;
            wanted.get(*number).cloned()
        };
        let wanted = filters.iter().map(of_member).collect();
        Ok(Self { wanted, held: held(turn, members, documents, refused).await? })
    }

    /// Why a row is to reach a version, if it is: for one of the members, and one of the documents.
    pub(super) fn cause(
        &self,
        (at, member): (usize, &Member),
        document: usize,
    ) -> Option<SpreadCause> {
        let wanted = self.wanted.get(at).and_then(Option::as_ref);
        if wanted.is_none_or(|wanted| wanted.get(document).copied().unwrap_or(true)) {
            return Some(SpreadCause::Change);
        }
        let held = self.held.get(document)?.contains(&member.subscription);
        held.then_some(SpreadCause::Refused)
    }

    /// Whether any of the documents makes a row for one of the members.
    pub(super) fn concerns(&self, at: usize, member: &Member) -> bool {
        match self.wanted.get(at).and_then(Option::as_ref) {
            None => true,
            Some(wanted) if wanted.contains(&true) => true,
            Some(_) => self.held.iter().any(|held| held.contains(&member.subscription)),
        }
    }
}

/// What each filter says of each document, and which documents one of them refuses. Deletions are told to
/// those who have a row, and to no others: no filter is asked about them.
async fn judge(
    turn: &Turn<'_>,
    resource: &Resource,
    filters: &[&Filter],
    documents: &Documents,
) -> Result<(Vec<Vec<bool>>, Vec<DocumentKey>)> {
    let mut wanted = vec![Vec::with_capacity(documents.len()); filters.len()];
    let mut refused = Vec::new();
    let keys = documents.keys().map(|url| DocumentKey::new(turn.resource, url.clone()));
    let keys: Vec<DocumentKey> = keys.collect();
    show_each(turn.context, &keys, |key, document| {
        let verdicts = match document {
            Some(document) if document.version.is_gone() => {
                vec![Some(FilterVerdict::Refuses); filters.len()]
            }
            Some(document) => turn.context.verdicts(filters, resource, &document),
            None => vec![None; filters.len()],
        };
        let before = refused.len();
        for (wanted, verdict) in wanted.iter_mut().zip(verdicts) {
            let wants = verdict != Some(FilterVerdict::Refuses);
            wanted.push(wants);
            if !wants && refused.len() == before {
                refused.push(key.clone());
            }
        }
        turn.advances();
    })
    .await?;
    Ok((wanted, refused))
}

/// For each document the members with a filter that have a row of it, if one of them refuses it.
async fn held(
    turn: &Turn<'_>,
    members: &[Member],
    documents: &Documents,
    refused: Vec<DocumentKey>,
) -> Result<Vec<HashSet<SubscriptionId>>> {
    let mut held = vec![HashSet::new(); documents.len()];
    if refused.is_empty() {
        return Ok(held);
    }
    let numbers: HashMap<&DocumentUrl, usize> =
        documents.keys().enumerate().map(|(number, url)| (url, number)).collect();
    let filtered = members.iter().filter(|member| member.filtered);
    let filtered: HashSet<SubscriptionId> = filtered.map(|member| member.subscription).collect();
    let (repository, limit) = (&turn.context.repository, turn.context.batch_limit());
    for documents in batches(limit, refused) {
        let mut after = None;
        loop {
            let part = repository.rows_of(documents.clone(), after.take(), limit).await?;
            turn.advances();
            let read = part.items.len() + part.unreadable.len();
            after = part.items.last().map(|row| row.key.clone());
            let damaged = part.unreadable.into_iter().filter_map(|it| match it.record {
                RecordName::Row(key) => Some(key),
                _ => None,
            });
            let keys = part.items.into_iter().map(|row| row.key).chain(damaged);
            for key in keys.filter(|key| filtered.contains(&key.subscription)) {
                let number = numbers.get(&key.url).copied();
                if let Some(held) = number.and_then(|number| held.get_mut(number)) {
                    held.insert(key.subscription);
                }
            }
            if read < limit || after.is_none() {
                break;
            }
        }
    }
    Ok(held)
}

/// Filters of subscriptions as they were read, each good for one generation, and resources, which never
/// change.
#[derive(Debug, Default)]
pub(crate) struct MemberFilters {
    filters: Mutex<HashMap<SubscriptionId, (Generation, Filter)>>,
    resources: Mutex<HashMap<ResourceId, Arc<Resource>>>,
}

impl MemberFilters {
    /// The filter of each member, if it has one that can be read.
    async fn of(&self, context: &Context, members: &[Member]) -> Result<Vec<Option<Filter>>> {
        let mut found: Vec<Option<Filter>> = {
            let known = lock(&self.filters);
            let of_member = |member: &Member| {
                let (generation, filter) = known.get(&member.subscription)?;
                (member.filtered && *generation >= member.generation).then(|| filter.clone())
            };
            members.iter().map(of_member).collect()
        };
        let missing = members.iter().enumerate().zip(&found);
        let missing = missing.filter(|((_, member), known)| member.filtered && known.is_none());
        let missing: Vec<_> = missing.map(|((at, member), _)| (at, member.subscription)).collect();
        for some in missing.chunks(SIDE_BY_SIDE) {
            let read = some.iter().map(|(_, id)| context.repository.subscription(*id));
            for ((at, _), read) in some.iter().zip(join_all(read).await) {
                let Some(subscription) = context.if_readable(read)?.flatten() else { continue };
                let Some(filter) = subscription.spec.filter() else { continue };
                self.remember(&subscription, filter);
                if let Some(place) = found.get_mut(*at) {
                    *place = Some(filter.clone());
                }
            }
        }
        Ok(found)
    }

    fn remember(&self, subscription: &Subscription, filter: &Filter) {
        let mut known = lock(&self.filters);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(subscription.id, (subscription.generation, filter.clone()));
    }

    /// A resource, if it is there and can be read.
    pub(crate) async fn resource(
        &self,
        context: &Context,
        id: ResourceId,
    ) -> Result<Option<Arc<Resource>>> {
        if let Some(known) = lock(&self.resources).get(&id) {
            return Ok(Some(Arc::clone(known)));
        }
        let read = context.repository.resource(id).await;
        let Some(resource) = context.if_readable(read)?.flatten().map(Arc::new) else {
            return Ok(None);
        };
        let mut known = lock(&self.resources);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(id, Arc::clone(&resource));
        Ok(Some(resource))
    }
}
