//! Takes requests about what documents are pulled from; gives what the handle says.

use axum::extract::{OriginalUri, State as Shared};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use flare_core::ErrorKind;
use flare_core::model::consumer::MappingInput;
use flare_core::model::{Consumer, ConsumerId, NewConsumer, Unreadable};

use super::answer::{Answer, json};
use super::subscriptions::unless_outdated;
use crate::extract::{Acting, ConsumerOnly, IfMatch, JsonBody, NoQuery, Paging, etag};
use crate::options::State;
use crate::problem::Problem;
use crate::wire::consumer::{ConsumerInput, ConsumerList, ConsumerPath, ConsumerView};
use crate::wire::json::read as read_json;
use crate::wire::mapping::{MappingTest, MappingTested};
use crate::wire::page::PageQuery;
use crate::wire::unreadable::{Listed, ListedConsumer};

/// Lists the consumers of all resources, oldest first.
#[utoipa::path(get, operation_id = "listConsumers", path = "/consumers", tag = "consumers", params(PageQuery),
    responses((status = 200, description = "A page of them", body = ConsumerList)))]
pub(crate) async fn list(Shared(state): Shared<State>, Paging(page): Paging) -> Answer {
    let listing = state.flare().consumers(page).await?;
    json(StatusCode::OK, &ConsumerList::new(page, listing))
}

/// Creates a consumer: documents of its resource are pulled from its source from now on.
#[utoipa::path(post, operation_id = "createConsumer", path = "/consumers", tag = "consumers",
    request_body = ConsumerInput,
    responses(
        (status = 201, description = "Created", body = ConsumerView, headers(
            ("Location" = String, description = "Where it is read"),
            ("ETag" = String, description = "Its generation"))),
        (status = 404, description = "There is no such resource"),
        (status = 409, description = "The resource is there, but this version cannot read it"),
    ))]
pub(crate) async fn create(
    Acting(state): Acting,
    OriginalUri(uri): OriginalUri,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let input: ConsumerInput = read_json(&body)?;
    let resource = input.resource()?;
    let created = state.flare().create_consumer(resource, NewConsumer::try_from(input)?).await;
    let created = created.map_err(|error| match error.kind() {
        ErrorKind::NotFound => Problem::from(error).field("resource"),
        _ => error.into(),
    })?;
    let location = [(LOCATION, format!("{}/{}", uri.path(), created.id))];
    Ok((location, shown(StatusCode::CREATED, created)?).into_response())
}

/// Reads a consumer.
#[utoipa::path(get, operation_id = "readConsumer", path = "/consumers/{id}", tag = "consumers",
    params(ConsumerPath),
    responses((status = 200, description = "There it is", body = ListedConsumer,
        headers(("ETag" = String, description = "Its generation, if it can be read")))))]
pub(crate) async fn read(
    Shared(state): Shared<State>,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
) -> Answer {
    match look(&state, id).await? {
        Ok(found) => shown(StatusCode::OK, found),
        Err(unreadable) => {
            let listed = Listed::<ConsumerView>::Unreadable((&unreadable).into());
            json(StatusCode::OK, &listed)
        }
    }
}

/// Replaces what a consumer pulls from and what becomes of its messages; its resource and what it counted stay, and
/// how far it has come unless its source has other settings: that is another source, read from where they say.
#[utoipa::path(put, operation_id = "replaceConsumer", path = "/consumers/{id}", tag = "consumers",
    params(ConsumerPath,
        ("If-Match" = Option<String>, Header, description = "Only if it is this generation",
            nullable = false)),
    request_body = ConsumerInput,
    responses(
        (status = 200, description = "Replaced", body = ConsumerView, headers(
            ("ETag" = String, description = "Its generation"))),
        (status = 412, description = "It is another generation than If-Match says"),
    ))]
pub(crate) async fn replace(
    Acting(state): Acting,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
    wanted: IfMatch,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let current = state.flare().consumer(id).await?;
    let input: ConsumerInput = read_json(&body)?;
    input.check_resource(current.resource)?;
    let new = NewConsumer::try_from(input)?;
    let replaced = match wanted.insist(current.generation)? {
        None => state.flare().replace_consumer(id, new).await?,
        Some(generation) => {
            let replaced = state.flare().replace_consumer_at(id, generation, new).await;
            replaced.map_err(unless_outdated)?
        }
    };
    shown(StatusCode::OK, replaced)
}

/// Deletes a consumer with its rejects. Its broker keeps what it has.
#[utoipa::path(delete, operation_id = "deleteConsumer", path = "/consumers/{id}", tag = "consumers",
    params(ConsumerPath,
        ("If-Match" = Option<String>, Header, description = "Only if it is this generation",
            nullable = false)),
    responses(
        (status = 204, description = "Deleted"),
        (status = 412, description = "It is another generation than If-Match says"),
    ))]
pub(crate) async fn delete(
    Acting(state): Acting,
    ConsumerOnly(id): ConsumerOnly,
    _: NoQuery,
    wanted: IfMatch,
) -> Answer {
    let wanted = match look(&state, id).await? {
        Ok(current) => wanted.insist(current.generation)?,
        // No read has told the generation of one that cannot be read.
        Err(_) if wanted != IfMatch::Any => return Err(Problem::outdated()),
        Err(_) => None,
    };
    match wanted {
        None => state.flare().delete_consumer(id).await?,
        Some(generation) => {
            let deleted = state.flare().delete_consumer_at(id, generation).await;
            deleted.map_err(unless_outdated)?;
        }
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Tries a mapping on a message. Nothing is stored.
#[utoipa::path(post, operation_id = "testMapping", path = "/consumers/test", tag = "consumers",
    request_body = MappingTest,
    responses((status = 200, description = "What would be put, deleted and rejected",
        body = MappingTested)))]
pub(crate) async fn test(
    Shared(state): Shared<State>,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let MappingTest { document, message } = read_json(&body)?;
    let mapping = MappingInput::try_from(document).map_err(|invalid| invalid.within("document"))?;
    let tried = state.flare().test_mapping(mapping, message.as_bytes()).await?;
    json(StatusCode::OK, &MappingTested::new(tried)?)
}

/// The consumer, or what is known of it if it cannot be read.
async fn look(state: &State, id: ConsumerId) -> Result<Result<Consumer, Unreadable>, Problem> {
    match state.flare().consumer(id).await {
        Ok(found) => Ok(Ok(found)),
        Err(error) => match error.unreadable() {
            Some(unreadable) => Ok(Err(unreadable.clone())),
            None => Err(error.into()),
        },
    }
}

/// An answer with a consumer and its `ETag`.
pub(super) fn shown(status: StatusCode, consumer: Consumer) -> Answer {
    let tag = etag(consumer.generation);
    Ok((tag, json(status, &ConsumerView::from(consumer))?).into_response())
}
