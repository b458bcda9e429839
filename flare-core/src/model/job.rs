//! Takes long work; gives the record that lets any node go on with it after a crash.

use serde::{Deserialize, Serialize};

use super::{Epoch, JobId, Timestamp};

/// What kind of long work a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum JobKind {
    /// Removes a deleted resource's documents.
    RemoveResource,
    /// Removes a deleted subscription's rows, tasks and dead letters.
    RemoveSubscription,
    /// Delivers the present documents that a subscription's client does not hold.
    Backfill,
    /// Delivers all present documents again to a client that lost them.
    Resync,
    /// Removes tombstones and dead letters past their retention.
    Expire,
    /// Creates and deletes the queues of a subscription's lanes.
    Queue,
    /// Brings stored data to a newer format.
    Migrate,
    /// Announces changes again whose tasks were lost; never ends.
    Reconcile,
}

/// One piece of long work: at most one per kind and subject, resumable at its cursor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Job {
    /// What it is known by.
    pub id: JobId,
    /// What kind of work.
    pub kind: JobKind,
    /// What it works on, in the kind's own words (an id, mostly).
    pub subject: String,
    /// How far it has come, in the kind's own words; `None` at the start.
    pub cursor: Option<String>,
    /// The epoch of the last worker that wrote it.
    pub epoch: Epoch,
    /// Not before this time.
    pub due: Timestamp,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl Job {
    /// Work on `subject` that starts at its beginning, due at once.
    pub fn new(id: JobId, kind: JobKind, subject: impl Into<String>, now: Timestamp) -> Self {
        Self {
            id,
            kind,
            subject: subject.into(),
            cursor: None,
            epoch: Epoch::ZERO,
            due: now,
            created_at: now,
        }
    }
}
