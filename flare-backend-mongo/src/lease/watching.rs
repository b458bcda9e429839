//! Takes a prefix and a revision; gives what changes after it. One poller per process looks
//! whether anything has changed; those who watch then read what.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use flare_core::port::{KeyEvent, Scan, StoreRevision};
use flare_core::{Error, ErrorKind, Result};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::bson::doc;
use tokio::task::JoinHandle;
use tracing::debug;

use super::store::Store;
use super::{record, view};
use crate::BACKEND;
use crate::record::Record;

const OPERATION: &str = "watch";

pub(super) fn watch(
    store: Arc<Store>,
    prefix: String,
    from: StoreRevision,
) -> Scan<'static, KeyEvent> {
    let watch = Watch { store, prefix, seen: from, events: VecDeque::new(), poller: None };
    let events = stream::unfold(Some(watch), async |watch| {
        let mut watch = watch?;
        match watch.next().await {
            Ok(event) => Some((Ok(event), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    });
    events.boxed()
}

#[derive(Debug)]
struct Watch {
    store: Arc<Store>,
    prefix: String,
    /// Everything up to here was given, or is in `events`, or is of other prefixes.
    seen: StoreRevision,
    /// What was read and not given yet.
    events: VecDeque<KeyEvent>,
    /// Kept going by those who hold it.
    poller: Option<Arc<Poller>>,
}

impl Watch {
    async fn next(&mut self) -> Result<KeyEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let told = self.told();
            match self.look().await {
                Err(error) if error.is_temporary() => self.pause().await,
                looked => looked?,
            }
            if self.events.is_empty() {
                self.wait(told).await;
            }
        }
    }

    /// Reads what is new.
    async fn look(&mut self) -> Result<()> {
        let wanted = view::events_under(&self.prefix, self.seen);
        let found = self.store.look(OPERATION, wanted).await?;
        let state = Record::new(OPERATION, &found);
        let revision = record::revision(&state, "revision")?;
        let compacted = record::revision(&state, "compacted")?;
        // A store that is behind what was seen was rewound: what it says next happened before.
        if self.seen < compacted || revision < self.seen {
            return Err(forgotten(self.seen, compacted, revision));
        }
        self.events = record::events(OPERATION, &found)?.into();
        // What happened elsewhere is seen too: forgetting it leaves no gap here.
        self.seen = revision;
        Ok(())
    }

    /// Waits until there is something to look at. What was `told` before the last look and was not
    /// seen in it takes some time to arrive.
    async fn wait(&mut self, told: StoreRevision) {
        if told > self.seen {
            return self.pause().await;
        }
        self.poller.get_or_insert_with(|| Poller::of(&self.store));
        let mut news = self.store.news.subscribe();
        let later = news.wait_for(|news| news.odd || news.revision > self.seen);
        // It fails if the sender is gone, which the store holds, which we hold.
        let odd = later.await.is_ok_and(|news| news.odd);
        if odd {
            self.pause().await;
        }
    }

    fn told(&self) -> StoreRevision {
        self.store.news.borrow().revision
    }

    async fn pause(&self) {
        self.store.connection.pause(self.store.connection.poll_every).await;
    }
}

fn forgotten(seen: StoreRevision, compacted: StoreRevision, revision: StoreRevision) -> Error {
    let (seen, compacted, revision) = (seen.get(), compacted.get(), revision.get());
    let detail = format!(
        "revision {seen} cannot be resumed from, history goes from {compacted} to {revision}"
    );
    Error::new(ErrorKind::Compacted, OPERATION).with_backend(BACKEND).with_detail(detail)
}

/// Looks for news again and again, until nobody holds it.
#[derive(Debug)]
pub(super) struct Poller {
    task: JoinHandle<()>,
}

impl Poller {
    /// The store's poller, started if there is none.
    fn of(store: &Arc<Store>) -> Arc<Self> {
        let mut current = store.poller.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(poller) = current.upgrade().filter(|it| !it.task.is_finished()) {
            return poller;
        }
        let (poll, follow) = (poll(Arc::clone(store)), follow(Arc::clone(store)));
        let task = tokio::spawn(async { ((), ()) = futures::join!(poll, follow) });
        let poller = Arc::new(Self { task });
        *current = Arc::downgrade(&poller);
        poller
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Looks whenever the server says that something has changed, so that news come at once where it
/// can say so. The poll goes on beside it: leases lapse without a change.
async fn follow(store: Arc<Store>) {
    loop {
        match store.changes(OPERATION).await {
            Ok(mut changes) => {
                while let Ok(Some(_)) = changes.try_next().await {
                    // What cannot be looked at now the poll will find.
                    let looked = store.look(OPERATION, doc! { "revision": 1 }).await;
                    looked.err().inspect(|error| debug!(%error, "could not look at a change"));
                }
            }
            // A server by itself has no change streams, and will not grow any.
            Err(error) if !error.is_temporary() => {
                debug!(%error, "changes are found by polling");
                return;
            }
            Err(error) => debug!(%error, "cannot follow changes now"),
        }
        store.connection.pause(store.connection.poll_every).await;
    }
}

/// A look tells the news itself; what is left to tell is that something is odd.
async fn poll(store: Arc<Store>) {
    loop {
        let told = store.news.borrow().revision;
        let odd = match store.look(OPERATION, doc! { "revision": 1 }).await {
            Ok(found) => record::revision(&Record::new(OPERATION, &found), "revision")
                .is_ok_and(|revision| revision < told),
            Err(error) => !error.is_temporary(),
        };
        store.news.send_if_modified(|news| std::mem::replace(&mut news.odd, odd) != odd);
        store.connection.pause(store.connection.poll_every).await;
    }
}
