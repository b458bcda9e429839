//! Takes a batch of messages; gives what they say to ingest, keeps what became no document, and then tells the
//! broker. Goes on trying while a store is away; gives the batch back if it is to stop.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use tracing::{Instrument, debug, debug_span, warn};

use super::MAX_REJECTS;
use super::batch::MappedBatch;
use super::tally::{ConsumerTally, Trouble};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::MessageExpression;
use crate::model::consumer::{RejectReason, Rejection};
use crate::model::{
    Consumer, DocumentChange, OnReject, Reject, Resource, TraceContext, Unreadable, WhyUnreadable,
};
use crate::observe;
use crate::ownership::Term;
use crate::pipeline::context::Context;
use crate::pipeline::ingest::{Change, Ingest};
use crate::pipeline::meter;
use crate::pipeline::stage::{chain, pause_after};
use crate::pipeline::stop::Stop;
use crate::port::{Receipt, Source, SourceFacts, SourceMessage, SourceSettlement};
use crate::tools::lock;

/// How often a settlement is tried: what is not settled comes again, and changes nothing then.
const SETTLE_TRIES: u32 = 3;
/// Calls at a time that keep messages.
const KEEP_AT_ONCE: usize = 4;
/// How long to wait until a slot is trusted again, or lost.
const DOUBT: Duration = Duration::from_millis(100);

/// A consumer that is worked: its source is open.
#[derive(Debug)]
pub(super) struct OpenConsumer {
    pub(super) context: Arc<Context>,
    pub(super) ingest: Arc<Ingest>,
    pub(super) consumer: Consumer,
    pub(super) resource: Resource,
    pub(super) expression: MessageExpression,
    pub(super) source: Arc<dyn Source>,
    pub(super) facts: SourceFacts,
    pub(super) slot: u32,
    pub(super) term: Term,
    pub(super) tally: Arc<Mutex<ConsumerTally>>,
}

/// What becomes of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MessageFate {
    /// All that it says is stored.
    Stored,
    /// It, or a part of it, is no document.
    Rejected(Rejection),
    /// It was not looked at to the end.
    Unfinished,
}

impl OpenConsumer {
    pub(super) fn is_trusted(&self) -> bool {
        self.term.is_trusted(self.slot, &*self.context.clock)
    }

    /// Stores what messages say, and settles them; all in one trace.
    pub(super) async fn store(self: Arc<Self>, messages: Vec<SourceMessage>, stop: Stop) {
        let span = debug_span!(observe::CONSUME, messages = messages.len());
        let trace = span.in_scope(|| self.context.current_trace.ask());
        self.store_within(trace.as_ref(), messages, stop).instrument(span).await;
    }

    async fn store_within(
        &self,
        trace: Option<&TraceContext>,
        messages: Vec<SourceMessage>,
        mut stop: Stop,
    ) {
        let receipts = messages.iter().map(|message| &message.receipt).collect();
        let fates = self.keeping(receipts, self.write(trace, &messages, &mut stop)).await;
        let settlement = |fate: &MessageFate| match fate {
            MessageFate::Stored => SourceSettlement::Done,
            MessageFate::Unfinished => SourceSettlement::Return,
            MessageFate::Rejected(_) if self.leaves() => SourceSettlement::Leave,
            MessageFate::Rejected(_) => SourceSettlement::Done,
        };
        let settled = messages.into_iter().zip(&fates);
        let settled = settled.map(|(message, fate)| (message.receipt, settlement(fate))).collect();
        self.settle(settled).await;
        lock(&self.tally).reach(self.source.checkpoints());
    }

    /// Whether what is rejected is left to the broker.
    fn leaves(&self) -> bool {
        self.consumer.on_reject == OnReject::Leave
    }

    /// Keeps messages from others for as long as the work on them takes.
    async fn keeping<T>(&self, receipts: Vec<&Receipt>, work: impl Future<Output = T>) -> T {
        let keep = async {
            loop {
                match self.facts.kept_for {
                    Some(time) => self.context.sleep(time / 3).await,
                    None => std::future::pending().await,
                }
                self.keep(&receipts).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            () = keep => std::future::pending().await,
        }
    }

    /// Has messages stay this consumer's for another while.
    pub(super) async fn keep(&self, receipts: &[&Receipt]) {
        let keep = async |batch: &[&Receipt]| {
            for error in self.source.keep(batch.to_vec()).await.into_iter().filter_map(Result::err)
            {
                // It may come again, which is no harm.
                debug!(consumer = %self.consumer.id, error = %chain(&error), "could not keep a message");
            }
        };
        let batches = receipts.chunks(self.facts.max_batch.max(1));
        futures::stream::iter(batches).for_each_concurrent(KEEP_AT_ONCE, keep).await;
    }

    async fn write(
        &self,
        trace: Option<&TraceContext>,
        messages: &[SourceMessage],
        stop: &mut Stop,
    ) -> Vec<MessageFate> {
        let judge = |_: &_, message: &[u8]| self.expression.is_true_of(message);
        let bodies = messages.iter().map(|message| &*message.body);
        let mapping = &self.consumer.mapping;
        let mapped = MappedBatch::of(&self.resource, mapping, &judge, bodies, trace);
        let mut fates = vec![MessageFate::Stored; messages.len()];
        for (place, rejection) in mapped.rejections {
            fates[place] = MessageFate::Rejected(rejection);
        }
        let mut waves = mapped.waves.into_iter();
        while let Some(wave) = waves.next() {
            let unfinished = self.write_wave(wave, &mut fates, stop).await;
            if unfinished.is_empty() {
                continue;
            }
            // What is left of this wave, and all of those that were not begun. What comes after it, of the same
            // message or document, waits with it: messages are given back from the first that is not done.
            let not_begun = waves.flatten().map(|(place, _)| place);
            let open: BTreeSet<usize> = unfinished.into_iter().chain(not_begun).collect();
            let first = open.first().copied().unwrap_or(0);
            for (place, fate) in fates.iter_mut().enumerate().skip(first) {
                if *fate == MessageFate::Stored || open.contains(&place) {
                    *fate = MessageFate::Unfinished;
                }
            }
            break;
        }
        self.keep_rejects(messages, &mut fates, stop).await;
        fates
    }

    /// Writes until all are stored or refused; gives the places of those that are neither when it is to stop.
    async fn write_wave(
        &self,
        wave: Vec<(usize, Change)>,
        fates: &mut [MessageFate],
        stop: &mut Stop,
    ) -> Vec<usize> {
        let (mut open, mut failures) = (wave, 0);
        loop {
            while !self.is_trusted() {
                if self.stopped_within(DOUBT, stop).await {
                    return open.into_iter().map(|(place, _)| place).collect();
                }
            }
            let changes: Vec<Change> = open.iter().map(|(_, change)| change.clone()).collect();
            let span = debug_span!(observe::PUT, documents = changes.len());
            let answers = self.ingest.accept("consume", changes).instrument(span).await;
            let (mut accepted, mut unchanged, mut failed) = (0, 0, None);
            let mut left = Vec::new();
            for ((place, change), answer) in open.into_iter().zip(answers) {
                match answer {
                    Ok(DocumentChange::Unchanged | DocumentChange::Stale) => unchanged += 1,
                    Ok(_) => accepted += 1,
                    Err(error) => match refusal(&error) {
                        Some(rejection) => fates[place] = MessageFate::Rejected(rejection),
                        None => {
                            failed = Some(error);
                            left.push((place, change));
                        }
                    },
                }
            }
            lock(&self.tally).store(accepted, unchanged, self.context.now());
            let Some(error) = failed else { return Vec::new() };
            open = left;
            failures += 1;
            // A store that is busy is no fault: the pull is slowed, as it should be.
            if error.kind() != ErrorKind::Busy {
                self.note(Trouble::Store, &error, "could not store what messages say, will retry");
            }
            if self.stopped_within(pause_after(failures), stop).await {
                return open.into_iter().map(|(place, _)| place).collect();
            }
        }
    }

    /// Counts what was rejected, and keeps it unless it is left to the broker.
    async fn keep_rejects(
        &self,
        messages: &[SourceMessage],
        fates: &mut [MessageFate],
        stop: &mut Stop,
    ) {
        let now = self.context.now();
        let mut rejects = Vec::new();
        for (message, fate) in messages.iter().zip(fates.iter()) {
            let MessageFate::Rejected(rejection) = fate else { continue };
            let (id, body) = (self.consumer.id, &message.body);
            let mut reject = Reject::new(id, &message.id, body, rejection.clone(), now);
            reject.sent_at = message.sent_at;
            rejects.push(reject);
        }
        if rejects.is_empty() {
            return;
        }
        let reasons: Vec<RejectReason> = rejects.iter().map(|reject| reject.reason).collect();
        if !self.leaves() {
            let mut failures = 0;
            while let Err(error) =
                self.context.repository.insert_rejects(rejects.clone(), MAX_REJECTS).await
            {
                failures += 1;
                self.note(Trouble::Store, &error, "could not keep rejects, will retry");
                if self.stopped_within(pause_after(failures), stop).await {
                    let rejected =
                        |fate: &&mut MessageFate| matches!(fate, MessageFate::Rejected(_));
                    let rejected = fates.iter_mut().filter(rejected);
                    return rejected.for_each(|fate| *fate = MessageFate::Unfinished);
                }
            }
        }
        let mut tally = lock(&self.tally);
        for reason in reasons {
            meter::rejected(reason);
            tally.reject(reason, now);
        }
    }

    /// Tells the broker. What it cannot be told comes again.
    pub(super) async fn settle(&self, mut settlements: Vec<(Receipt, SourceSettlement)>) {
        for attempt in 1..=SETTLE_TRIES {
            let mut again = Vec::new();
            while !settlements.is_empty() {
                let rest =
                    settlements.split_off(settlements.len().min(self.facts.max_batch.max(1)));
                let batch = std::mem::replace(&mut settlements, rest);
                let told: Vec<SourceSettlement> = batch.iter().map(|(_, told)| *told).collect();
                for (answer, told) in self.source.settle(batch).await.into_iter().zip(told) {
                    let Err(unsettled) = answer else { continue };
                    if unsettled.error.is_temporary() {
                        again.push((unsettled.receipt, told));
                    } else {
                        let error = chain(&unsettled.error);
                        debug!(consumer = %self.consumer.id, %error, "could not settle a message");
                    }
                }
            }
            if again.is_empty() {
                return;
            }
            settlements = again;
            if attempt < SETTLE_TRIES {
                self.context.sleep(self.context.jittered(pause_after(attempt))).await;
            }
        }
        let left = settlements.len();
        debug!(consumer = %self.consumer.id, left, "messages could not be settled, and come again");
    }

    /// Waits; tells whether it is to stop meanwhile.
    async fn stopped_within(&self, time: Duration, stop: &mut Stop) -> bool {
        tokio::select! {
            biased;
            () = stop.requested() => true,
            () = self.context.sleep(self.context.jittered(time)) => false,
        }
    }

    /// Shows what went wrong, and logs what is new.
    pub(super) fn note(&self, about: Trouble, error: &Error, what: &'static str) {
        note(&self.tally, &self.consumer, &self.context, (about, error), what);
    }

    /// Stores what was counted, with the checkpoints. Tells whether this owner is still the one.
    pub(super) async fn report(&self) -> Result<bool> {
        report(&self.tally, &self.consumer, &self.context, &self.term).await
    }
}

/// What a change is rejected for, if an error says that it can never be stored, rather than that the store is not
/// well. A document whose record is damaged is one of those, and costs itself alone; one that needs a newer Flare
/// waits for a node that knows it.
pub(crate) fn refusal(error: &Error) -> Option<Rejection> {
    use ErrorKind::{Conflict, Invalid, NotFound, TooLarge};
    let refuses = matches!(error.kind(), Conflict | Invalid | NotFound | TooLarge);
    let is_damaged = |it: &Unreadable| matches!(it.why, WhyUnreadable::Damaged { .. });
    let refuses = refuses && !error.is_temporary() || error.unreadable().is_some_and(is_damaged);
    refuses.then(|| Rejection::new(RejectReason::Refused, "", error.to_string()))
}

/// Shows what went wrong with a consumer, and logs what is new.
pub(super) fn note(
    tally: &Mutex<ConsumerTally>,
    consumer: &Consumer,
    context: &Context,
    (about, error): (Trouble, &Error),
    what: &'static str,
) {
    let text = format!("{what}: {error}");
    if lock(tally).fail(about, &text, context.now()) {
        warn!(consumer = %consumer.id, error = %chain(error), "{what}");
    } else {
        debug!(consumer = %consumer.id, error = %chain(error), "{what}");
    }
}

/// Stores what was counted. Tells whether this owner is still the one.
pub(super) async fn report(
    tally: &Mutex<ConsumerTally>,
    consumer: &Consumer,
    context: &Context,
    term: &Term,
) -> Result<bool> {
    use crate::model::Applied;
    let state = lock(tally).state(context.now());
    let stored = context.repository.store_consumer_state(term.epoch, consumer.id, state).await;
    match stored {
        Ok(applied) => Ok(applied == Applied::Done),
        Err(error) => {
            lock(tally).was_not_stored();
            Err(error)
        }
    }
}
