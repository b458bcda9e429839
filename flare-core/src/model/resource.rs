//! Takes an endpoint pattern and the rule that tells versions apart; gives a kind of document.

use serde::{Deserialize, Serialize};

use super::{ChangeRule, Endpoint, Invalid, ResourceId, Timestamp};

/// How far a resource's deletion has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResourceState {
    /// It takes documents and subscriptions.
    Active,
    /// Somebody wants it deleted and is looking for subscriptions that forbid it. It refuses
    /// documents and subscriptions meanwhile, and keeps its endpoint.
    Deleting,
    /// It is deleted: unknown to readers, its endpoint free again, its documents being removed.
    Deleted,
}

/// A kind of document: where its documents live and which of two versions is newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Resource {
    /// What it is known by.
    pub id: ResourceId,
    /// The pattern its documents' URLs match.
    pub endpoint: Endpoint,
    /// Where a document says which version it is, and how.
    pub change: ChangeRule,
    /// When it was created.
    pub created_at: Timestamp,
    /// How far its deletion has come.
    pub state: ResourceState,
}

impl Resource {
    /// An active resource.
    pub fn new(id: ResourceId, new: NewResource, created_at: Timestamp) -> Self {
        Self {
            id,
            endpoint: new.endpoint,
            change: new.change,
            created_at,
            state: ResourceState::Active,
        }
    }
}

/// A resource that was asked for, and whose rules all hold.
///
/// ```
/// use flare_core::model::NewResource;
///
/// let users = NewResource::parse("http://api.example.com/users/{id}", "updatedAt", Some("rfc3339"))?;
/// assert_eq!(users.endpoint.as_str(), "http://api.example.com/users/{id}");
///
/// let refused = NewResource::parse("http://api.example.com/users", "updatedAt", None).unwrap_err();
/// assert_eq!(refused.field(), "endpoint");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NewResource {
    /// The pattern its documents' URLs match.
    pub endpoint: Endpoint,
    /// Where a document says which version it is, and how.
    pub change: ChangeRule,
}

impl NewResource {
    /// A resource of validated parts.
    pub fn new(endpoint: Endpoint, change: ChangeRule) -> Self {
        Self { endpoint, change }
    }

    /// Validates the parts as a user writes them.
    pub fn parse(endpoint: &str, field: &str, format: Option<&str>) -> Result<Self, Invalid> {
        Ok(Self::new(Endpoint::parse(endpoint)?, ChangeRule::new(field, format)?))
    }
}
