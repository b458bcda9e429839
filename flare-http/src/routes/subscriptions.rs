//! Takes requests about subscriptions; gives what the handle says. One of another resource is not
//! there.

use axum::extract::{OriginalUri, State as Shared};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use flare_core::model::{
    Invalid, ResourceId, Subscription, SubscriptionId, SubscriptionSpec, Unreadable,
};
use flare_core::{Error, ErrorKind};

use super::answer::{Answer, json};
use crate::extract::{Acting, Ids, IfMatch, JsonBody, NoQuery, Paging, ResourceOnly, etag};
use crate::from_json::subscription_from_json;
use crate::options::State;
use crate::problem::Problem;
use crate::wire::page::PageQuery;
use crate::wire::resource::ResourcePath;
use crate::wire::subscription::{
    NewSubscription, SubscriptionList, SubscriptionPath, SubscriptionView,
};
use crate::wire::unreadable::{Listed, ListedSubscription};

/// Lists a resource's subscriptions, oldest first.
#[utoipa::path(get, operation_id = "listSubscriptions", path = "/resources/{rid}/subscriptions", tag = "subscriptions",
    params(ResourcePath, PageQuery),
    responses((status = 200, description = "A page of them", body = SubscriptionList)))]
pub(crate) async fn list(
    Shared(state): Shared<State>,
    ResourceOnly(resource): ResourceOnly,
    Paging(page): Paging,
) -> Answer {
    let listing = state.flare().subscriptions(resource, page).await?;
    json(StatusCode::OK, &SubscriptionList::new(page, listing))
}

/// Creates a subscription: documents put from now on are delivered to it.
#[utoipa::path(post, operation_id = "createSubscription", path = "/resources/{rid}/subscriptions", tag = "subscriptions",
    params(ResourcePath), request_body = NewSubscription,
    responses(
        (status = 201, description = "Created", body = SubscriptionView, headers(
            ("Location" = String, description = "Where it is read"),
            ("ETag" = String, description = "Its generation"))),
        (status = 409, description = "Another subscription has one of its urls"),
    ))]
pub(crate) async fn create(
    Acting(state): Acting,
    OriginalUri(uri): OriginalUri,
    ResourceOnly(resource): ResourceOnly,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let subscription = state.flare().create_subscription(resource, UnreadSpec(&body)).await?;
    let location = [(LOCATION, format!("{}/{}", uri.path(), subscription.id))];
    Ok((location, shown(StatusCode::CREATED, subscription)?).into_response())
}

/// What a body asks for, read once its resource is known: an unknown resource is 404, whatever is asked of it.
struct UnreadSpec<'a>(&'a [u8]);

impl TryFrom<UnreadSpec<'_>> for SubscriptionSpec {
    type Error = Invalid;

    fn try_from(UnreadSpec(body): UnreadSpec<'_>) -> Result<Self, Invalid> {
        Ok(subscription_from_json(body)?.create())
    }
}

/// Reads a subscription.
#[utoipa::path(get, operation_id = "readSubscription", path = "/resources/{rid}/subscriptions/{id}", tag = "subscriptions",
    params(SubscriptionPath),
    responses((status = 200, description = "There it is", body = ListedSubscription,
        headers(("ETag" = String, description = "Its generation, if it can be read")))))]
pub(crate) async fn read(
    Shared(state): Shared<State>,
    Ids(resource, id): Ids,
    _: NoQuery,
) -> Answer {
    match look(&state, resource, id).await? {
        Ok(found) => shown(StatusCode::OK, found),
        Err(unreadable) => {
            let listed = Listed::<SubscriptionView>::Unreadable((&unreadable).into());
            json(StatusCode::OK, &listed)
        }
    }
}

/// Replaces a subscription's settings; what it knows of its documents is kept.
#[utoipa::path(put, operation_id = "replaceSubscription", path = "/resources/{rid}/subscriptions/{id}", tag = "subscriptions",
    params(SubscriptionPath,
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
    Ids(resource, id): Ids,
    _: NoQuery,
    wanted: IfMatch,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let current = find(&state, resource, id).await?;
    let input = subscription_from_json(&body)?;
    let replaced = match wanted.insist(current.generation)? {
        None => state.flare().replace_subscription(id, input).await?,
        Some(generation) => {
            let replaced = state.flare().replace_subscription_at(id, generation, input).await;
            replaced.map_err(unless_outdated)?
        }
    };
    shown(StatusCode::OK, replaced)
}

/// Deletes a subscription: nothing new is sent to it.
#[utoipa::path(delete, operation_id = "deleteSubscription", path = "/resources/{rid}/subscriptions/{id}", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Only if it is this generation",
            nullable = false)),
    responses(
        (status = 204, description = "Deleted"),
        (status = 412, description = "It is another generation than If-Match says"),
    ))]
pub(crate) async fn delete(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    wanted: IfMatch,
) -> Answer {
    let wanted = match look(&state, resource, id).await? {
        Ok(current) => wanted.insist(current.generation)?,
        // Which generation one is that cannot be read nobody can have been told.
        Err(_) if wanted != IfMatch::Any => return Err(Problem::outdated()),
        Err(_) => None,
    };
    match wanted {
        None => state.flare().delete_subscription(id).await?,
        Some(generation) => {
            let deleted = state.flare().delete_subscription_at(id, generation).await;
            deleted.map_err(unless_outdated)?;
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The subscription, if it is one of that resource. Whether there is such a resource need not be
/// asked: one that has subscriptions cannot be deleted.
pub(super) async fn find(
    state: &State,
    resource: ResourceId,
    id: SubscriptionId,
) -> Result<Subscription, Problem> {
    let found = look(state, resource, id).await?;
    found.map_err(|unreadable| Error::of_record("subscription", unreadable).into())
}

/// The subscription, or what is known of it if it cannot be read, if it is one of that resource.
pub(super) async fn look(
    state: &State,
    resource: ResourceId,
    id: SubscriptionId,
) -> Result<Result<Subscription, Unreadable>, Problem> {
    let found = match state.flare().subscription(id).await {
        Ok(found) => Ok(found),
        Err(error) => match error.unreadable() {
            Some(unreadable) => Err(unreadable.clone()),
            None => return Err(error.into()),
        },
    };
    let its = match &found {
        Ok(found) => Some(found.resource),
        Err(unreadable) => unreadable.resource,
    };
    // One of which not even that can be read may be of any.
    if its.is_some_and(|its| its != resource) {
        return Err(Problem::not_found(format!("resource {resource} has no subscription {id}")));
    }
    Ok(found)
}

/// An answer with a subscription and its `ETag`.
pub(super) fn shown(status: StatusCode, subscription: Subscription) -> Answer {
    let tag = etag(subscription.generation);
    Ok((tag, json(status, &SubscriptionView::from(subscription))?).into_response())
}

/// Another request may have changed it between our look and our write.
pub(super) fn unless_outdated(error: Error) -> Problem {
    match (error.kind(), error.field()) {
        (ErrorKind::Conflict, Some("generation")) => Problem::outdated(),
        _ => error.into(),
    }
}
