//! What came of requests: what is stored of it, and what it means for the lane as a whole.

use std::sync::Arc;
use std::time::Duration;

use super::{AttemptReport, Command, LaneNews, Machine, Moment, Sent, Suspension};
use crate::model::{Applied, Subscription, Timestamp, Verdict};
use crate::pipeline::judge::{
    Attempt, BatchJudgement, Circumstances, ClientWish, Judgement, judge, judge_batch,
};
use crate::pipeline::lane::settler::{Flushed, Unstored};
use crate::pipeline::lane::suspender::Suspended;
use crate::pipeline::stage::pause_after;
use crate::port::RowUpdate;

/// How far apart outcomes are stored while more are to come.
const GATHER: Duration = Duration::from_millis(10);

impl<H> Machine<H> {
    pub(super) fn take_outcome(&mut self, sent: Sent, moment: &Moment) {
        let Some((attempts, subscription)) = self.sending.remove(&sent.number) else { return };
        let probe = attempts.iter().any(|attempt| attempt.probe);
        let judged = self.judge(&attempts, &sent, probe, &subscription, moment.now);
        self.groups.ended(&attempts, judged.undivided);
        if judged.unknown_ids > 0 {
            self.commands.push(Command::Say(LaneNews::UnknownIds(judged.unknown_ids)));
        }
        // What is said of the whole is said once. Of several, a client that took any is well.
        let said = if judged.undivided { 1 } else { judged.each.len() };
        let well = |it: &&Judgement| matches!(it.verdict, Verdict::Success | Verdict::Discard);
        let (taken, failed): (Vec<_>, Vec<_>) = judged.each.iter().take(said).partition(well);
        for judgement in failed.into_iter().chain(taken) {
            self.take_judgement(judgement, probe, &subscription, moment.now);
        }
        for (position, (attempt, judgement)) in attempts.into_iter().zip(judged.each).enumerate() {
            let event = moment.listened.then(|| judgement.event(&attempt));
            let (key, effect) = (attempt.row.key.clone(), judgement.effect.clone());
            let update = RowUpdate { key, round: attempt.telling.round, effect };
            self.unstored.push(Unstored { update, event });
            if position < said {
                let (latency, took) = (moment.now - attempt.stored_at, sent.outcome.duration);
                let report = AttemptReport { attempt, judgement, latency, took };
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
        let health = self.ledger.health();
        let options = subscription.spec.delivery();
        let most = self.figures.max_ttl;
        let ttl = options.ttl().map_or(most, |ttl| ttl.min(most));
        let circumstances = Circumstances {
            now,
            random: sent.random,
            dead_letter: sent.dead_letters.first,
            counts: probe || !health.is_probing(),
            ttl: (!health.is_probing() && self.held_until <= now).then_some(ttl),
            free_since: health
                .released_at()
                .max(self.subscription.resumed_at)
                .max(Some(self.held_until)),
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
        let news = self.ledger.note(judgement.sign, probe, error, now);
        self.commands.extend(news.map(Command::Say));
        // Whoever was replaced meanwhile did not speak for the client there is now.
        let current = subscription.generation == self.subscription.generation;
        match judgement.wish {
            Some(ClientWish::Hold(until)) => {
                self.held_until = self.held_until.max(until);
                self.ledger.hold(until);
                self.commands.push(Command::Hold(until));
            }
            Some(ClientWish::Leave) if current => {
                let reason = "the client answered 410 Gone: it wants to hear no more";
                self.suspend(reason.to_owned(), None);
            }
            _ => {}
        }
        let failed = matches!(judgement.verdict, Verdict::Failure | Verdict::Unknown);
        if let Some(since) = self.ledger.health().failing_since()
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
        let at = Timestamp::EPOCH;
        let running = false;
        self.suspension.get_or_insert(Suspension { reason, failing_since, at, running });
        self.put_back();
        self.return_places();
    }

    pub(super) fn take_suspended(&mut self, suspended: Suspended) {
        self.suspension = None;
        self.suspend_failures = 0;
        match suspended {
            Suspended::Now(subscription) => self.adopt(subscription),
            Suspended::Removed => self.end(),
            Suspended::NotNeeded => {}
        }
    }

    pub(super) fn take_suspend_failure(&mut self, moment: &Moment) {
        self.suspend_failures += 1;
        if let Some(suspension) = &mut self.suspension {
            suspension.running = false;
            suspension.at = moment.now + moment.jittered(pause_after(self.suspend_failures));
        }
    }

    /// When outcomes are to be stored, if there are any that can be. At once, as long as nothing
    /// was stored just now or nothing more is to come: else a store that is fast, or a client
    /// whose answers come one by one, would have us write each on its own.
    pub(super) fn store_at(&self) -> Option<Timestamp> {
        if self.storing || self.unstored.is_empty() || self.store_again_at.is_some() {
            return None;
        }
        let last = self.ending || self.sending.is_empty() && self.ready.is_empty();
        let many = self.unstored.len() * 2 >= self.room();
        Some(if last || many { Timestamp::EPOCH } else { self.gather_until })
    }

    pub(super) fn begin_store(&mut self, now: Timestamp) {
        if self.store_at().is_some_and(|at| at <= now) {
            self.gather_until = now + GATHER;
            self.storing = true;
            self.commands.push(Command::Store(std::mem::take(&mut self.unstored)));
        }
    }

    pub(super) fn take_flushed(&mut self, flushed: Flushed, moment: &Moment) {
        self.storing = false;
        for (url, settled) in flushed.done {
            if let Some(Some(wanted)) = self.busy.remove(&url) {
                // What is retried or given up may have been made due again meanwhile.
                self.look |= settled < Some(wanted);
            }
            if self.loading {
                self.stored_meanwhile.insert(url, settled);
            }
        }
        if let Some(due) = flushed.next_due {
            self.look_by(due);
        }
        if flushed.error.is_some() {
            self.store_failures += 1;
            let pause = moment.jittered(pause_after(self.store_failures));
            self.store_again_at = Some(moment.now + pause);
            self.unstored.extend(flushed.left);
        } else {
            self.store_failures = 0;
        }
        if flushed.fenced {
            self.fenced();
        }
    }

    pub(super) fn take_noted(&mut self, applied: Applied) {
        self.ledger.stored();
        match applied {
            Applied::Fenced { .. } => self.fenced(),
            // Its subscription is gone.
            Applied::Missing => self.end(),
            _ => {}
        }
    }
}
