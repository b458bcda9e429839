//! Takes a consumer; gives the messages of it that became no document, and lets them be tried again.

use std::collections::BTreeSet;

use super::flare::{Flare, not_found};
use crate::error::{Error, Result};
use crate::filter::MessageExpression;
use crate::model::{AuditAction, AuditSubject, Consumer, ConsumerId, Reject, RejectId, Resource};
use crate::pipeline::consumers::{MAX_REJECTS, MappedBatch, refusal};
use crate::port::{Listing, Page};

/// Rejects that are tried at a time.
const AT_A_TIME: u32 = 100;

/// What became of rejects that were tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RetriedRejects {
    /// They became documents, and are listed no more.
    pub stored: u64,
    /// They were rejected again, or are too large to have been kept whole.
    pub rejected: u64,
}

impl Flare {
    /// Lists the messages of a consumer that became no document, oldest rejection first. The last 1,000 are kept.
    pub async fn rejects(&self, consumer: ConsumerId, page: Page) -> Result<Listing<Reject>> {
        self.find_consumer("rejects", consumer).await?;
        let listing = self.context().repository.list_rejects(consumer, page).await?;
        listing.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
        Ok(listing)
    }

    /// Tries rejects again, by the mapping that the consumer has now. If one of them is not listed, none is tried;
    /// an error of the store may come after some were.
    pub async fn retry_rejects(
        &self,
        consumer: ConsumerId,
        ids: impl IntoIterator<Item = RejectId>,
    ) -> Result<RetriedRejects> {
        const OPERATION: &str = "retry_rejects";
        let (consumer, resource) = self.of_rejects(OPERATION, consumer).await?;
        let ids: BTreeSet<RejectId> = ids.into_iter().collect();
        let asked: Vec<RejectId> = ids.iter().copied().collect();
        let found = self.context().repository.rejects(consumer.id, asked).await?;
        let there: BTreeSet<RejectId> = found.iter().map(|reject| reject.id).collect();
        if let Some(unknown) = ids.difference(&there).next() {
            return Err(not_found(OPERATION, "reject", unknown));
        }
        let mut retried = RetriedRejects::default();
        for rejects in found.chunks(AT_A_TIME as usize) {
            retried.add(self.retry_some(OPERATION, &consumer, &resource, rejects).await?);
        }
        self.tell_retried(consumer.id, retried);
        Ok(retried)
    }

    fn tell_retried(&self, id: ConsumerId, retried: RetriedRejects) {
        let RetriedRejects { stored, rejected } = retried;
        if stored + rejected > 0 {
            let detail = format!("{stored} rejects stored, {rejected} rejected again");
            self.tell(AuditAction::Replayed, AuditSubject::consumer(id), detail);
        }
    }

    /// Tries all that are listed now.
    pub async fn retry_all_rejects(&self, consumer: ConsumerId) -> Result<RetriedRejects> {
        const OPERATION: &str = "retry_all_rejects";
        let (consumer, resource) = self.of_rejects(OPERATION, consumer).await?;
        let mut retried = RetriedRejects::default();
        let (mut passed, mut left) = (0, None);
        loop {
            // Those that were rejected again are the youngest now, so the next to try are always the first, but for
            // those that cannot be read: they stay where they are, before all that are looked at next.
            let page = Page::new(AT_A_TIME, passed);
            let listed = self.context().repository.list_rejects(consumer.id, page).await?;
            listed.unreadable.iter().for_each(|it| self.context().note_unreadable(it));
            let unreadable = listed.unreadable.len() as u64;
            passed += unreadable;
            let most = left.unwrap_or(listed.total).saturating_sub(unreadable);
            let mut rejects = listed.items;
            rejects.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            let most = most - rejects.len() as u64;
            left = Some(most);
            if !rejects.is_empty() {
                retried.add(self.retry_some(OPERATION, &consumer, &resource, &rejects).await?);
            }
            if most == 0 || (rejects.is_empty() && unreadable == 0) {
                self.tell_retried(consumer.id, retried);
                return Ok(retried);
            }
        }
    }

    async fn of_rejects(
        &self,
        operation: &'static str,
        consumer: ConsumerId,
    ) -> Result<(Consumer, Resource)> {
        let consumer = self.find_consumer(operation, consumer).await?;
        let resource = self.active_resource(operation, consumer.resource).await?;
        Ok((consumer, resource))
    }

    async fn retry_some(
        &self,
        operation: &'static str,
        consumer: &Consumer,
        resource: &Resource,
        rejects: &[Reject],
    ) -> Result<RetriedRejects> {
        let context = self.context();
        let expression = consumer.mapping.expression().map(MessageExpression::new).transpose();
        let expression = expression.map_err(|invalid| Error::invalid(operation, invalid))?;
        let expression = expression.unwrap_or_default();
        let judge = |_: &_, message: &[u8]| expression.is_true_of(message);
        let whole: Vec<&Reject> = rejects.iter().filter(|reject| reject.body.is_some()).collect();
        let bodies = whole.iter().map(|reject| reject.body.as_deref().unwrap_or_default());
        let trace = context.current_trace.ask();
        let mapped = MappedBatch::of(resource, &consumer.mapping, &judge, bodies, trace.as_ref());
        let mut rejections = mapped.rejections;
        for wave in mapped.waves {
            let (places, changes): (Vec<usize>, Vec<_>) = wave.into_iter().unzip();
            for (place, answer) in places.into_iter().zip(self.accept(operation, changes).await) {
                if let Err(error) = answer {
                    let rejection = refusal(&error).ok_or(error)?;
                    rejections.insert(place, rejection);
                }
            }
        }
        let now = context.time().await?;
        let (mut done, mut again) = (Vec::new(), Vec::new());
        for (place, reject) in whole.into_iter().enumerate() {
            match rejections.remove(&place) {
                None => done.push(reject.id),
                Some(rejection) => again.push(reject.clone().rejected_again(rejection, now)),
            }
        }
        // One that was not kept whole can only be looked at; it goes to the end as if it had been tried.
        for reject in rejects.iter().filter(|reject| reject.body.is_none()) {
            let mut later = reject.clone();
            later.rejected_at = now;
            again.push(later);
        }
        let retried = RetriedRejects { stored: done.len() as u64, rejected: again.len() as u64 };
        context.repository.insert_rejects(again, MAX_REJECTS).await?;
        context.repository.remove_rejects(consumer.id, done).await?;
        Ok(retried)
    }
}

impl RetriedRejects {
    fn add(&mut self, other: Self) {
        self.stored += other.stored;
        self.rejected += other.rejected;
    }
}
