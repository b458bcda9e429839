//! Takes the ids in a path; gives them typed. What is not an id is the id of nothing: 404.

use std::collections::HashMap;
use std::str::FromStr;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use flare_core::model::{ConsumerId, NodeId, ResourceId, SubscriptionId};
use serde::de::DeserializeOwned;
use serde::de::value::{self, MapDeserializer};

use crate::problem::Problem;
use crate::wire::cluster::NodePath;
use crate::wire::consumer::{ConsumerPath, ProducerPath, ProducersPath};
use crate::wire::pin::SlotPath;
use crate::wire::resource::ResourcePath;
use crate::wire::subscription::SubscriptionPath;

/// The `{rid}` of a path.
pub(crate) struct ResourceOnly(pub(crate) ResourceId);

/// The `{rid}` and `{id}` of a path.
pub(crate) struct Ids(pub(crate) ResourceId, pub(crate) SubscriptionId);

impl<S: Send + Sync> FromRequestParts<S> for ResourceOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: ResourcePath = parameters(parts, state).await?;
        Ok(Self(id(&path.rid, "resource")?))
    }
}

/// The `{id}` of a path, where it is a node's.
pub(crate) struct NodeOnly(pub(crate) NodeId);

impl<S: Send + Sync> FromRequestParts<S> for NodeOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: NodePath = parameters(parts, state).await?;
        Ok(Self(id(&path.id, "node")?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Ids {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: SubscriptionPath = parameters(parts, state).await?;
        Ok(Self(id(&path.rid, "resource")?, id(&path.id, "subscription")?))
    }
}

/// The `{id}` of a path, where it is a consumer's.
pub(crate) struct ConsumerOnly(pub(crate) ConsumerId);

impl<S: Send + Sync> FromRequestParts<S> for ConsumerOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: ConsumerPath = parameters(parts, state).await?;
        Ok(Self(id(&path.id, "consumer")?))
    }
}

/// The `{cid}` of a path: the consumer whose producers are meant.
pub(crate) struct FeedingConsumer(pub(crate) ConsumerId);

impl<S: Send + Sync> FromRequestParts<S> for FeedingConsumer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: ProducersPath = parameters(parts, state).await?;
        Ok(Self(id(&path.cid, "consumer")?))
    }
}

/// The `{cid}` and `{id}` of a path.
pub(crate) struct ProducerIds(pub(crate) ConsumerId, pub(crate) SubscriptionId);

impl<S: Send + Sync> FromRequestParts<S> for ProducerIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: ProducerPath = parameters(parts, state).await?;
        Ok(Self(id(&path.cid, "consumer")?, id(&path.id, "subscription")?))
    }
}

/// The `{slot}` of a path.
pub(crate) struct SlotOnly(pub(crate) u32);

impl<S: Send + Sync> FromRequestParts<S> for SlotOnly {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path: SlotPath = parameters(parts, state).await?;
        // As slots are shown, and in no other way.
        let shown = |slot: &u32| slot.to_string() == path.slot;
        let unknown = || Problem::not_found(format!("there is no slot {}", path.slot));
        path.slot.parse().ok().filter(shown).map(Self).ok_or_else(unknown)
    }
}

/// A host may mount us below parameters of its own, even of the same names: ours come last.
async fn parameters<S: Send + Sync, P: DeserializeOwned>(
    parts: &mut Parts,
    state: &S,
) -> Result<P, Problem> {
    // Bytes that are not text are nobody's id either.
    let unknown = || Problem::not_found("there is nothing of that id");
    let named = Path::<HashMap<String, String>>::from_request_parts(parts, state).await;
    let Path(named) = named.map_err(|_| unknown())?;
    let named = MapDeserializer::<_, value::Error>::new(named.into_iter());
    P::deserialize(named).map_err(|_| unknown())
}

fn id<T: FromStr>(text: &str, what: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no {what} {text}")))
}
