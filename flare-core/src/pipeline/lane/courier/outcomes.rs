//! Takes what came of requests; gives it to the store, and its meaning to the lane as a whole.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tracing::{debug, warn};

use super::{Courier, Joined};
use crate::error::Result;
use crate::model::{Subscription, Timestamp, Verdict};
use crate::pipeline::context::Context;
use crate::pipeline::judge::{Attempt, Circumstances, Judgement, Wish, judge};
use crate::pipeline::lane::settler::{Flushed, Unstored, flush};
use crate::pipeline::lane::suspender::{Suspended, Suspension};
use crate::pipeline::meter;
use crate::pipeline::stage::{chain, pause_after};
use crate::port::{DeliveryOutcome, FailureKind, RowUpdate};

/// How far apart outcomes are stored while more are to come.
const GATHER: Duration = Duration::from_millis(10);

impl Courier {
    pub(super) fn take_outcome(&mut self, sent: Option<Joined>) {
        let (id, outcome) = match sent {
            Some(Ok(sent)) => sent,
            Some(Err(error)) => {
                // A transport that panics may have sent the request.
                let message = format!("the transport panicked: {error}");
                (error.id(), DeliveryOutcome::failed(FailureKind::Broken, message, true))
            }
            None => return,
        };
        let Some((attempt, subscription)) = self.attempts.remove(&id) else { return };
        let judgement = self.judge(&attempt, &outcome, &subscription);
        debug!(
            document = %attempt.row.key.url,
            version = %attempt.version,
            verdict = ?judgement.verdict,
            error = judgement.error.as_deref(),
            duration = ?outcome.duration,
            "attempt ended"
        );
        self.take_judgement(&judgement, attempt.probe, &subscription);
        let now = self.lane.context.now();
        meter::attempted(&judgement, now - attempt.stored_at);
        let events = &self.lane.context.events;
        let event = events.has_listeners().then(|| judgement.event(&attempt));
        let update = RowUpdate { key: attempt.row.key, effect: judgement.effect };
        self.unstored.push(Unstored { update, event });
    }

    pub(super) fn judge(
        &self,
        attempt: &Attempt,
        outcome: &DeliveryOutcome,
        subscription: &Subscription,
    ) -> Judgement {
        let Context { settings, ids, .. } = &*self.lane.context;
        let now = self.lane.context.now();
        let (health, held_until) = (self.ledger.health(), self.lane.hold.end());
        let options = subscription.spec.delivery();
        let ttl = options.ttl().map_or(settings.max_ttl, |ttl| ttl.min(settings.max_ttl));
        let circumstances = Circumstances {
            now,
            random: self.lane.context.random(),
            dead_letter: ids.next(now).into(),
            counts: attempt.probe || !health.is_probing(),
            ttl: (!health.is_probing() && held_until <= now).then_some(ttl),
            free_since: health
                .released_at()
                .max(self.lane.subscription.resumed_at)
                .max(Some(held_until)),
            hold_limit: settings.hold_limit,
        };
        judge(attempt, outcome, options, &circumstances)
    }

    /// What an answer means for the lane as a whole.
    pub(super) fn take_judgement(
        &mut self,
        judgement: &Judgement,
        probe: bool,
        subscription: &Arc<Subscription>,
    ) {
        let now = self.lane.context.now();
        let error = judgement.error.as_deref();
        self.ledger.note(judgement.sign, probe, error, now);
        // Whoever was replaced meanwhile did not speak for the client there is now.
        let current = subscription.generation == self.lane.subscription.generation;
        match judgement.wish {
            Some(Wish::Hold(until)) => {
                self.lane.hold.until(until);
                self.ledger.hold(until);
            }
            Some(Wish::Leave) if current => {
                let reason = "the client answered 410 Gone: it wants to hear no more";
                self.suspend(reason.to_owned(), None);
            }
            _ => {}
        }
        let limit = self.lane.context.settings.suspend_after;
        let failed = matches!(judgement.verdict, Verdict::Failure | Verdict::Unknown);
        if let Some(since) = self.ledger.health().failing_since()
            && failed
            && current
            && since + limit <= now
        {
            let last = error.unwrap_or_default();
            self.suspend(
                format!("every attempt since {since} failed; the last: {last}"),
                Some(since),
            );
        }
    }

    pub(super) fn suspend(&mut self, reason: String, failing_since: Option<Timestamp>) {
        self.suspension.get_or_insert_with(|| Suspension::new(reason, failing_since));
        self.put_back();
        self.held = None;
    }

    pub(super) fn take_suspended(&mut self, suspended: Result<Suspended>) {
        match suspended {
            Ok(suspended) => {
                self.suspension = None;
                self.suspend_failures = 0;
                match suspended {
                    Suspended::Now(subscription) => self.adopt(subscription),
                    Suspended::Removed => self.end(),
                    Suspended::NotNeeded => {}
                }
            }
            Err(error) => {
                self.suspend_failures += 1;
                let context = &self.lane.context;
                let pause = context.jittered(pause_after(self.suspend_failures));
                warn!(error = %chain(&error), ?pause, "could not suspend, will retry");
                if let Some(suspension) = &mut self.suspension {
                    suspension.at = context.now() + pause;
                }
            }
        }
    }

    /// When outcomes are to be stored, if there are any that can be. At once, as long as nothing
    /// was stored just now or nothing more is to come: else a store that is fast, or a client
    /// whose answers come one by one, would have us write each on its own.
    pub(super) fn store_at(&self) -> Option<Timestamp> {
        if self.storing.is_some() || self.unstored.is_empty() || self.store_again_at.is_some() {
            return None;
        }
        let last = self.ending || self.sending.is_empty() && self.ready.is_empty();
        let many = self.unstored.len() * 2 >= self.room();
        Some(if last || many { Timestamp::EPOCH } else { self.gather_until })
    }

    pub(super) fn begin_store(&mut self) {
        let Some(at) = self.store_at() else { return };
        let now = self.lane.context.now();
        if at > now {
            return;
        }
        self.gather_until = now + GATHER;
        self.pulse.works();
        let batch = std::mem::take(&mut self.unstored);
        let context = Arc::clone(&self.lane.context);
        self.storing = Some(flush(context, Arc::clone(&self.lane.groups), batch).boxed());
    }

    pub(super) fn take_flushed(&mut self, flushed: Flushed) {
        for (url, settled) in flushed.done {
            if let Some(Some(wanted)) = self.busy.remove(&url) {
                // What is retried or given up may have been made due again meanwhile.
                self.look |= settled < Some(wanted);
            }
            if self.loading.is_some() {
                self.stored_meanwhile.insert(url, settled);
            }
        }
        if let Some(due) = flushed.next_due {
            self.look_by(due);
        }
        if let Some(error) = flushed.error {
            self.store_failures += 1;
            let pause = self.lane.context.jittered(pause_after(self.store_failures));
            warn!(error = %chain(&error), ?pause, "could not store outcomes, will retry");
            self.store_again_at = Some(self.lane.context.now() + pause);
            self.unstored.extend(flushed.left);
        } else {
            self.store_failures = 0;
            if self.load_failures == 0 {
                self.pulse.rests();
            }
        }
        if flushed.fenced {
            self.fenced();
        }
    }
}
