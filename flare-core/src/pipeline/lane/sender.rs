//! Takes documents and what their client is to be told; gives the one request that tells it, which
//! keeps its permit, and counts what it holds, until it ends.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tracing::{Instrument, info_span};

use super::Lane;
use super::content::CountedContent;
use super::machine::ToldDocument;
use super::permit::SendPermit;
use crate::model::{Document, Invalid, Subscription, Telling};
use crate::observe;
use crate::pipeline::compose::{compose, compose_batch, envelop};
use crate::port::{DeliveryOutcome, DeliveryRequest, FailureKind};

/// A request that waits this long for its answer, beside the time it is young, has a slow client.
const LONG: Duration = Duration::from_millis(500);

/// Makes one attempt, under these settings. Of several documents only for a client that wants that.
pub(super) fn send(
    lane: &Lane,
    subscription: &Subscription,
    mut told: Vec<ToldDocument<CountedContent>>,
    permit: SendPermit,
) -> impl Future<Output = DeliveryOutcome> + Send + use<> {
    let context = Arc::clone(&lane.context);
    let request = request(lane, subscription, &mut told);
    let span = told.first().map(|first| {
        info_span!(
            observe::ATTEMPT,
            document = %first.document.key.url,
            version = %first.document.version,
            action = first.telling.action.as_str(),
            notifications = told.len(),
            traceparent = first.document.trace.as_ref().map(tracing::field::display),
        )
    });
    // From here on the request's body is held, and the documents no longer.
    let content: Vec<CountedContent> = told.into_iter().map(|it| it.counted).collect();
    let (trust, slot) = (lane.term.trust.clone(), lane.slot);
    let attempt = async move {
        match request {
            Ok(request) => {
                let (aged, long) = (context.sleep(context.settings.young_for), context.sleep(LONG));
                // The machine may sleep at any time, and the slot be another node's when it wakes.
                let ours = || !trust.left(slot, &*context.clock).is_zero();
                let request = while_trusted(context.delivery.attempt(request), ours);
                let answer = permit.during(request, aged, long).await;
                drop(content);
                answer
            }
            Err(invalid) => {
                DeliveryOutcome::failed(FailureKind::Unsendable, invalid.to_string(), false)
            }
        }
    };
    attempt.instrument(span.unwrap_or_else(tracing::Span::none))
}

/// The request, whose parts are counted as what they are in it.
fn request(
    lane: &Lane,
    subscription: &Subscription,
    told: &mut [ToldDocument<CountedContent>],
) -> Result<DeliveryRequest, Invalid> {
    let (settings, resource, now) = (&lane.context.settings, &lane.resource, lane.context.now());
    if let ([one], None) = (&mut *told, subscription.spec.delivery().batch()) {
        let request = compose(settings, resource, subscription, &one.document, one.telling, now);
        one.counted.resize(request.as_ref().map_or(0, |request| request.body.len()));
        return request;
    }
    let mut envelopes: Vec<Bytes> = Vec::with_capacity(told.len());
    for it in &mut *told {
        let envelope = envelop(resource, subscription, &it.document, it.telling);
        it.counted.resize(envelope.as_ref().map_or(0, Bytes::len));
        envelopes.push(envelope?);
    }
    let told: Vec<(&Document, Telling)> =
        told.iter().map(|it| (&it.document, it.telling)).collect();
    compose_batch(settings, subscription, &told, &envelopes, now)
}

/// Goes on with a request only while that may be: looking up a name and connecting take time, and what
/// follows them is not begun any more. Trust that has ended does not come back, and the node that had the slot
/// drops its lanes then, and this with them.
async fn while_trusted<T>(request: impl Future<Output = T>, trusted: impl Fn() -> bool) -> T {
    let mut request = pin!(request);
    poll_fn(|context| if trusted() { request.as_mut().poll(context) } else { Poll::Pending }).await
}
