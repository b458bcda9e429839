//! What came of requests: what is stored of it, and what it means for the lane as a whole.

use std::sync::Arc;

use super::{AttemptReport, Command, LaneNotice, Machine, Moment, RequestTimes, Sent};
use crate::model::{Applied, Subscription, Timestamp, Verdict};
use crate::pipeline::judge::{
    Attempt, BatchJudgement, Circumstances, ClientAsks, Judgement, judge, judge_batch,
};
use crate::pipeline::lane::settler::{Flushed, Unstored};
use crate::pipeline::lane::suspender::Suspended;
use crate::port::{DeliveryOutcome, RowUpdate};

impl<C> Machine<C> {
    pub(super) fn take_outcome(&mut self, sent: Sent, moment: &Moment) {
        let Some((attempts, subscription)) = self.requests.end(sent.number) else { return };
        let probe = attempts.iter().any(|attempt| attempt.probe);
        let judged = self.judge(&attempts, &sent, probe, &subscription, moment.now);
        self.groups.ended(&attempts, judged.undivided);
        if judged.unknown_ids > 0 {
            self.commands.push(Command::Log(LaneNotice::UnknownIds(judged.unknown_ids)));
        }
        // What is said of the whole is said once. Of several, a client that took any is well.
        let said = if judged.undivided { 1 } else { judged.each.len() };
        let well = |it: &&Judgement| matches!(it.verdict, Verdict::Success | Verdict::Discard);
        let (taken, failed): (Vec<_>, Vec<_>) = judged.each.iter().take(said).partition(well);
        for judgement in failed.into_iter().chain(taken) {
            self.take_judgement(judgement, probe, &subscription, moment.now);
        }
        let DeliveryOutcome { duration: took, phases, .. } = sent.outcome;
        self.record.attempted(took, &phases, moment.now);
        for (position, (attempt, judgement)) in attempts.into_iter().zip(judged.each).enumerate() {
            let event = moment.listened.then(|| judgement.event(&attempt));
            let (key, effect) = (attempt.row.key.clone(), judgement.effect.clone());
            let update = RowUpdate { key, round: attempt.telling.round, effect };
            self.storing.push(Unstored { update, event });
            if position < said {
                let latency = moment.now - attempt.stored_at;
                if judgement.verdict == Verdict::Success {
                    self.record.told(latency, moment.now);
                }
                // A request that told of many is one.
                let request = (position == 0).then_some(RequestTimes { took, phases });
                let report = AttemptReport { attempt, judgement, latency, took, request };
                self.commands.push(Command::Report(Box::new(report)));
            }
        }
    }

    fn judge(
        &self,
        attempts: &[Attempt],
        sent: &Sent,
        probe: bool,
        subscription: &Subscription,
        now: Timestamp,
    ) -> BatchJudgement {
        let health = self.record.health();
        let options = subscription.spec.delivery();
        let most = self.figures.max_ttl;
        let ttl = options.ttl().map_or(most, |ttl| ttl.min(most));
        let circumstances = Circumstances {
            now,
            random: sent.random,
            dead_letter: sent.dead_letters.first,
            counts: probe || !health.is_probing(),
            ttl: (!health.is_probing() && self.limits.held_until() <= now).then_some(ttl),
            free_since: health
                .released_at()
                .max(self.subscription.resumed_at)
                .max(Some(self.limits.held_until())),
            hold_limit: self.figures.hold_limit,
        };
        let outcome = &sent.outcome;
        if options.batch().is_some() {
            let letters = sent.dead_letters.iter();
            return judge_batch(attempts, outcome, options, &circumstances, letters);
        }
        let each = attempts.iter().map(|it| judge(it, outcome, options, &circumstances)).collect();
        BatchJudgement { each, undivided: false, unknown_ids: 0 }
    }

    /// What an answer means for the lane as a whole.
    fn take_judgement(
        &mut self,
        judgement: &Judgement,
        probe: bool,
        subscription: &Arc<Subscription>,
        now: Timestamp,
    ) {
        let error = judgement.error.as_deref();
        let notice = self.record.note(judgement.sign, probe, error, now);
        self.commands.extend(notice.map(Command::Log));
        // A client that was replaced meanwhile does not speak for the one there is now.
        let current = subscription.generation == self.subscription.generation;
        match judgement.asks {
            Some(ClientAsks::Hold(until)) => {
                self.limits.hold(until);
                self.record.hold(until);
                self.commands.push(Command::Hold(until));
            }
            Some(ClientAsks::Leave) if current => {
                let reason = "the client answered 410 Gone: it wants to hear no more";
                self.suspend(reason.to_owned(), None);
            }
            _ => {}
        }
        let failed = matches!(judgement.verdict, Verdict::Failure | Verdict::Unknown);
        if let Some(since) = self.record.health().failing_since()
            && failed
            && current
            && since + self.figures.suspend_after <= now
        {
            let last = error.unwrap_or_default();
            self.suspend(
                format!("every attempt since {since} failed; the last: {last}"),
                Some(since),
            );
        }
    }

    fn suspend(&mut self, reason: String, failing_since: Option<Timestamp>) {
        self.suspending.want(reason, failing_since);
        self.put_back();
        self.return_permits();
    }

    pub(super) fn take_suspended(&mut self, suspended: Suspended) {
        self.suspending.ended();
        match suspended {
            Suspended::Now(subscription) => self.adopt(subscription),
            Suspended::Removed => self.end(),
            Suspended::NotNeeded => {}
        }
    }

    /// When outcomes are to be stored, if there are any that can be.
    pub(super) fn store_at(&self) -> Option<Timestamp> {
        let last = self.ending || self.requests.is_empty() && self.ready.is_empty();
        self.storing.at(last, self.room())
    }

    pub(super) fn begin_store(&mut self, now: Timestamp) {
        if self.store_at().is_some_and(|at| at <= now) {
            self.commands.push(Command::Store(self.storing.begin(now)));
        }
    }

    pub(super) fn take_flushed(&mut self, flushed: Flushed, moment: &Moment) {
        for (url, settled) in flushed.done {
            if let Some(Some(wanted)) = self.busy.remove(&url)
                && settled < Some(wanted)
            {
                // What is retried or given up may have been made due again meanwhile.
                self.reading.want();
            }
            self.reading.stored(url, settled);
        }
        if let Some(due) = flushed.next_due {
            self.reading.want_by(due);
        }
        match flushed.error {
            Some(_) => self.storing.failed(flushed.left, moment),
            None => self.storing.ended(),
        }
        if flushed.fenced {
            self.fenced();
        }
    }

    pub(super) fn take_noted(&mut self, applied: Applied) {
        self.record.stored();
        match applied {
            Applied::Fenced { .. } => self.fenced(),
            // Its subscription is gone.
            Applied::Missing => self.end(),
            _ => {}
        }
    }
}
