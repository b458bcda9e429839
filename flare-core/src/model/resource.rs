//! Takes an endpoint pattern and the rule that tells versions apart; gives a kind of document.

use serde::{Deserialize, Serialize};

use super::{ChangeRule, Endpoint, Invalid, ResourceId, Timestamp};

/// How far a resource's deletion has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceState {
    /// It takes documents and subscriptions.
    Active,
    /// A caller wants it deleted and is looking for subscriptions that forbid it. It refuses
    /// documents and subscriptions meanwhile, and keeps its endpoint.
    Deleting,
    /// It is deleted: unknown to readers, its endpoint free again, its documents being removed.
    Deleted,
}

/// A kind of document: where its documents live and which of two versions is newer.
///
/// `Serialize` and `Deserialize` are the form that stores keep. A resource is written once, so what a
/// newer version put there stays.
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
    pub fn new(
        id: ResourceId,
        endpoint: Endpoint,
        change: ChangeRule,
        created_at: Timestamp,
    ) -> Self {
        Self { id, endpoint, change, created_at, state: ResourceState::Active }
    }

    /// The URL of the document that has these values for the endpoint's wildcards, from left to
    /// right, escaped as they need it.
    ///
    /// ```
    /// # use flare_core::model::{NewResource, Resource, ResourceId, Timestamp};
    /// # let (endpoint, change) = NewResource::new("http://api.example/shops/{shop}/items/{id}")
    /// #     .change_field("rev").check()?;
    /// # let items = Resource::new(ResourceId::from_bytes([1; 16]), endpoint, change, Timestamp::EPOCH);
    /// assert_eq!(items.url(["a/b", "7"])?, "http://api.example/shops/a%2Fb/items/7");
    /// assert!(items.url(["a/b"]).is_err());
    /// # Ok::<(), flare_core::model::Invalid>(())
    /// ```
    pub fn url<V: AsRef<str>>(
        &self,
        values: impl IntoIterator<Item = V>,
    ) -> Result<String, Invalid> {
        self.endpoint.fill(values)
    }
}

/// A resource as a user asks for it; checked by [`NewResource::check`].
///
/// ```
/// use flare_core::model::NewResource;
///
/// let users = NewResource::new("http://api.example.com/users/{ id }/").change("updatedAt", "rfc3339");
/// let (endpoint, _) = users.check()?;
/// assert_eq!(endpoint.as_str(), "http://api.example.com/users/{id}");
///
/// let refused = NewResource::new("http://api.example.com/users").change_field("rev").check().unwrap_err();
/// assert_eq!(refused.field(), "endpoint");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResource {
    endpoint: String,
    field: String,
    format: Option<String>,
}

impl NewResource {
    /// A resource whose documents' URLs match `endpoint`.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), field: String::new(), format: None }
    }

    /// The same, versioned by an integer in `field`.
    #[must_use]
    pub fn change_field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    /// The same, versioned by a time in `field`, written as `format` says.
    #[must_use]
    pub fn change(mut self, field: impl Into<String>, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self.change_field(field)
    }

    /// Checks every rule, and that nothing is written as other libraries have it: that would be
    /// taken to the letter, and never match a document.
    pub fn check(&self) -> Result<(Endpoint, ChangeRule), Invalid> {
        let endpoint = Endpoint::parse(&self.endpoint)?;
        endpoint.check_habits()?;
        let change = ChangeRule::new(&self.field, self.format.as_deref())?;
        change.check_habits()?;
        Ok((endpoint, change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As every version so far has written it.
    const STORED: &str = concat!(
        r#"{"id":"07070707-0707-0707-0707-070707070707","endpoint":"http://a.example/users/{id}","#,
        r#""change":{"field":"/meta/at","format":"2006-01-02T15:04:05Z07:00"},"#,
        r#""createdAt":1700000000500000001,"state":"active"}"#,
    );

    fn users(format: Option<&str>) -> Resource {
        Resource::new(
            ResourceId::from_bytes([7; 16]),
            Endpoint::parse("http://a.example/users/{id}").unwrap(),
            ChangeRule::new("/meta/at", format).unwrap(),
            Timestamp::from_unix_nanos(1_700_000_000_500_000_001),
        )
    }

    #[test]
    fn is_stored_as_ever() {
        let timed = users(Some("2006-01-02T15:04:05Z07:00"));
        assert_eq!(serde_json::to_string(&timed).unwrap(), STORED);
        assert_eq!(serde_json::from_str::<Resource>(STORED).unwrap(), timed);
        let counted = STORED.replace(r#","format":"2006-01-02T15:04:05Z07:00""#, "");
        assert_eq!(serde_json::to_string(&users(None)).unwrap(), counted);
        assert_eq!(serde_json::from_str::<Resource>(&counted).unwrap(), users(None));
        let newer = STORED.replace("{", r#"{"newer":[1],"#).replace("/{\"newer\":[1],id}", "/{id}");
        assert_eq!(serde_json::from_str::<Resource>(&newer).unwrap(), timed, "{newer}");
    }
}
