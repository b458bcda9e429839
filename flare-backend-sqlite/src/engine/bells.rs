//! Takes who waits for which queue; wakes them when there may be something for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flare_core::port::QueueName;
use tokio::sync::Notify;

/// A bell for each queue that somebody in this process waits for.
#[derive(Debug, Default)]
pub(crate) struct Bells(Mutex<HashMap<QueueName, Bell>>);

#[derive(Debug, Default)]
struct Bell {
    rung: Arc<Notify>,
    listeners: usize,
}

/// Somebody who waits for a queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Listener<'a> {
    bells: &'a Bells,
    queue: &'a QueueName,
    rung: Arc<Notify>,
}

impl Listener<'_> {
    /// Told when there may be something to receive, or the queue was deleted.
    pub(crate) fn rung(&self) -> &Notify {
        &self.rung
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let mut bells = self.bells.lock();
        if let Some(bell) = bells.get_mut(self.queue) {
            bell.listeners -= 1;
            if bell.listeners == 0 {
                bells.remove(self.queue);
            }
        }
    }
}

impl Bells {
    /// Has the queue's bell heard for as long as the listener is kept.
    pub(crate) fn listen<'a>(&'a self, queue: &'a QueueName) -> Listener<'a> {
        let mut bells = self.lock();
        let bell = bells.entry(queue.clone()).or_default();
        bell.listeners += 1;
        Listener { bells: self, queue, rung: Arc::clone(&bell.rung) }
    }

    /// Wakes those who wait for the queue.
    pub(crate) fn ring(&self, queue: &QueueName) {
        if let Some(bell) = self.lock().get(queue) {
            bell.rung.notify_waiters();
        }
    }

    /// Whether anybody waits for any queue.
    pub(crate) fn are_heard(&self) -> bool {
        !self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<QueueName, Bell>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
