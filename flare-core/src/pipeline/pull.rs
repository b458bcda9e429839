//! Takes a client that asks for changes; gives it what waits, each with a receipt, and takes what became
//! of it. Any node serves: what is handed out is claimed in the store until it is settled or the claim
//! lapses, and what is told is decided as for everybody (`Telling`).

mod bell;
mod receipt;

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use tracing::warn;

pub(crate) use self::bell::PullBells;
use self::receipt::{ReceiptContent, read_all};
use super::batch::batches;
use super::compose::envelop;
use super::context::Context;
use super::lane::{ContentPart, CountedContent};
use super::reading::{ReadDocuments, read_within};
use super::stage::chain;
use crate::error::{Error, ErrorKind, Result};
use crate::model::subscription::Mode;
use crate::model::{
    Applied, ClaimEffect, ClaimId, Document, DocumentKey, Invalid, Present, Resource, Row,
    Subscription, SubscriptionId, SubscriptionStatus, Telling, Verdict, present_after,
};
use crate::port::{ClaimRows, ClaimUpdate};

/// How many pulls of a process hand out things at a time, as each of them may have read a document of any size.
pub(crate) const SIDE_BY_SIDE: usize = 32;

/// A notification that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pulled {
    /// What it is settled by.
    pub receipt: String,
    /// The envelope, as JSON.
    pub notification: Bytes,
}

/// What a client made of a notification that it was handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullOutcome {
    /// It has it.
    Success,
    /// It refuses this version for good.
    Discard,
    /// It hands it back: it is to be had again at once.
    Return,
}

impl PullOutcome {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Success, Self::Discard, Self::Return];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Discard => "discard",
            Self::Return => "return",
        }
    }
}

impl FromStr for PullOutcome {
    type Err = Invalid;

    fn from_str(text: &str) -> std::result::Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|outcome| outcome.as_str() == text);
        known.ok_or_else(|| Invalid::new("", "must be success, discard or return"))
    }
}

/// What became of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PullSettlement {
    /// It is stored.
    Done,
    /// The claim had lapsed, or was settled before: nothing changed.
    Expired,
    /// As new a version was settled already, or the client is told everything anew: nothing changed.
    Overtaken,
    /// The store failed, and does not say whether it is stored. It may be settled again: what is stored
    /// by then is expired.
    Failed,
}

/// Why a subscription's client may not ask for what waits: the field, and what is said of it.
pub(crate) fn refusal(subscription: &Subscription) -> Option<(&'static str, String)> {
    if subscription.spec.mode() != Mode::Passive {
        return Some(("mode", "the subscription is active: changes are sent as they come".into()));
    }
    match subscription.status {
        status @ (SubscriptionStatus::Paused | SubscriptionStatus::Suspended) => {
            Some(("status", format!("the subscription is {status}: resume it first")))
        }
        _ => None,
    }
}

/// Hands out up to `max` of what waits; no notification, if nothing does. `None` if the subscription was
/// changed meanwhile so that this is not to be answered by what it was: it is to be asked anew.
///
/// The subscription was read before anything is claimed, and may be changed at any time. So it is read again
/// after the documents, which are read after the claim:
///
/// - *Nothing is handed out that was accepted after a pause or replacement returned, but under it.* What was
///   accepted is as old as the document that was read, and what is read after that shows what returned before.
/// - *Nothing is handed out that a lane has sent, or is sending.* Only lanes of an active subscription send what
///   no pull demanded. Their slot is left before one that becomes passive again hands out anything, and that
///   leaves its mark (`least_epoch`). A pull that finds the subscription passive after the claim, and the mark as
///   it was, knows that there was no such lane; and from the claim on no lane sends it.
/// - *Nothing is handed out under a claim that has lapsed.* Others may have been told of it since, and of something
///   newer. How long the store took is counted from before it was asked for the claim, so from no later than the
///   store counts.
pub(crate) async fn pull(
    context: &Context,
    resource: &Resource,
    subscription: Subscription,
    max: usize,
    holds_for: Duration,
) -> Result<Option<Vec<Pulled>>> {
    let now = context.time().await?;
    // Before the claim, which others wait for. The store alone is waited for under it.
    let turn = context.pull_turns.acquire().await;
    let _turn = turn.map_err(|ended| Error::new(ErrorKind::Internal, "pull").with_source(ended))?;
    let (id, claim) = (subscription.id, context.ids.next(now).into());
    let max = max.min(context.batch_limit());
    let request = ClaimRows { subscription: id, claim, max, holds_for };
    let claimed_at = context.clock.monotonic();
    let rows = context.repository.claim_rows(request).await?;
    let (pulled, done) = (Vec::with_capacity(rows.len()), Vec::new());
    let part = context.content.part();
    let mut handing = Handing { context, resource, subscription, claim, part, pulled, done };
    let ended = handing.hand_out_all(&rows).await;
    let mut pulled = handing.finish().await;
    if !pulled.is_empty() && claimed_at + holds_for <= context.clock.monotonic() {
        warn!(subscription = %id, "the store took longer than what was claimed may be held; it waits for others");
        pulled.clear();
    }
    match ended {
        Ok(HandOutEnd::Changed) if pulled.is_empty() => Ok(None),
        Err(error) if pulled.is_empty() => Err(error),
        // What is handed out already is not lost by that: it is given.
        Err(error) => {
            let error = chain(&error);
            warn!(subscription = %id, %error, "could not hand out all that was claimed; the rest waits");
            Ok(Some(pulled))
        }
        Ok(_) => Ok(Some(pulled)),
    }
}

/// How the handing out of rows ended.
enum HandOutEnd {
    /// All of them were looked at, or as many as there is room for.
    Done,
    /// They may not be handed out any more.
    Changed,
}

/// Rows that are being handed out.
struct Handing<'a> {
    context: &'a Context,
    resource: &'a Resource,
    /// As it was when it was last read.
    subscription: Subscription,
    claim: ClaimId,
    /// What may be read of documents.
    part: ContentPart,
    /// What is handed out, each counted until all of it is.
    pulled: Vec<(Pulled, CountedContent)>,
    /// What is not.
    done: Vec<ClaimUpdate>,
}

impl Handing<'_> {
    async fn hand_out_all(&mut self, rows: &[Row]) -> Result<HandOutEnd> {
        let mut left = rows;
        let ended = self.hand_out_some(&mut left).await;
        // What is left is for the next one who asks.
        left.iter().for_each(|row| self.give_back(row));
        ended
    }

    /// Hands out rows, as many as there is room for, and takes them off those that are left.
    async fn hand_out_some(&mut self, left: &mut &[Row]) -> Result<HandOutEnd> {
        let mut failed = None;
        let mut is_first = true;
        while !left.is_empty() {
            let Some(room) = self.part.reserve(left.len(), false) else { break };
            let all = *left;
            let keys = all.iter().take(room.documents).map(|row| row.document.clone());
            let keys: Vec<DocumentKey> = keys.collect();
            let ReadDocuments { found, largest } = read_within(self.context, &keys, &room).await?;
            self.part.learn(largest);
            let (some, rest) = all.split_at(found.len());
            let newer = some.iter().zip(&found).any(|(row, document)| is_newer(row, document));
            // The first time because of the claim; then only if there may have been a change since.
            if (is_first || newer) && !self.goes_on().await? {
                return Ok(HandOutEnd::Changed);
            }
            is_first = false;
            *left = rest;
            for (row, document) in some.iter().zip(found) {
                if let Err(error) = self.hand_out(row, document) {
                    self.give_back(row);
                    failed.get_or_insert(error);
                }
            }
        }
        failed.map_or(Ok(HandOutEnd::Done), Err)
    }

    /// Reads the subscription again; tells whether what is claimed may be handed out as it is now.
    async fn goes_on(&mut self) -> Result<bool> {
        let newest = self.context.repository.subscription(self.subscription.id).await;
        // One that cannot be read any more is refused when it is asked anew.
        let Some(newest) = self.context.if_readable(newest)?.flatten() else { return Ok(false) };
        let goes_on = refusal(&newest).is_none()
            && newest.status != SubscriptionStatus::Deleting
            && newest.moving_from.is_none()
            && newest.least_epoch == self.subscription.least_epoch;
        self.subscription = newest;
        Ok(goes_on)
    }

    /// Hands a row out, unless there is nothing to tell or it cannot be told now.
    fn hand_out(&mut self, row: &Row, document: Result<Option<Document>>) -> Result<()> {
        let document = match document {
            Ok(Some(document)) if document.version >= row.wanted => document,
            // Its retention is over: what is left to tell needs no content.
            Ok(None) if row.wanted.is_gone() => {
                Document::new(row.document.clone(), row.wanted, row.since)
            }
            // Damaged, or our own store is behind.
            _ => {
                self.give_back(row);
                return Ok(());
            }
        };
        let verdict = self.context.verdict(&self.subscription, self.resource, &document);
        let Some(verdict) = verdict else {
            self.give_back(row);
            return Ok(());
        };
        let Some(telling) = Telling::of_claimed(row, &document, &self.subscription.left(), verdict)
        else {
            let (version, present) = (document.version, Present::No);
            self.end(row, ClaimEffect::Settle { version, present, not_before: None });
            return Ok(());
        };
        let told = envelop(self.resource, &self.subscription, &document, telling);
        let notification = told.map_err(|invalid| Error::invalid("pull", invalid))?;
        let receipt = ReceiptContent::of(row, self.claim, telling).encode()?;
        let counted = self.part.count(notification.len(), false);
        self.pulled.push((Pulled { receipt, notification }, counted));
        Ok(())
    }

    fn give_back(&mut self, row: &Row) {
        self.end(row, ClaimEffect::Release);
    }

    fn end(&mut self, row: &Row, effect: ClaimEffect) {
        let (key, claim, round) = (row.key.clone(), self.claim, row.round);
        self.done.push(ClaimUpdate { key, claim, round, effect });
    }

    /// Ends the claims on what is not handed out. If that fails they lapse. Gives what is.
    async fn finish(self) -> Vec<Pulled> {
        for updates in batches(self.context.batch_limit(), self.done) {
            for applied in self.context.repository.apply_claims(updates).await {
                if let Err(error) = applied {
                    warn!(error = %chain(&error), "could not end a claim; it lapses");
                }
            }
        }
        self.pulled.into_iter().map(|(pulled, _)| pulled).collect()
    }
}

/// Whether a document was accepted, perhaps, after its row was claimed.
fn is_newer(row: &Row, document: &Result<Option<Document>>) -> bool {
    let document = document.as_ref().ok().and_then(Option::as_ref);
    document.is_some_and(|document| document.version > row.wanted)
}

/// Takes what a client made of what it was handed; one answer per receipt. A receipt that is none, or
/// another subscription's, is refused, and nothing is settled. An error of the store's is the answer if
/// nothing but errors came of it.
pub(crate) async fn settle(
    context: &Context,
    subscription: &Subscription,
    outcomes: Vec<(String, PullOutcome)>,
) -> Result<Vec<PullSettlement>> {
    let receipts = read_all(&outcomes).map_err(|invalid| Error::invalid("settle", invalid))?;
    let interval = subscription.spec.delivery().min_interval();
    let now = context.time().await?;
    let mut updates = Vec::with_capacity(receipts.len());
    for (receipt, (_, outcome)) in receipts.into_iter().zip(outcomes) {
        let verdict = match outcome {
            PullOutcome::Success => Some(Verdict::Success),
            PullOutcome::Discard => Some(Verdict::Discard),
            PullOutcome::Return => None,
        };
        let effect = verdict.map_or(ClaimEffect::Release, |verdict| ClaimEffect::Settle {
            version: receipt.version,
            present: present_after(receipt.held, receipt.action, verdict),
            not_before: interval.map(|interval| now + interval),
        });
        updates.push(receipt.update(subscription.id, effect));
    }
    let mut settled = Vec::with_capacity(updates.len());
    let mut errors = Vec::new();
    for updates in batches(context.batch_limit(), updates) {
        for applied in context.repository.apply_claims(updates).await {
            settled.push(match applied {
                Ok(Applied::Done) => PullSettlement::Done,
                Ok(Applied::Expired | Applied::Missing) => PullSettlement::Expired,
                Ok(Applied::Overtaken | Applied::Fenced { .. }) => PullSettlement::Overtaken,
                Err(error) => {
                    errors.push(error);
                    PullSettlement::Failed
                }
            });
        }
    }
    // What was handed back is there for others.
    context.bells.ring([subscription.id]);
    let failed = errors.len();
    match errors.into_iter().next() {
        Some(error) if failed == settled.len() => Err(error),
        Some(error) => {
            let (id, error) = (subscription.id, chain(&error));
            warn!(subscription = %id, failed, %error, "could not settle some of what was pulled");
            Ok(settled)
        }
        None => Ok(settled),
    }
}

/// Has what waits for a client sent to it, up to so much; tells how much.
pub(crate) async fn demand(context: &Context, id: SubscriptionId, quantity: u64) -> Result<u64> {
    let limit = context.batch_limit() as u64;
    let mut demanded = 0;
    while demanded < quantity {
        let some = (quantity - demanded).min(limit);
        let max = usize::try_from(some).map_err(|_| Error::new(ErrorKind::Internal, "demand"))?;
        match context.repository.demand_rows(id, max).await? {
            0 => break,
            marked => demanded += marked,
        }
    }
    Ok(demanded)
}
