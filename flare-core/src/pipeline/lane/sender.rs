//! Takes a document and what its client is to be told; gives the one request that tells it, which
//! keeps its place, and counts what it holds, until it ends.

use std::sync::Arc;
use std::time::Duration;

use tracing::{Instrument, info_span};

use super::Lane;
use super::content::ContentHold;
use super::place::Place;
use crate::model::{Action, Document};
use crate::observe;
use crate::pipeline::compose::compose;
use crate::port::{DeliveryOutcome, FailureKind};

/// A request that waits this long for its answer, beside the time it is young, has a slow client.
const LONG: Duration = Duration::from_millis(500);

/// Makes one attempt, under the lane's settings as they are now.
pub(super) fn send(
    lane: &Lane,
    document: &Document,
    action: Action,
    place: Place,
    mut content: ContentHold,
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
    // From here on the request's body is held, and the document no longer.
    content.resize(request.as_ref().map_or(0, |request| request.body.len()));
    let span = info_span!(
        observe::ATTEMPT,
        document = %document.key.url,
        version = %document.version,
        action = action.as_str(),
        traceparent = document.trace.as_ref().map(tracing::field::display),
    );
    let (trust, slot) = (lane.term.trust(), lane.slot);
    let attempt = async move {
        match request {
            // The machine may have slept since the lane began this, and the slot be somebody else's:
            // nothing is sent, and whoever owned the slot ends this with its lanes.
            Ok(_) if trust.left(slot, &*context.clock).is_zero() => std::future::pending().await,
            Ok(request) => {
                let (aged, long) = (context.sleep(context.settings.young_for), context.sleep(LONG));
                let answer = place.hold(context.delivery.attempt(request), aged, long).await;
                drop(content);
                answer
            }
            Err(invalid) => {
                DeliveryOutcome::failed(FailureKind::Unsendable, invalid.to_string(), false)
            }
        }
    };
    attempt.instrument(span)
}
