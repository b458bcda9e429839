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
use super::stage::chain;
use crate::error::{Error, ErrorKind, Result};
use crate::model::{
    Applied, ClaimEffect, ClaimId, Document, Invalid, Present, Resource, Row, Subscription,
    SubscriptionId, Telling, Verdict, present_after,
};
use crate::port::{ClaimRows, ClaimUpdate};

/// Documents read at a time, as nobody knows how large they are.
const READ: usize = 16;

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
}

/// Hands out up to `max` of what waits; nothing, if nothing does.
pub(crate) async fn pull(
    context: &Context,
    resource: &Resource,
    subscription: &Subscription,
    max: usize,
    holds_for: Duration,
) -> Result<Vec<Pulled>> {
    let claim: ClaimId = context.ids.next(context.time().await?).into();
    let max = max.min(context.batch_limit());
    let request = ClaimRows { subscription: subscription.id, claim, max, holds_for };
    let rows = context.repository.claim_rows(request).await?;
    let mut handing = Handing { context, resource, subscription, claim, done: Vec::new() };
    let mut pulled = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    let mut rows = rows.into_iter();
    loop {
        let some: Vec<Row> = rows.by_ref().take(READ).collect();
        // What does not fit is for the next one who asks.
        if some.is_empty() || bytes > context.settings.content_limit / 4 {
            some.into_iter().chain(rows).for_each(|row| handing.give_back(&row));
            break;
        }
        match handing.read(&some).await {
            Ok(documents) => {
                for (row, document) in some.into_iter().zip(documents) {
                    let Some(one) = handing.hand_out(&row, document)? else { continue };
                    bytes += one.notification.len();
                    pulled.push(one);
                }
            }
            Err(error) => {
                some.iter().for_each(|row| handing.give_back(row));
                rows.for_each(|row| handing.give_back(&row));
                handing.finish().await;
                // What is handed out already is not lost by that: it is given.
                return if pulled.is_empty() { Err(error) } else { Ok(pulled) };
            }
        }
    }
    handing.finish().await;
    Ok(pulled)
}

/// Rows that are being handed out.
struct Handing<'a> {
    context: &'a Context,
    resource: &'a Resource,
    subscription: &'a Subscription,
    claim: ClaimId,
    /// What is not handed out.
    done: Vec<ClaimUpdate>,
}

impl Handing<'_> {
    async fn read(&self, rows: &[Row]) -> Result<Vec<Result<Option<Document>>>> {
        let keys = rows.iter().map(|row| row.document.clone()).collect();
        let ask = |keys| self.context.repository.documents(keys);
        self.context.each_readable(keys, ask).await
    }

    /// What a client is handed of a row; nothing, if there is nothing to tell or it cannot be told now.
    fn hand_out(
        &mut self,
        row: &Row,
        document: Result<Option<Document>>,
    ) -> Result<Option<Pulled>> {
        let document = match document {
            Ok(Some(document)) if document.version >= row.wanted => document,
            // Its retention is over: what is left to tell needs no content.
            Ok(None) if row.wanted.is_gone() => {
                Document::new(row.document.clone(), row.wanted, row.since)
            }
            // Damaged, or our own store is behind.
            _ => {
                self.give_back(row);
                return Ok(None);
            }
        };
        let verdict = self.context.verdict(self.subscription, self.resource, &document);
        let Some(verdict) = verdict else {
            self.give_back(row);
            return Ok(None);
        };
        let Some(telling) = Telling::of_claimed(row, &document, &self.subscription.left(), verdict)
        else {
            let (version, present) = (document.version, Present::No);
            self.end(row, ClaimEffect::Settle { version, present, not_before: None });
            return Ok(None);
        };
        let told = envelop(self.resource, self.subscription, &document, telling);
        let notification = told.map_err(|invalid| Error::invalid("pull", invalid))?;
        let receipt = ReceiptContent::of(row, self.claim, telling).encode()?;
        Ok(Some(Pulled { receipt, notification }))
    }

    fn give_back(&mut self, row: &Row) {
        self.end(row, ClaimEffect::Release);
    }

    fn end(&mut self, row: &Row, effect: ClaimEffect) {
        let (key, claim, round) = (row.key.clone(), self.claim, row.round);
        self.done.push(ClaimUpdate { key, claim, round, effect });
    }

    /// Ends the claims on what is not handed out. If that fails they lapse.
    async fn finish(self) {
        for updates in batches(self.context.batch_limit(), self.done) {
            for applied in self.context.repository.apply_claims(updates).await {
                if let Err(error) = applied {
                    warn!(error = %chain(&error), "could not end a claim; it lapses");
                }
            }
        }
    }
}

/// Takes what a client made of what it was handed; one answer per receipt. A receipt that is none, or
/// another subscription's, is refused, and nothing is settled.
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
    for updates in batches(context.batch_limit(), updates) {
        for applied in context.repository.apply_claims(updates).await {
            settled.push(match applied? {
                Applied::Done => PullSettlement::Done,
                Applied::Expired | Applied::Missing => PullSettlement::Expired,
                Applied::Overtaken | Applied::Fenced { .. } => PullSettlement::Overtaken,
            });
        }
    }
    // What was handed back is there for others.
    context.bells.ring([subscription.id]);
    Ok(settled)
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
