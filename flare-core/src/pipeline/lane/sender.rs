//! Takes a document and what its client is to be told; gives the one request that tells it, which
//! keeps its place, and counts what it holds, until it ends.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tracing::{Instrument, info_span};

use super::Lane;
use super::content::ContentHold;
use super::place::Place;
use crate::model::{Document, Subscription, Telling};
use crate::observe;
use crate::pipeline::compose::compose;
use crate::port::{DeliveryOutcome, FailureKind};

/// A request that waits this long for its answer, beside the time it is young, has a slow client.
const LONG: Duration = Duration::from_millis(500);

/// Makes one attempt, under these settings.
pub(super) fn send(
    lane: &Lane,
    subscription: &Subscription,
    document: &Document,
    telling: Telling,
    place: Place,
    mut content: ContentHold,
) -> impl Future<Output = DeliveryOutcome> + Send + use<> {
    let context = Arc::clone(&lane.context);
    let request =
        compose(&context.settings, &lane.resource, subscription, document, telling, context.now());
    // From here on the request's body is held, and the document no longer.
    content.resize(request.as_ref().map_or(0, |request| request.body.len()));
    let span = info_span!(
        observe::ATTEMPT,
        document = %document.key.url,
        version = %document.version,
        action = telling.action.as_str(),
        traceparent = document.trace.as_ref().map(tracing::field::display),
    );
    let (trust, slot) = (lane.term.trust.clone(), lane.slot);
    let attempt = async move {
        match request {
            Ok(request) => {
                let (aged, long) = (context.sleep(context.settings.young_for), context.sleep(LONG));
                // The machine may sleep at any time, and the slot be another node's when it wakes.
                let ours = || !trust.left(slot, &*context.clock).is_zero();
                let request = while_trusted(context.delivery.attempt(request), ours);
                let answer = place.hold(request, aged, long).await;
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

/// Goes on with a request only while that may be: looking up a name and connecting take time, and what
/// follows them is not begun any more. Trust that has ended does not come back, and whoever had the slot
/// drops its lanes then, and this with them.
async fn while_trusted<T>(request: impl Future<Output = T>, trusted: impl Fn() -> bool) -> T {
    let mut request = pin!(request);
    poll_fn(|context| if trusted() { request.as_mut().poll(context) } else { Poll::Pending }).await
}
