//! Takes requests to give a slot to a node, and a subscription a slot of its own; gives what the handle
//! says. Each may be repeated.

use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::answer::{Answer, json};
use super::subscriptions::find;
use crate::extract::{Acting, Ids, JsonBody, NoQuery, Operation, SlotOnly};
use crate::wire::cluster::SlotShape;
use crate::wire::json::read;
use crate::wire::pin::{PinnedSlot, SlotPath, SlotPinInput, SubscriptionPinInput};
use crate::wire::subscription::SubscriptionPath;

/// Has a slot, with all lanes and consumers in it, worked by the node of that name for as long as it is
/// there. Answered once that is stored, before the slot has moved.
#[utoipa::path(put, operation_id = "pinSlot", path = "/cluster/slots/{slot}/pin", tag = "cluster",
    params(SlotPath), request_body = SlotPinInput,
    responses((status = 200, description = "The slot as it is now: it moves from now on", body = SlotShape)))]
pub(crate) async fn pin_slot(
    Acting(state): Acting,
    SlotOnly(slot): SlotOnly,
    _: NoQuery,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let input: SlotPinInput = read(&body)?;
    state.flare().pin_slot(slot, Some(&input.node)).await?;
    json(StatusCode::OK, &SlotShape::of(&state.flare().cluster().await?, slot))
}

/// Ends that: the slot belongs to the node that the plan gives it to.
#[utoipa::path(delete, operation_id = "unpinSlot", path = "/cluster/slots/{slot}/pin", tag = "cluster",
    params(SlotPath),
    responses((status = 204, description = "It is not pinned")))]
pub(crate) async fn unpin_slot(
    Acting(state): Acting,
    SlotOnly(slot): SlotOnly,
    _: NoQuery,
) -> Answer {
    state.flare().pin_slot(slot, None).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Gives a subscription one of the slots that are reserved for single ones, so that it shares its slot with
/// no other. One that has such a slot keeps it. Its lanes finish what is in flight before they start there.
#[utoipa::path(put, operation_id = "pinSubscription", path = "/resources/{rid}/subscriptions/{id}/pin", tag = "operations",
    params(SubscriptionPath), request_body = SubscriptionPinInput,
    responses(
        (status = 200, description = "It has this slot", body = PinnedSlot),
        (status = 409, description = "No slot is free: unpin another one, or reserve more"),
    ))]
pub(crate) async fn pin_subscription(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
    Operation(body): Operation,
) -> Answer {
    let input = body.map(|body| read::<SubscriptionPinInput>(&body)).transpose()?;
    find(&state, resource, id).await?;
    input.unwrap_or_default().all_lanes()?;
    json(StatusCode::OK, &PinnedSlot { slot: state.flare().pin(id).await? })
}

/// Ends that: its lanes move back to the slot they are hashed onto, and share it with others.
#[utoipa::path(delete, operation_id = "unpinSubscription", path = "/resources/{rid}/subscriptions/{id}/pin", tag = "operations",
    params(SubscriptionPath),
    responses((status = 204, description = "It has no slot of its own")))]
pub(crate) async fn unpin_subscription(
    Acting(state): Acting,
    Ids(resource, id): Ids,
    _: NoQuery,
) -> Answer {
    find(&state, resource, id).await?;
    state.flare().unpin(id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
