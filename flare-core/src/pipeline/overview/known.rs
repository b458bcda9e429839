//! What is remembered of subscriptions' records between two looks at all of them: what is shown of their settings, as
//! of a generation. Whatever changes a subscription raises that, so what is remembered is never wrong.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use crate::error::Result;
use crate::model::{
    Action, Generation, RecordName, ResourceId, Subscription, SubscriptionId, SubscriptionStatus,
    Timestamp, Unreadable,
};
use crate::pipeline::context::Context;
use crate::port::Member;

/// When more than so many have changed all are read, rather than each by itself.
const ONE_BY_ONE: usize = 64;
/// How long it is believed that a record cannot be read.
const UNREADABLE_FOR: Duration = Duration::from_secs(30);

/// What is remembered of all subscriptions.
#[derive(Debug, Default)]
pub(super) struct KnownSubscriptions(HashMap<SubscriptionId, KnownSubscription>);

/// What is shown of a subscription's record.
#[derive(Debug)]
pub(super) struct KnownSubscription {
    generation: Generation,
    pub(super) resource: Option<ResourceId>,
    pub(super) url: Option<Arc<str>>,
    pub(super) reason: Option<Arc<str>>,
    pub(super) resumed_at: Option<Timestamp>,
    /// Until when it is believed that it cannot be read, by the monotonic clock.
    pub(super) unreadable_until: Option<Duration>,
}

impl KnownSubscriptions {
    pub(super) fn get(&self, id: SubscriptionId) -> Option<&KnownSubscription> {
        self.0.get(&id)
    }

    /// Reads what has changed of these, and forgets all others.
    pub(super) async fn follow(&mut self, context: &Context, members: &[Member]) -> Result<()> {
        let now = context.clock.monotonic();
        let there: HashSet<SubscriptionId> = members.iter().map(|it| it.subscription).collect();
        self.0.retain(|id, _| there.contains(id));
        let changed: Vec<SubscriptionId> = members
            .iter()
            .filter(|member| !self.is_current(member, now))
            .map(|member| member.subscription)
            .collect();
        if changed.len() <= ONE_BY_ONE {
            for id in changed {
                let read = context.repository.subscription(id).await;
                // One that is gone by now is not shown.
                self.note(context, read.transpose(), now)?;
            }
            return Ok(());
        }
        let mut all = context.repository.scan_subscriptions(None);
        while let Some(read) = all.next().await {
            self.note(context, Some(read), now)?;
        }
        Ok(())
    }

    fn is_current(&self, member: &Member, now: Duration) -> bool {
        let known = self.0.get(&member.subscription);
        known.is_some_and(|known| match known.unreadable_until {
            Some(until) => now < until,
            None => known.generation == member.generation,
        })
    }

    fn note(
        &mut self,
        context: &Context,
        read: Option<Result<Subscription>>,
        now: Duration,
    ) -> Result<()> {
        match read {
            None => {}
            Some(Ok(subscription)) if subscription.status == SubscriptionStatus::Deleting => {}
            Some(Ok(subscription)) => {
                self.0.insert(subscription.id, KnownSubscription::of(&subscription));
            }
            Some(Err(error)) => match error.unreadable() {
                None => return Err(error),
                Some(unreadable) => {
                    context.note_unreadable(unreadable);
                    if let RecordName::Subscription(id) = unreadable.record {
                        let known = KnownSubscription::unreadable(unreadable, now);
                        self.0.insert(id, known);
                    }
                }
            },
        }
        Ok(())
    }
}

impl KnownSubscription {
    fn of(subscription: &Subscription) -> Self {
        let endpoint = subscription.spec.endpoint();
        let url = endpoint.url().or_else(|| endpoint.request_for(Action::Update).url);
        Self {
            generation: subscription.generation,
            resource: Some(subscription.resource),
            url: url.map(|url| url.as_str().into()),
            reason: subscription.reason.as_deref().map(Arc::from),
            resumed_at: subscription.resumed_at,
            unreadable_until: None,
        }
    }

    fn unreadable(unreadable: &Unreadable, now: Duration) -> Self {
        Self {
            generation: Generation::new(0),
            resource: unreadable.resource,
            url: None,
            reason: Some(unreadable.why.to_string().into()),
            resumed_at: None,
            unreadable_until: Some(now.saturating_add(UNREADABLE_FOR)),
        }
    }
}

#[cfg(test)]
impl KnownSubscription {
    pub(super) fn example() -> Self {
        Self {
            generation: Generation::new(1),
            resource: None,
            url: None,
            reason: None,
            resumed_at: None,
            unreadable_until: None,
        }
    }
}
