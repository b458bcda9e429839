//! What one node announces to all of them: a write of one key, read by every node's watch. The feed does
//! not know what an announcement means.

use bytes::Bytes;
use tokio::sync::broadcast;

use super::keys;
use super::state::State;
use crate::port::{KeyChange, KeyEvent, Snapshot};

/// Items that wait for a reader; one that is slower misses some, and is told so.
const KEPT: usize = 256;

/// What a reader gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FeedItem {
    /// A node announced this.
    Announced(Bytes),
    /// Something may have been announced.
    Missed,
}

/// The announcements of all nodes, as this node's watch shows them.
#[derive(Debug)]
pub(crate) struct ChangeFeed(broadcast::Sender<FeedItem>);

/// Reads what is announced from now on.
#[derive(Debug)]
pub(crate) struct FeedReader(broadcast::Receiver<FeedItem>);

impl ChangeFeed {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }

    pub(crate) fn reader(&self) -> FeedReader {
        FeedReader(self.0.subscribe())
    }

    /// Passes on what an event announces; tells whether it is an announcement and nothing else.
    pub(crate) fn pass_on(&self, event: &KeyEvent) -> bool {
        match &event.kind {
            KeyChange::Written(entry) if event.key == keys::FEED => {
                self.publish(FeedItem::Announced(entry.value.clone()));
                true
            }
            _ => false,
        }
    }

    /// All keys were read anew: what was announced since `before` was known is not among them, but for
    /// the last of it.
    pub(crate) fn catch_up(&self, before: &State, snapshot: &Snapshot) {
        let newer = |revision| before.is_read() && revision > before.revision;
        let mut entries = snapshot.entries.iter();
        if entries.any(|entry| entry.key == keys::FEED && newer(entry.revision)) {
            self.publish(FeedItem::Missed);
        }
    }

    fn publish(&self, item: FeedItem) {
        // Without readers no one misses it.
        let _ = self.0.send(item);
    }
}

impl FeedReader {
    /// The next item; for ever nothing, once the feed is gone.
    pub(crate) async fn next(&mut self) -> FeedItem {
        match self.0.recv().await {
            Ok(item) => item,
            Err(broadcast::error::RecvError::Lagged(_)) => FeedItem::Missed,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::port::{Entry, StoreRevision};

    fn announced(what: &'static str, revision: u64) -> Entry {
        let revision = StoreRevision::new(revision);
        Entry::new(keys::FEED, what, revision, revision, None)
    }

    fn read(reader: &mut FeedReader) -> Option<FeedItem> {
        reader.next().now_or_never()
    }

    #[test]
    fn each_event_is_read_and_what_falls_between_is_known_to_be_missed() {
        let feed = ChangeFeed::new();
        let mut reader = feed.reader();
        for (what, revision) in [("a", 3), ("b", 4)] {
            let entry = announced(what, revision);
            let kind = KeyChange::Written(entry.clone());
            assert!(feed.pass_on(&KeyEvent::new(entry.revision, keys::FEED, kind)));
            assert_eq!(read(&mut reader), Some(FeedItem::Announced(Bytes::from(what))));
        }
        let known = |revision| State { revision: StoreRevision::new(revision), ..State::default() };
        let snapshot = Snapshot::new(vec![announced("c", 5)], StoreRevision::new(9));
        feed.catch_up(&known(5), &snapshot);
        feed.catch_up(&known(0), &snapshot);
        assert_eq!(read(&mut reader), None, "it was read, or no reader was there yet");
        feed.catch_up(&known(4), &snapshot);
        assert_eq!(read(&mut reader), Some(FeedItem::Missed));
    }

    #[test]
    fn a_reader_that_is_too_slow_knows_it() {
        let feed = ChangeFeed::new();
        let mut reader = feed.reader();
        for _ in 0..=KEPT {
            feed.publish(FeedItem::Announced(Bytes::new()));
        }
        assert_eq!(read(&mut reader), Some(FeedItem::Missed));
    }
}
