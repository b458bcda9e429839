//! Takes a transport under trial; gives requests to try it with and what became of them.

use flare_core::model::{Action, DocumentUrl, Method, Revision, SubscriptionId, Version};
use flare_core::port::{
    Delivery, DeliveryOutcome, DeliveryRequest, FailureKind, Reply, RetryAfter,
};

use crate::Subject;

/// Ticks a whole call may take, whatever it is told.
pub(super) const PATIENCE: u32 = 100;

/// A `POST` to `url`, with time enough.
pub(super) fn request(subject: &Subject<dyn Delivery>, url: impl Into<String>) -> DeliveryRequest {
    let document = DocumentUrl::parse("http://api.example.com/users/42").expect("a good URL");
    let mut request = DeliveryRequest::new(
        SubscriptionId::from_bytes([1; 16]),
        document,
        Version::live(Revision::new(7)),
        Action::Create,
        Method::Post,
        url,
    );
    request.timeout = subject.ticks(PATIENCE / 2);
    request
}

impl Subject<dyn Delivery> {
    /// Makes the attempt, which has to end.
    pub(super) async fn deliver(&self, request: DeliveryRequest) -> DeliveryOutcome {
        self.within(PATIENCE, self.attempt(request)).await.expect("the attempt ends")
    }

    /// Makes a `POST` without a body to `url`.
    pub(super) async fn post(&self, url: impl Into<String>) -> DeliveryOutcome {
        self.deliver(request(self, url)).await
    }
}

pub(super) fn status(outcome: &DeliveryOutcome) -> Option<u16> {
    match outcome.reply {
        Reply::Answered { status, .. } => Some(status),
        _ => None,
    }
}

pub(super) fn failure(outcome: &DeliveryOutcome) -> Option<FailureKind> {
    match outcome.reply {
        Reply::Failed { kind, .. } => Some(kind),
        _ => None,
    }
}

pub(super) fn excerpt(outcome: DeliveryOutcome) -> bytes::Bytes {
    match outcome.reply {
        Reply::Answered { excerpt, .. } => excerpt,
        reply => panic!("no answer but {reply:?}"),
    }
}

pub(super) fn retry_after(outcome: DeliveryOutcome) -> Option<RetryAfter> {
    match outcome.reply {
        Reply::Answered { retry_after, .. } => retry_after,
        reply => panic!("no answer but {reply:?}"),
    }
}
