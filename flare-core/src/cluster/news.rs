//! Takes what one node has to say to all of them; gives it to whoever listens on each. What it means
//! is nobody's business here.

use bytes::Bytes;
use tokio::sync::broadcast;

use super::keys;
use super::state::State;
use crate::port::{KeyChange, KeyEvent, Snapshot};

/// News that wait for a listener; one that is slower misses some, and is told so.
const KEPT: usize = 256;

/// What a listener hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// Somebody said this.
    Said(Bytes),
    /// Somebody may have said something.
    Missed,
}

/// Passes news on to those who listen.
#[derive(Debug)]
pub(crate) struct Crier(broadcast::Sender<News>);

/// Hears what is said from now on.
#[derive(Debug)]
pub(crate) struct Listener(broadcast::Receiver<News>);

impl Crier {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(KEPT))
    }

    pub(crate) fn listener(&self) -> Listener {
        Listener(self.0.subscribe())
    }

    /// Passes on what an event says; tells whether it is news and nothing else.
    pub(crate) fn hear(&self, event: &KeyEvent) -> bool {
        match &event.kind {
            KeyChange::Written(entry) if event.key == keys::NEWS => {
                self.cry(News::Said(entry.value.clone()));
                true
            }
            _ => false,
        }
    }

    /// All keys were read anew: what was said since `before` was known is not among them, but for
    /// the last of it.
    pub(crate) fn catch_up(&self, before: &State, snapshot: &Snapshot) {
        let newer = |revision| before.is_read() && revision > before.revision;
        let mut entries = snapshot.entries.iter();
        if entries.any(|entry| entry.key == keys::NEWS && newer(entry.revision)) {
            self.cry(News::Missed);
        }
    }

    fn cry(&self, news: News) {
        // Without listeners there is nobody who could miss it.
        let _ = self.0.send(news);
    }
}

impl Listener {
    /// The next news; for ever nothing, once there is nobody who could have any.
    pub(crate) async fn next(&mut self) -> News {
        match self.0.recv().await {
            Ok(news) => news,
            Err(broadcast::error::RecvError::Lagged(_)) => News::Missed,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::port::{Entry, StoreRevision};

    fn said(what: &'static str, revision: u64) -> Entry {
        let revision = StoreRevision::new(revision);
        Entry::new(keys::NEWS, what, revision, revision, None)
    }

    fn heard(listener: &mut Listener) -> Option<News> {
        listener.next().now_or_never()
    }

    #[test]
    fn each_event_is_heard_and_what_falls_between_is_known_to_be_missed() {
        let crier = Crier::new();
        let mut listener = crier.listener();
        for (what, revision) in [("a", 3), ("b", 4)] {
            let entry = said(what, revision);
            let kind = KeyChange::Written(entry.clone());
            assert!(crier.hear(&KeyEvent::new(entry.revision, keys::NEWS, kind)));
            assert_eq!(heard(&mut listener), Some(News::Said(Bytes::from(what))));
        }
        let known = |revision| State { revision: StoreRevision::new(revision), ..State::default() };
        let snapshot = Snapshot::new(vec![said("c", 5)], StoreRevision::new(9));
        crier.catch_up(&known(5), &snapshot);
        crier.catch_up(&known(0), &snapshot);
        assert_eq!(heard(&mut listener), None, "it was heard, or nobody could have listened");
        crier.catch_up(&known(4), &snapshot);
        assert_eq!(heard(&mut listener), Some(News::Missed));
    }

    #[test]
    fn whoever_listens_too_slowly_knows_it() {
        let crier = Crier::new();
        let mut listener = crier.listener();
        for _ in 0..=KEPT {
            crier.cry(News::Said(Bytes::new()));
        }
        assert_eq!(heard(&mut listener), Some(News::Missed));
    }
}
