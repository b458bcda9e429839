//! Takes the stores; gives what is still to be delivered, and to whom.

use std::fmt;

use crate::error::Result;
use crate::model::{Resource, SubscriptionId};
use crate::pipeline::context::Context;
use crate::port::Page;

/// Records that are read at a time.
const PAGE: u32 = 100;
/// Subscriptions that are asked one by one what is pending, at most.
const MOST: usize = 10_000;

/// What is left to deliver: it is in the stores, for the next runtime on them. Stores in memory end
/// with the process, and so does what is left in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Left {
    /// Changes that are not spread to their subscriptions yet.
    pub spreading: u64,
    /// Notifications that are pending.
    pub pending: u64,
    /// How many of them are for whom; at most the first ten thousand subscriptions are asked.
    pub subscriptions: Vec<(SubscriptionId, u64)>,
}

impl Left {
    /// Whether every client has the newest version of everything.
    pub fn is_nothing(&self) -> bool {
        self.spreading == 0 && self.pending == 0
    }

    /// Only how much it is: two questions, whatever the number of subscriptions.
    pub(super) async fn counted(context: &Context) -> Result<Self> {
        // Undispatched first: what is spread in between is seen as pending.
        let spreading = context.repository.count_undispatched(None).await?;
        let pending = context.repository.count_pending(None).await?.count;
        Ok(Self { spreading, pending, subscriptions: Vec::new() })
    }

    /// Also for whom.
    pub(super) async fn read(context: &Context) -> Result<Self> {
        let mut left = Self::counted(context).await?;
        let (mut found, mut asked, mut page) = (0, 0, Page::new(PAGE, 0));
        while found < left.pending && asked < MOST {
            let resources = context.repository.list_resources(page).await?;
            if resources.items.is_empty() && resources.unreadable.is_empty() {
                break;
            }
            page = after(page, resources.items.len() + resources.unreadable.len());
            for resource in &resources.items {
                if found < left.pending && asked < MOST {
                    found += left.read_resource(context, resource, &mut asked).await?;
                }
            }
        }
        Ok(left)
    }

    async fn read_resource(
        &mut self,
        context: &Context,
        resource: &Resource,
        asked: &mut usize,
    ) -> Result<u64> {
        let (mut found, mut page) = (0, Page::new(PAGE, 0));
        loop {
            let listed = context.repository.list_subscriptions(resource.id, page).await?;
            if listed.items.is_empty() && listed.unreadable.is_empty() || *asked >= MOST {
                return Ok(found);
            }
            page = after(page, listed.items.len() + listed.unreadable.len());
            for subscription in listed.items {
                *asked += 1;
                let pending = context.repository.count_pending(Some(subscription.id)).await?.count;
                if pending > 0 {
                    self.subscriptions.push((subscription.id, pending));
                    found += pending;
                }
            }
        }
    }
}

fn after(page: Page, read: usize) -> Page {
    Page::new(page.limit, page.offset + read as u64)
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nothing() {
            return f.write_str("nothing is left");
        }
        let Self { spreading, pending, .. } = self;
        write!(f, "{spreading} changes are not spread and {pending} notifications are pending")
    }
}
