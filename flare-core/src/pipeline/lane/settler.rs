//! Takes judged attempts; gives them to the store, in batches, until each is stored or a later
//! owner has the lane. Never sends again what it could not store.

use std::sync::Arc;

use super::group::Groups;
use crate::error::Result;
use crate::model::{Applied, DocumentUrl, RowEffect, Timestamp, Version};
use crate::pipeline::context::Context;
use crate::pipeline::event::Event;
use crate::port::RowUpdate;

/// An effect that waits to be stored, and what to tell listeners then.
#[derive(Debug, Clone)]
pub(super) struct Unstored {
    pub(super) update: RowUpdate,
    pub(super) event: Option<Event>,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Flushed {
    /// Documents that may be worked on again, and up to which version nothing is left to do.
    pub(super) done: Vec<(DocumentUrl, Option<Version>)>,
    /// When the first of them is due again.
    pub(super) next_due: Option<Timestamp>,
    /// What could not be stored; to be tried again.
    pub(super) left: Vec<Unstored>,
    /// Why.
    pub(super) error: Option<crate::error::Error>,
    /// A later owner has taken the lane.
    pub(super) fenced: bool,
}

/// Stores a batch of effects.
pub(super) async fn flush(
    context: Arc<Context>,
    groups: Arc<Groups>,
    batch: Vec<Unstored>,
) -> Flushed {
    let mut flushed = Flushed::default();
    let limit = context.batch_limit();
    let mut batch = batch.into_iter();
    loop {
        let part: Vec<Unstored> = batch.by_ref().take(limit).collect();
        if part.is_empty() {
            return flushed;
        }
        let updates = part.iter().map(|unstored| unstored.update.clone()).collect();
        let results = groups.rows.store(updates).await;
        for (unstored, result) in part.into_iter().zip(results) {
            flushed.take(&context, unstored, result);
        }
    }
}

impl Flushed {
    fn take(&mut self, context: &Context, unstored: Unstored, result: Result<Applied>) {
        match result {
            Ok(applied) => {
                // A version that came meanwhile waits for the client's interval.
                if let RowEffect::Retry { due, .. }
                | RowEffect::Settle { not_before: Some(due), .. } = unstored.update.effect
                {
                    self.next_due = Some(self.next_due.map_or(due, |next| next.min(due)));
                }
                let settled = match unstored.update.effect {
                    RowEffect::Settle { version, .. } if applied == Applied::Done => Some(version),
                    _ => None,
                };
                self.done.push((unstored.update.key.url, settled));
                match applied {
                    Applied::Done => {
                        if let Some(event) = unstored.event {
                            context.events.emit(event);
                        }
                    }
                    Applied::Fenced { .. } => self.fenced = true,
                    // Settled by a late but truthful acknowledgement, or removed meanwhile.
                    _ => {}
                }
            }
            Err(error) => {
                self.left.push(unstored);
                self.error = Some(error);
            }
        }
    }
}
