//! Takes the keys of the cluster in the store; gives every step of this node the same picture of
//! them, as it changes. Reads only.

use futures::StreamExt;
use tokio::sync::{Notify, watch};
use tracing::{debug, warn};

use std::sync::Arc;

use super::context::NodeContext;
use super::feed::{ChangeFeed, FeedReader};
use super::keys::PREFIX;
use super::state::State;
use crate::error::{Error, ErrorKind, Result};

/// Keeps a picture of the cluster; read it through its receivers.
#[derive(Debug)]
pub(crate) struct Mirror {
    state: watch::Sender<Arc<State>>,
    doubted: Notify,
    feed: ChangeFeed,
}

/// The cluster as it is, and a way to wait until it is different.
pub(crate) type View = watch::Receiver<Arc<State>>;

impl Mirror {
    pub(crate) fn new() -> Self {
        let state = watch::Sender::new(Arc::default());
        Self { state, doubted: Notify::new(), feed: ChangeFeed::new() }
    }

    /// Hears what nodes say to all of them.
    pub(crate) fn feed(&self) -> FeedReader {
        self.feed.reader()
    }

    pub(crate) fn view(&self) -> View {
        self.state.subscribe()
    }

    /// Has everything read anew: a node has seen changes that this does not show.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    /// Follows the store until dropped: lists, watches from there, and lists again whenever the
    /// watch ends, is doubted, or has been going on for long.
    pub(crate) async fn follow(&self, context: &NodeContext) {
        let mut failures = 0;
        loop {
            match self.list(context).await {
                Ok(()) => {
                    failures = 0;
                    if let Err(error) = self.watch(context).await {
                        if error.kind() == ErrorKind::Compacted {
                            debug!(%error, "the watch was too slow, reading all keys");
                            continue;
                        }
                        warn!(?error, "the watch broke off, reading all keys");
                        failures = 1;
                    }
                }
                Err(error) => {
                    failures += 1;
                    warn!(?error, "the keys of the cluster could not be read, will retry");
                }
            }
            if failures > 0 {
                context.pause(failures).await;
            }
        }
    }

    async fn list(&self, context: &NodeContext) -> Result<()> {
        let snapshot = context.timed("list", context.lease.list(PREFIX)).await?;
        self.state.send_if_modified(|state| {
            self.feed.catch_up(state, &snapshot);
            // Revisions only rise, so this is not the store it was: what it says now is what counts.
            if snapshot.revision < state.revision {
                warn!("the coordination store has gone back, it may have been replaced");
            }
            let different = snapshot.revision != state.revision || !state.is_read();
            if different {
                *state = Arc::new(State::new(&snapshot));
            }
            different
        });
        Ok(())
    }

    /// Returns when it is time to list again.
    async fn watch(&self, context: &NodeContext) -> Result<()> {
        let from = self.state.borrow().revision;
        let mut events = context.lease.watch(PREFIX, from);
        let sweep = context.sleep(context.settings.sweep_every);
        tokio::pin!(sweep);
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = self.doubted.notified() => return Ok(()),
                () = &mut sweep => return Ok(()),
            };
            match event {
                Some(Ok(event)) => {
                    _ = self.state.send_if_modified(|state| {
                        Arc::make_mut(state).apply(&event);
                        !self.feed.pass_on(&event)
                    })
                }
                Some(Err(error)) => return Err(error),
                None => {
                    return Err(Error::new(ErrorKind::Unavailable, "watch").with_detail("it ended"));
                }
            }
        }
    }
}
