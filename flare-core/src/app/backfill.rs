//! Takes wishes for documents that are there already; gives stored jobs that tell a subscription's
//! client of them, begun and cancelled. How far they are is in the subscription's status.

use super::flare::Flare;
use crate::error::Result;
use crate::model::{AuditAction, AuditSubject, JobKind, SubscriptionId};
use crate::pipeline::jobs::backfill;

impl Flare {
    /// Delivers the documents that are there and that the subscription's client does not hold, as
    /// creates: those it was never told of, and those it refused. Dead letters stay for
    /// [`replay`](Self::replay).
    ///
    /// It is a stored job: it goes on whatever crashes, few of its documents are pending at a time so
    /// that live changes pass in between, and a subscription that is paused holds it.
    /// [`subscription_status`](Self::subscription_status) shows how far it is. One that is under way
    /// goes on.
    pub async fn backfill(&self, id: SubscriptionId) -> Result<()> {
        const OPERATION: &str = "backfill";
        self.find_subscription(OPERATION, id).await?;
        let begun = backfill::begin(self.context(), JobKind::Backfill, id, None).await;
        begun.map_err(|error| error.during(OPERATION))?;
        self.tell(AuditAction::Backfilled, AuditSubject::subscription(id), "");
        Ok(())
    }

    /// Ends a backfill that is under way; what it has made pending is delivered all the same. Tells
    /// whether there was one.
    pub async fn cancel_backfill(&self, id: SubscriptionId) -> Result<bool> {
        const OPERATION: &str = "cancel_backfill";
        self.find_subscription(OPERATION, id).await?;
        let cancelled = backfill::cancel(self.context(), JobKind::Backfill, id).await;
        let cancelled = cancelled.map_err(|error| error.during(OPERATION))?;
        if cancelled {
            self.tell(AuditAction::BackfillCancelled, AuditSubject::subscription(id), "");
        }
        Ok(cancelled)
    }

    /// Delivers everything again to a client that lost its data: every document that is there as a
    /// create, those that its filter refuses now and that it was told of as a delete. With a `prefix`
    /// only documents whose URL begins so. As bounded, lasting and visible as a
    /// [`backfill`](Self::backfill).
    ///
    /// One that is under way for the same documents goes on; for others it is a conflict.
    pub async fn resync(&self, id: SubscriptionId, prefix: Option<&str>) -> Result<()> {
        const OPERATION: &str = "resync";
        self.find_subscription(OPERATION, id).await?;
        let prefix = prefix.filter(|prefix| !prefix.is_empty()).map(str::to_owned);
        let detail = prefix.as_ref().map(|prefix| format!("below {prefix}")).unwrap_or_default();
        let begun = backfill::begin(self.context(), JobKind::Resync, id, prefix).await;
        begun.map_err(|error| error.during(OPERATION))?;
        self.tell(AuditAction::Resynced, AuditSubject::subscription(id), detail);
        Ok(())
    }

    /// Ends a resync that is under way; what it has made pending is delivered all the same. Tells
    /// whether there was one.
    pub async fn cancel_resync(&self, id: SubscriptionId) -> Result<bool> {
        const OPERATION: &str = "cancel_resync";
        self.find_subscription(OPERATION, id).await?;
        let cancelled = backfill::cancel(self.context(), JobKind::Resync, id).await;
        let cancelled = cancelled.map_err(|error| error.during(OPERATION))?;
        if cancelled {
            self.tell(AuditAction::ResyncCancelled, AuditSubject::subscription(id), "");
        }
        Ok(cancelled)
    }
}
