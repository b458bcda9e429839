//! Takes what happened to notifications and subscriptions; gives it to hosts that listen. Nothing
//! waits for listeners.

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tracing::warn;

use crate::model::{Action, DocumentUrl, SubscriptionId, Version};

/// How many events a slow listener may fall behind before it misses some.
const BUFFER: usize = 1_024;

/// Something that happened to a subscription or one of its notifications, after it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Which subscription.
    pub subscription: SubscriptionId,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    pub(crate) const fn new(subscription: SubscriptionId, kind: EventKind) -> Self {
        Self { subscription, kind }
    }

    /// What the notification said, if it is about one.
    pub const fn told(&self) -> Option<&Told> {
        match &self.kind {
            EventKind::Delivered(told)
            | EventKind::Discarded(told)
            | EventKind::Failed { told, .. }
            | EventKind::DeadLettered { told, .. } => Some(told),
            EventKind::Suspended { .. } | EventKind::Resumed => None,
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The client has it.
    Delivered(Told),
    /// The client refuses this version.
    Discarded(Told),
    /// The attempt failed; another one follows.
    Failed {
        /// What the client was to be told.
        told: Told,
        /// Why, in words.
        error: String,
        /// How many attempts were used up for this version.
        attempts: u32,
    },
    /// It was given up and is a dead letter now.
    DeadLettered {
        /// What the client was to be told.
        told: Told,
        /// Why, in words.
        error: String,
    },
    /// Flare gave up on the client for now; its changes are held until an operator resumes it.
    Suspended {
        /// Why, in words.
        reason: String,
    },
    /// A pause or suspension has ended.
    Resumed,
}

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Told {
    /// About which document.
    pub document: DocumentUrl,
    /// Which version of it.
    pub version: Version,
    /// What the client is told.
    pub action: Action,
}

impl Told {
    pub(crate) const fn new(document: DocumentUrl, version: Version, action: Action) -> Self {
        Self { document, version, action }
    }
}

/// Hears what happens, in order. One that is too slow misses the oldest events and goes on with the
/// others; how many it missed is logged and counted.
#[derive(Debug)]
pub struct EventListener {
    events: broadcast::Receiver<Event>,
    missed: u64,
}

impl EventListener {
    /// The next event, as soon as there is one; `None` once there is no Flare to tell any.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(missed)) => self.note_missed(missed),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// The next event that has happened already.
    pub fn try_next(&mut self) -> Option<Event> {
        loop {
            match self.events.try_recv() {
                Ok(event) => return Some(event),
                Err(TryRecvError::Lagged(missed)) => self.note_missed(missed),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// How many events it missed so far.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn note_missed(&mut self, missed: u64) {
        self.missed += missed;
        warn!(missed, "a listener is too slow and missed events");
    }
}

/// A bounded broadcast of events.
#[derive(Debug)]
pub(crate) struct Events(broadcast::Sender<Event>);

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(BUFFER))
    }

    pub(crate) fn subscribe(&self) -> EventListener {
        EventListener { events: self.0.subscribe(), missed: 0 }
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
