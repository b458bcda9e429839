//! Takes a document and what its client is to be told; gives the one request that tells it, which
//! keeps its place until it ends.

use std::sync::Arc;

use tracing::{Instrument, info_span};

use super::Lane;
use super::place::Place;
use crate::model::{Action, Document};
use crate::observe;
use crate::pipeline::compose::compose;
use crate::port::{DeliveryOutcome, FailureKind};

/// Makes one attempt, under the lane's settings as they are now.
pub(super) fn send(
    lane: &Lane,
    document: &Document,
    action: Action,
    place: Place,
) -> impl Future<Output = DeliveryOutcome> + Send + use<> {
    let context = Arc::clone(&lane.context);
    let request = compose(
        &context.settings,
        &lane.resource,
        &lane.subscription,
        document,
        action,
        context.now(),
    );
    let span = info_span!(
        observe::ATTEMPT,
        document = %document.key.url,
        version = %document.version,
        action = action.as_str(),
        traceparent = document.trace.as_ref().map(tracing::field::display),
    );
    let attempt = async move {
        match request {
            Ok(request) => {
                let aged = context.sleep(context.settings.young_for);
                place.hold(context.delivery.attempt(request), aged).await
            }
            Err(invalid) => {
                DeliveryOutcome::failed(FailureKind::Unsendable, invalid.to_string(), false)
            }
        }
    };
    attempt.instrument(span)
}
