//! Takes what happened to notifications; gives it to whoever listens. Nobody waits for listeners.

use tokio::sync::broadcast;

use crate::model::{Action, DocumentUrl, SubscriptionId, Version};

/// How many events a slow listener may fall behind before it misses some.
const BUFFER: usize = 1_024;

/// Something that happened to a notification, after it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Whose notification.
    pub subscription: SubscriptionId,
    /// About which document.
    pub document: DocumentUrl,
    /// Which version of it.
    pub version: Version,
    /// What the client was told.
    pub action: Action,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The client has it.
    Delivered,
    /// The client refuses this version.
    Discarded,
    /// The attempt failed; another one follows.
    Failed {
        /// Why, in words.
        error: String,
        /// How many attempts failed for this version.
        attempts: u32,
    },
    /// It was given up and is a dead letter now.
    DeadLettered {
        /// Why, in words.
        error: String,
    },
}

/// A bounded broadcast of events.
#[derive(Debug)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BUFFER))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }

    /// Whether anybody listens; if not, events need not be made.
    pub(crate) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn emit(&self, event: Event) {
        // No listener is no error.
        let _ = self.0.send(event);
    }
}
