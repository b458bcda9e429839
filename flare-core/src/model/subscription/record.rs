//! Takes a client's wish and where it stands; gives the record the stores keep.

use serde::{Serialize, Serializer};

use super::{SubscriptionSpec, SubscriptionStatus};
use crate::model::{
    Epoch, Generation, PartitionId, ResourceId, SubscriptionId, Takeover, Timestamp,
};

/// A client's wish to be told about a resource's documents, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subscription {
    /// What it is known by.
    pub id: SubscriptionId,
    /// Whose documents it is about.
    pub resource: ResourceId,
    /// The partition it sits in; the store's choice, for life.
    pub partition: PartitionId,
    /// Raised by every replacement, pause and resume.
    pub generation: Generation,
    /// Where it stands.
    pub status: SubscriptionStatus,
    /// Why it stands there, if not by the user's wish.
    pub reason: Option<String>,
    /// What the client wishes.
    pub spec: SubscriptionSpec,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its last pause or suspension ended, by the store's clock.
    pub resumed_at: Option<Timestamp>,
    /// The slot that was reserved for its lanes; without one they are hashed onto one of the others.
    pub slot: Option<u32>,
    /// The slot its lanes have yet to leave: before they start in the one they are in now, and before
    /// anything of one that is deleting is forgotten.
    pub moving_from: Option<u32>,
    /// What its lanes are worked under has to be later: they were worked in another slot before.
    pub least_epoch: Epoch,
    /// When they left it, by the store's clock: what waited then may have been sent.
    pub left_at: Option<Timestamp>,
}

/// As a read shows it: with every default written out, and without what is to be kept to the stores.
impl Serialize for Subscription {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shown<'a> {
            id: SubscriptionId,
            resource: ResourceId,
            generation: Generation,
            #[serde(flatten)]
            spec: &'a SubscriptionSpec,
            status: SubscriptionStatus,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            created_at: String,
            updated_at: String,
        }
        let shown = Shown {
            id: self.id,
            resource: self.resource,
            generation: self.generation,
            spec: &self.spec,
            status: self.status,
            reason: self.reason.as_deref(),
            created_at: self.created_at.to_string(),
            updated_at: self.updated_at.to_string(),
        };
        shown.serialize(serializer)
    }
}

impl Subscription {
    /// A subscription that is being prepared.
    pub fn new(
        id: SubscriptionId,
        resource: ResourceId,
        spec: SubscriptionSpec,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            resource,
            partition: PartitionId::new(0),
            generation: Generation::new(1),
            status: SubscriptionStatus::Preparing,
            reason: None,
            spec,
            created_at: now,
            updated_at: now,
            resumed_at: None,
            slot: None,
            moving_from: None,
            least_epoch: Epoch::ZERO,
            left_at: None,
        }
    }

    /// Since when no lane sends for it by itself, if it has left its lanes: what waited before that may have
    /// been sent.
    pub fn left(&self) -> Takeover {
        Takeover { epoch: self.least_epoch, at: self.left_at.unwrap_or(Timestamp::EPOCH) }
    }
}
