//! Takes the ids in a path; gives them typed. What is not an id is the id of nothing: 404.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use flare_core::model::{NodeId, ResourceId, SubscriptionId};

use crate::problem::Problem;

/// The `{rid}` of a path.
pub(crate) struct ResourceOnly(pub(crate) ResourceId);

/// The `{rid}` and `{id}` of a path.
pub(crate) struct Ids(pub(crate) ResourceId, pub(crate) SubscriptionId);

impl<S: Send + Sync> FromRequestParts<S> for ResourceOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = parameters(parts, state).await?;
        Ok(Self(id(&named, "rid", "resource")?))
    }
}

/// The `{id}` of a path, where it is a node's.
pub(crate) struct NodeOnly(pub(crate) NodeId);

impl<S: Send + Sync> FromRequestParts<S> for NodeOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = parameters(parts, state).await?;
        Ok(Self(id(&named, "id", "node")?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let named = parameters(parts, state).await?;
        Ok(Self(id(&named, "rid", "resource")?, id(&named, "id", "subscription")?))
    }
}

/// A host may mount us below parameters of its own, so they are taken by name.
async fn parameters<S: Send + Sync>(
    parts: &mut Parts,
    state: &S,
) -> Result<HashMap<String, String>, Problem> {
    let named = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    // Bytes that are not text are nobody's id either.
    named.map(|Path(named)| named).map_err(|_| Problem::not_found("there is nothing of that id"))
}

fn id<T: FromStr>(named: &HashMap<String, String>, name: &str, what: &str) -> Result<T, Problem> {
    let text = named.get(name).map(String::as_str).unwrap_or_default();
    text.parse().map_err(|_| Problem::not_found(format!("there is no {what} {text}")))
}
