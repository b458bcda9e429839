//! Takes a document and the filters of subscriptions; gives what they say of it, and counts it. What a
//! filter that cannot be asked here would say is not to be guessed: it is noted, and nothing is told by it.

use super::context::Context;
use super::meter;
use crate::model::{
    Document, Filter, FilterVerdict, RecordName, Resource, Subscription, Unreadable,
};

impl Context {
    /// What a subscription's filter says of a document; `None` if it cannot be asked here.
    pub(crate) fn verdict(
        &self,
        subscription: &Subscription,
        resource: &Resource,
        document: &Document,
    ) -> Option<FilterVerdict> {
        let Some(filter) = subscription.spec.filter() else { return Some(FilterVerdict::Wants) };
        let verdict = self.verdicts(&[filter], resource, document).into_iter().next().flatten();
        if verdict.is_none() {
            let name = RecordName::Subscription(subscription.id);
            let why = "this build cannot ask its filter: nothing is sent for it";
            let unreadable = Unreadable::damaged(name, why).of(Some(subscription.resource));
            self.note_unreadable(&unreadable);
        }
        verdict
    }

    /// What several filters say of a document, each in its place; `None` for one that cannot be asked
    /// here.
    pub(crate) fn verdicts(
        &self,
        filters: &[&Filter],
        resource: &Resource,
        document: &Document,
    ) -> Vec<Option<FilterVerdict>> {
        let judgement = self.filters.judge(filters, resource, document);
        meter::filtered(judgement.evaluated, judgement.failed);
        judgement.verdicts
    }
}
