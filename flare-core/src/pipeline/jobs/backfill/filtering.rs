//! Takes what a backfill or resync would spread; gives what the subscription's filter wants of it and, of
//! a resync, what its client may hold although the filter refuses it.

use std::sync::Arc;

use crate::error::Result;
use crate::model::{DocumentKey, FilterVerdict, Resource, Spread, SpreadCause, Subscription};
use crate::pipeline::context::Context;
use crate::pipeline::reading::show_each;

/// Documents that the filter is asked about at a time.
pub(super) const READ: usize = 16;

/// A subscription's filter, with what it has to know beside the documents.
pub(super) struct BackfillFilter<'a> {
    context: &'a Context,
    subscription: &'a Subscription,
    resource: Arc<Resource>,
}

impl<'a> BackfillFilter<'a> {
    /// The filter of a subscription, if it has one.
    pub(super) async fn of(
        context: &'a Context,
        subscription: &'a Subscription,
    ) -> Result<Option<Self>> {
        if subscription.spec.filter().is_none() {
            return Ok(None);
        }
        let resource = context.member_filters.resource(context, subscription.resource).await?;
        Ok(resource.map(|resource| Self { context, subscription, resource }))
    }

    /// What needs a row, in its order. What cannot be read, or judged here, does: the lane is the judge.
    pub(super) async fn select(&self, spreads: Vec<Spread>) -> Result<Vec<Spread>> {
        if spreads.is_empty() {
            return Ok(spreads);
        }
        let keys: Vec<DocumentKey> = spreads.iter().map(|spread| spread.document.clone()).collect();
        let mut verdicts = Vec::with_capacity(spreads.len());
        show_each(self.context, &keys, |_, document| {
            let verdict = |it| self.context.verdict(self.subscription, &self.resource, &it);
            verdicts.push(document.and_then(verdict));
        })
        .await?;
        let mut chosen = Vec::with_capacity(spreads.len());
        for (spread, verdict) in spreads.into_iter().zip(verdicts) {
            match (verdict, spread.cause) {
                (Some(FilterVerdict::Refuses), SpreadCause::Resync(round)) => {
                    chosen.push(spread.because(SpreadCause::ResyncRefused(round)));
                }
                (Some(FilterVerdict::Refuses), _) => {}
                _ => chosen.push(spread),
            }
        }
        Ok(chosen)
    }
}
