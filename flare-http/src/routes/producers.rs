//! Takes requests about a consumer's producers; gives what is said of the subscriptions of its resource, which they
//! are.

use axum::extract::{OriginalUri, State as Shared};
use axum::http::StatusCode;
use flare_core::model::{ConsumerId, ResourceId};

use super::answer::{Answer, json};
use super::subscriptions;
use crate::extract::{
    Acting, FeedingConsumer, Ids, IfMatch, JsonBody, NoQuery, Paging, ProducerIds, ResourceOnly,
};
use crate::options::State;
use crate::problem::Problem;
use crate::wire::consumer::{ProducerPath, ProducersPath};
use crate::wire::page::PageQuery;
use crate::wire::subscription::{NewSubscription, ProducerList, SubscriptionView};
use crate::wire::unreadable::ListedSubscription;

/// Lists the subscriptions of a consumer's resource, oldest first.
#[utoipa::path(get, operation_id = "listProducers", path = "/consumers/{cid}/producers", tag = "consumers",
    params(ProducersPath, PageQuery),
    responses((status = 200, description = "A page of them", body = ProducerList)))]
pub(crate) async fn list(
    Shared(state): Shared<State>,
    FeedingConsumer(consumer): FeedingConsumer,
    Paging(page): Paging,
) -> Answer {
    let resource = fed(&state, consumer).await?;
    let listing = state.flare().subscriptions(resource, page).await?;
    json(StatusCode::OK, &ProducerList::new(page, listing))
}

/// Creates a subscription of a consumer's resource.
#[utoipa::path(post, operation_id = "createProducer", path = "/consumers/{cid}/producers", tag = "consumers",
    params(ProducersPath), request_body = NewSubscription,
    responses(
        (status = 201, description = "Created", body = SubscriptionView, headers(
            ("Location" = String, description = "Where it is read"),
            ("ETag" = String, description = "Its generation"))),
        (status = 409, description = "Another subscription has one of its urls"),
    ))]
pub(crate) async fn create(
    Acting(state): Acting,
    uri: OriginalUri,
    FeedingConsumer(consumer): FeedingConsumer,
    query: NoQuery,
    body: JsonBody,
) -> Answer {
    let resource = fed(&state, consumer).await?;
    subscriptions::create(Acting(state), uri, ResourceOnly(resource), query, body).await
}

/// Reads a subscription of a consumer's resource.
#[utoipa::path(get, operation_id = "readProducer", path = "/consumers/{cid}/producers/{id}", tag = "consumers",
    params(ProducerPath),
    responses((status = 200, description = "There it is", body = ListedSubscription,
        headers(("ETag" = String, description = "Its generation, if it can be read")))))]
pub(crate) async fn read(
    Shared(state): Shared<State>,
    ProducerIds(consumer, id): ProducerIds,
    query: NoQuery,
) -> Answer {
    let resource = fed(&state, consumer).await?;
    subscriptions::read(Shared(state), Ids(resource, id), query).await
}

/// Replaces the settings of a subscription of a consumer's resource.
#[utoipa::path(put, operation_id = "replaceProducer", path = "/consumers/{cid}/producers/{id}", tag = "consumers",
    params(ProducerPath,
        ("If-Match" = Option<String>, Header, description = "Only if it is this generation",
            nullable = false)),
    request_body = NewSubscription,
    responses(
        (status = 200, description = "Replaced", body = SubscriptionView, headers(
            ("ETag" = String, description = "Its generation"))),
        (status = 409, description = "Another subscription has one of its urls, or its state forbids it"),
        (status = 412, description = "It is another generation than If-Match says"),
    ))]
pub(crate) async fn replace(
    Acting(state): Acting,
    ProducerIds(consumer, id): ProducerIds,
    query: NoQuery,
    wanted: IfMatch,
    body: JsonBody,
) -> Answer {
    let resource = fed(&state, consumer).await?;
    subscriptions::replace(Acting(state), Ids(resource, id), query, wanted, body).await
}

/// Deletes a subscription of a consumer's resource: nothing new is sent to it.
#[utoipa::path(delete, operation_id = "deleteProducer", path = "/consumers/{cid}/producers/{id}", tag = "consumers",
    params(ProducerPath,
        ("If-Match" = Option<String>, Header, description = "Only if it is this generation",
            nullable = false)),
    responses(
        (status = 204, description = "Deleted"),
        (status = 412, description = "It is another generation than If-Match says"),
    ))]
pub(crate) async fn delete(
    Acting(state): Acting,
    ProducerIds(consumer, id): ProducerIds,
    query: NoQuery,
    wanted: IfMatch,
) -> Answer {
    let resource = fed(&state, consumer).await?;
    subscriptions::delete(Acting(state), Ids(resource, id), query, wanted).await
}

/// The resource that a consumer's documents are of.
async fn fed(state: &State, consumer: ConsumerId) -> Result<ResourceId, Problem> {
    Ok(state.flare().consumer(consumer).await?.resource)
}
