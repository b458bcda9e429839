//! Takes what a host wants of its subscriptions; gives them created, read, replaced, paused and
//! resumed. Each change is one conditional write, repeated if another was faster.

use std::time::Duration;

use super::flare::{Flare, changed, not_found};
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    AuditAction, AuditSubject, Generation, Invalid, Resource, ResourceId, Subscription,
    SubscriptionId, SubscriptionInput, SubscriptionSpec, SubscriptionStatus, subscription::Mode,
};
use crate::pipeline::event::{Event, EventKind};
use crate::pipeline::jobs::align_later;
use crate::pipeline::prepare::{Prepared, make_ready, prepare};
use crate::pipeline::stage::chain;
use crate::port::{Listing, Page, Replaced};

impl Flare {
    /// Creates a subscription: documents put from now on are delivered to it.
    ///
    /// Takes a [`SubscriptionSpec`] or what builds one, such as
    /// `SubscriptionSpec::post("http://…/{id}")`.
    pub async fn create_subscription<S>(
        &self,
        resource: ResourceId,
        spec: S,
    ) -> Result<Subscription>
    where
        S: TryInto<SubscriptionSpec>,
        S::Error: Into<Invalid>,
    {
        const OPERATION: &str = "create_subscription";
        let invalid = |invalid| Error::invalid(OPERATION, invalid);
        // An unknown resource is said before what is wrong with the rest.
        let parent = self.active_resource(OPERATION, resource).await?;
        let spec = spec.try_into().map_err(|error| invalid(error.into()))?;
        self.check(&spec, &parent).map_err(invalid)?;

        let context = self.context();
        let now = context.time().await?;
        let new = Subscription::new(context.ids.next(now).into(), parent.id, spec, now);
        let limit = context.settings.partition_limit;
        let stored = context.repository.insert_subscription(new, limit).await;
        let stored = stored.map_err(|error| error.during(OPERATION))?;
        let active = match prepare(context, stored).await? {
            Prepared::Ready(active) => active,
            Prepared::ResourceGone => return Err(not_found(OPERATION, "resource", &resource)),
            Prepared::Removed => {
                let error = Error::new(ErrorKind::Conflict, OPERATION);
                return Err(error.with_detail("the subscription was deleted while it was created"));
            }
        };
        self.announce(&active).await;
        let detail = format!("of resource {resource}");
        self.tell(AuditAction::Created, AuditSubject::subscription(active.id), detail);
        Ok(active)
    }

    /// Reads a subscription.
    pub async fn subscription(&self, id: SubscriptionId) -> Result<Subscription> {
        self.find_subscription("subscription", id).await
    }

    /// Lists a resource's subscriptions, oldest first.
    pub async fn subscriptions(
        &self,
        resource: ResourceId,
        page: Page,
    ) -> Result<Listing<Subscription>> {
        self.known_resource("subscriptions", resource).await?;
        let listing = self.context().repository.list_subscriptions(resource, page).await?;
        listing.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
        Ok(listing)
    }

    /// Replaces the settings of a subscription; what it knows of its documents is kept.
    ///
    /// Takes a [`SubscriptionInput`], or a [`SubscriptionSpec`] or what builds one, which keeps the
    /// secrets there are if it has none. What is accepted after this returned is sent under the new settings; what is in
    /// flight finishes under the old ones. With another number of lanes every lane has other
    /// documents: those there are finish what is in flight before the new ones send anything.
    pub async fn replace_subscription<S>(
        &self,
        id: SubscriptionId,
        input: S,
    ) -> Result<Subscription>
    where
        S: TryInto<SubscriptionInput>,
        S::Error: Into<Invalid>,
    {
        self.replace(id, None, input).await
    }

    /// As [`replace_subscription`](Self::replace_subscription), if it is still at that generation;
    /// a conflict on `generation` if not.
    pub async fn replace_subscription_at<S>(
        &self,
        id: SubscriptionId,
        generation: Generation,
        input: S,
    ) -> Result<Subscription>
    where
        S: TryInto<SubscriptionInput>,
        S::Error: Into<Invalid>,
    {
        self.replace(id, Some(generation), input).await
    }

    async fn replace<S>(
        &self,
        id: SubscriptionId,
        generation: Option<Generation>,
        input: S,
    ) -> Result<Subscription>
    where
        S: TryInto<SubscriptionInput>,
        S::Error: Into<Invalid>,
    {
        const OPERATION: &str = "replace_subscription";
        let invalid = |invalid| Error::invalid(OPERATION, invalid);
        let input = input.try_into().map_err(|error| invalid(error.into()))?;
        let mut current = self.find_subscription(OPERATION, id).await?;
        let parent = self.active_resource(OPERATION, current.resource).await?;
        loop {
            if generation.is_some_and(|generation| generation != current.generation) {
                return Err(changed(OPERATION));
            }
            let spec = input.clone().replace(&current.spec);
            self.check(&spec, &parent).map_err(invalid)?;
            let lanes = (current.spec.delivery().lanes(), spec.delivery().lanes());
            let mut replacement = Subscription { spec, ..current.clone() };
            if replacement.spec.mode() == Mode::Passive && current.spec.mode() == Mode::Active {
                // What its lanes are sending must not be handed out as well: they end first, and the
                // owner of their slot says so.
                let from = current.moving_from.unwrap_or_else(|| self.context().slot_of(&current));
                replacement.moving_from = Some(from);
            }
            match self.swap(OPERATION, &current, replacement).await? {
                Swapped::Done(replaced) => {
                    if lanes.0 != lanes.1 {
                        align_later(self.context(), &replaced, lanes.0).await;
                    }
                    self.tell(AuditAction::Replaced, AuditSubject::subscription(id), "");
                    return Ok(replaced);
                }
                Swapped::Conflict(newer) => current = newer,
            }
        }
    }

    /// Holds the changes of a subscription until it is resumed. What is in flight finishes; no
    /// change accepted after this returned is sent.
    pub async fn pause(&self, id: SubscriptionId) -> Result<Subscription> {
        const OPERATION: &str = "pause";
        let mut current = self.find_subscription(OPERATION, id).await?;
        while current.status != SubscriptionStatus::Paused {
            let preparing = current.status == SubscriptionStatus::Preparing;
            // Its creator may have died, and no node finishes a creation that has come to its end.
            if preparing && !make_ready(self.context(), &current).await? {
                return Err(not_found(OPERATION, "subscription", &id));
            }
            let mut paused = current.clone();
            paused.status = SubscriptionStatus::Paused;
            paused.reason = None;
            match self.swap(OPERATION, &current, paused).await? {
                Swapped::Done(paused) => {
                    if preparing {
                        align_later(self.context(), &paused, 0).await;
                    }
                    self.tell(AuditAction::Paused, AuditSubject::subscription(id), "");
                    return Ok(paused);
                }
                Swapped::Conflict(newer) => current = newer,
            }
        }
        Ok(current)
    }

    /// Ends a pause or suspension: what was held is due at once, the newest version of each
    /// document only.
    pub async fn resume(&self, id: SubscriptionId) -> Result<Subscription> {
        const OPERATION: &str = "resume";
        let mut current = self.find_subscription(OPERATION, id).await?;
        while matches!(current.status, SubscriptionStatus::Paused | SubscriptionStatus::Suspended) {
            match self.activate(OPERATION, &current).await? {
                Swapped::Done(resumed) => {
                    self.context().events.emit(Event::new(id, EventKind::Resumed));
                    self.tell(AuditAction::Resumed, AuditSubject::subscription(id), "");
                    return Ok(resumed);
                }
                Swapped::Conflict(newer) => current = newer,
            }
        }
        Ok(current)
    }

    /// Tries a client now, as it was mended: all that waits for a later attempt is due at
    /// once, and one that was only probed counts as well. What the client asked for itself, by
    /// `Retry-After`, is kept to. One that is paused or suspended is a conflict: resume it.
    pub async fn retry_now(&self, id: SubscriptionId) -> Result<Subscription> {
        const OPERATION: &str = "retry_now";
        let mut current = self.find_subscription(OPERATION, id).await?;
        loop {
            if matches!(current.status, SubscriptionStatus::Paused | SubscriptionStatus::Suspended)
            {
                let detail = format!("the subscription is {}: resume it instead", current.status);
                return Err(Error::new(ErrorKind::Conflict, OPERATION)
                    .with_field("status")
                    .with_detail(detail));
            }
            if current.status == SubscriptionStatus::Preparing {
                // Nothing can be waiting for it yet.
                return Ok(current);
            }
            match self.activate(OPERATION, &current).await? {
                Swapped::Done(tried) => {
                    self.tell(AuditAction::Retried, AuditSubject::subscription(id), "");
                    return Ok(tried);
                }
                Swapped::Conflict(newer) => current = newer,
            }
        }
    }

    /// Makes everything due, and forgets how the client was.
    async fn activate(&self, operation: &'static str, current: &Subscription) -> Result<Swapped> {
        self.expedite(current.id).await?;
        // Never at the time of the resumption before, from which lanes have to tell it.
        let before = current.resumed_at.map(|at| at + Duration::from_nanos(1));
        let now = self.context().repository.store_time().await?;
        let mut resumed = current.clone();
        resumed.status = SubscriptionStatus::Active;
        resumed.reason = None;
        resumed.resumed_at = Some(now).max(before);
        self.swap(operation, current, resumed).await
    }

    /// Makes everything that waits for a later time due now.
    async fn expedite(&self, id: SubscriptionId) -> Result<()> {
        let limit = self.context().batch_limit();
        while self.context().repository.expedite_rows(id, limit).await? >= limit as u64 {}
        Ok(())
    }

    /// Stores a subscription in place of `current`, if that is still what is there.
    pub(super) async fn swap(
        &self,
        operation: &'static str,
        current: &Subscription,
        mut replacement: Subscription,
    ) -> Result<Swapped> {
        let context = self.context();
        replacement.updated_at = context.time().await?;
        let replaced =
            context.repository.replace_subscription(current.generation, replacement).await;
        match replaced.map_err(|error| error.during(operation))? {
            Replaced::Done(stored) => {
                self.announce(&stored).await;
                Ok(Swapped::Done(stored))
            }
            Replaced::Conflict(newer) if newer.status != SubscriptionStatus::Deleting => {
                Ok(Swapped::Conflict(newer))
            }
            Replaced::Conflict(_) | Replaced::Missing => {
                Err(not_found(operation, "subscription", &current.id))
            }
        }
    }

    /// Tells the node that works a subscription that it has changed.
    async fn announce(&self, changed: &Subscription) {
        if let Err(error) = self.context().refresh(changed).await {
            // The change is stored; its lanes learn it from the next row, or the next sweep.
            tracing::warn!(subscription = %changed.id, error = %chain(&error), "could not announce a change");
        }
    }

    fn check(
        &self,
        spec: &SubscriptionSpec,
        parent: &Resource,
    ) -> std::result::Result<(), Invalid> {
        #[cfg(not(feature = "signing"))]
        if spec.signing().is_some() {
            return Err(crate::pipeline::sign::not_built_in());
        }
        spec.check_masks()?;
        self.check_lanes(spec)?;
        let wildcards: Vec<&str> = parent.endpoint.wildcards().collect();
        if let Some(filter) = spec.filter() {
            self.context().filters.check(filter, &wildcards)?;
        }
        spec.check_placeholders(&wildcards)
    }

    /// A lane without a request of its own would never send anything.
    fn check_lanes(&self, spec: &SubscriptionSpec) -> std::result::Result<(), Invalid> {
        let options = spec.delivery();
        let concurrency = options.concurrency().unwrap_or(self.context().settings.concurrency);
        if u32::from(options.lanes()) > concurrency {
            let reason = format!("must not exceed the concurrency of {concurrency}");
            return Err(Invalid::new("delivery.lanes", reason));
        }
        Ok(())
    }
}

/// What became of a conditional write.
#[allow(clippy::large_enum_variant, reason = "one per call")]
pub(super) enum Swapped {
    Done(Subscription),
    Conflict(Subscription),
}
