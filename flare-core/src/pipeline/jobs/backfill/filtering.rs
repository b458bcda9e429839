//! Takes the next documents of a backfill or resync; gives those that the subscription's filter wants and,
//! of a resync, those that its client may hold although the filter refuses them.

use std::sync::Arc;

use crate::error::Result;
use crate::model::{FilterVerdict, Resource, SpreadCause, Subscription};
use crate::pipeline::context::Context;
use crate::port::DocumentHead;

/// Documents read at a time, as nobody knows how large they are.
pub(super) const READ: usize = 16;

/// What the filter has to know beside the documents; nothing, if there is no filter.
pub(super) async fn resource(
    context: &Context,
    subscription: &Subscription,
) -> Result<Option<Arc<Resource>>> {
    match subscription.spec.filter() {
        Some(_) => context.member_filters.resource(context, subscription.resource).await,
        None => Ok(None),
    }
}

/// The documents that need a row, each with the cause of it. What cannot be read, or judged here, does:
/// the lane is the judge.
pub(super) async fn select(
    context: &Context,
    subscription: &Subscription,
    resource: &Resource,
    heads: Vec<DocumentHead>,
    cause: SpreadCause,
) -> Result<Vec<(DocumentHead, SpreadCause)>> {
    if heads.is_empty() {
        return Ok(Vec::new());
    }
    let keys = heads.iter().map(|head| head.key.clone()).collect();
    let ask = |keys| context.repository.documents(keys);
    let documents = context.each_readable(keys, ask).await?;
    let mut chosen = Vec::with_capacity(heads.len());
    for (head, document) in heads.into_iter().zip(documents) {
        let document = document.ok().flatten();
        let verdict = document.and_then(|it| context.verdict(subscription, resource, &it));
        match (verdict, cause) {
            (Some(FilterVerdict::Refuses), SpreadCause::Resync(round)) => {
                chosen.push((head, SpreadCause::ResyncRefused(round)));
            }
            (Some(FilterVerdict::Refuses), _) => {}
            _ => chosen.push((head, cause)),
        }
    }
    Ok(chosen)
}
