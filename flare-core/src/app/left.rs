//! Takes the stores; gives what is still to be delivered, and to whom.

use std::fmt;
use std::time::Duration;

use crate::error::Result;
use crate::model::{RecordName, Resource, SubscriptionId};
use crate::pipeline::context::Context;
use crate::pipeline::jobs::backfill;
use crate::port::Page;

/// Records that are read at a time.
const PAGE: u32 = 100;
/// Subscriptions that are asked one by one what is pending, at most.
const MOST: usize = 10_000;
/// How long that may take.
const READING: Duration = Duration::from_secs(5);

/// What is left to deliver: it is in the stores, for the next runtime on them. Stores in memory end
/// with the process, and so does what is left in them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Left {
    /// Changes that are not spread to their subscriptions yet.
    pub spreading: u64,
    /// Backfills and resyncs that are under way, or held by a pause: they have more to make pending.
    pub backfills: u64,
    /// Notifications that are pending.
    pub pending: u64,
    /// How many of them are for whom; at most ten thousand subscriptions are asked, and for some seconds.
    pub subscriptions: Vec<(SubscriptionId, u64)>,
}

impl Left {
    /// Whether every client has the newest version of everything.
    pub fn is_nothing(&self) -> bool {
        self.spreading == 0 && self.backfills == 0 && self.pending == 0
    }

    /// Only how much it is: three questions, whatever the number of subscriptions.
    pub(super) async fn counted(context: &Context) -> Result<Self> {
        // Pending last: what is spread in between is seen as pending.
        let spreading = context.repository.count_undispatched(None).await?;
        let backfills = backfill::under_way(context).await?;
        let pending = context.repository.count_pending(None).await?.count;
        Ok(Self { spreading, backfills, pending, subscriptions: Vec::new() })
    }

    /// Also for whom, as far as that can be asked in a few seconds.
    pub(super) async fn read(context: &Context) -> Result<Self> {
        let mut left = Self::counted(context).await?;
        tokio::select! {
            biased;
            read = left.read_resources(context) => read?,
            () = context.sleep(READING) => {}
        }
        Ok(left)
    }

    async fn read_resources(&mut self, context: &Context) -> Result<()> {
        let (mut asked, mut page) = (0, Page::new(PAGE, 0));
        while self.named() < self.pending && asked < MOST {
            let resources = context.repository.list_resources(page).await?;
            if resources.items.is_empty() && resources.unreadable.is_empty() {
                break;
            }
            page = after(page, resources.items.len() + resources.unreadable.len());
            for resource in &resources.items {
                asked += 1;
                if self.named() < self.pending && asked < MOST {
                    self.read_resource(context, resource, &mut asked).await?;
                }
            }
        }
        Ok(())
    }

    async fn read_resource(
        &mut self,
        context: &Context,
        resource: &Resource,
        asked: &mut usize,
    ) -> Result<()> {
        let mut page = Page::new(PAGE, 0);
        loop {
            let listed = context.repository.list_subscriptions(resource.id, page).await?;
            if listed.items.is_empty() && listed.unreadable.is_empty() || *asked >= MOST {
                return Ok(());
            }
            page = after(page, listed.items.len() + listed.unreadable.len());
            // What waits for one that cannot be read can be counted all the same.
            let unreadable = listed.unreadable.iter().filter_map(|it| match it.record {
                RecordName::Subscription(id) => Some(id),
                _ => None,
            });
            for id in listed.items.iter().map(|it| it.id).chain(unreadable) {
                *asked += 1;
                let pending = context.repository.count_pending(Some(id)).await?.count;
                if pending > 0 {
                    self.subscriptions.push((id, pending));
                }
            }
        }
    }

    /// How many of the notifications it is known whom they are for.
    fn named(&self) -> u64 {
        self.subscriptions.iter().map(|(_, pending)| pending).sum()
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
        let Self { spreading, backfills, pending, .. } = self;
        write!(f, "{spreading} changes are not spread and {pending} notifications are pending")?;
        match backfills {
            0 => Ok(()),
            1 => f.write_str("; 1 backfill or resync is under way"),
            _ => write!(f, "; {backfills} backfills and resyncs are under way"),
        }
    }
}
