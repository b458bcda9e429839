//! Takes one request; gives what became of that one attempt. Never retries, never decides.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::model::{
    Action, AttemptPhases, DocumentUrl, Method, SubscriptionId, Timestamp, Version,
};

/// Makes one attempt to tell a client something.
///
/// # Contract
/// - **D1** One call is at most one request: no retry, no redirect followed.
/// - **D2** The request carries method, URL, headers and body exactly as given.
/// - **D3** Whatever the client answers is a [`Reply::Answered`] with that status; deciding what
///   it means is not the transport's.
/// - **D4** `sent` is false only if it is certain that no byte of the request reached the client.
/// - **D5** `Retry-After` is reported as the client wrote it, in seconds or as a date; one that
///   cannot be understood is left out.
/// - **D6** The excerpt of the answer's body is bounded by `excerpt_limit`, however much is sent,
///   and reading stops there.
/// - **D7** The attempt ends within the request's timeout, from connect to last byte; without an
///   answer by then as [`FailureKind::Timeout`].
/// - **D8** Calls are independent: one that hangs delays no other.
/// - **D9** Once the answer's head is read the answer stands: a body that stalls or breaks off
///   shortens the excerpt, and changes nothing else.
/// - **D10** `whole` is true only if the excerpt is all of the answer's body; of a request that
///   `needs_whole` it is true for every body within `excerpt_limit` that comes within the timeout.
#[async_trait]
pub trait Delivery: fmt::Debug + Send + Sync + 'static {
    /// Makes the attempt. There is no error beside the outcome: a failed attempt is one.
    async fn attempt(&self, request: DeliveryRequest) -> DeliveryOutcome;
}

/// One request to a client.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryRequest {
    /// Whose notification it is.
    pub subscription: SubscriptionId,
    /// Which document it is about; of a request that tells of many, the first.
    pub document: DocumentUrl,
    /// Which version of it.
    pub version: Version,
    /// What the client is told.
    pub action: Action,
    /// The request's method.
    pub method: Method,
    /// The absolute URL to call.
    pub url: String,
    /// All headers, in order.
    pub headers: Vec<(Cow<'static, str>, String)>,
    /// The body.
    pub body: Bytes,
    /// From connect to last byte.
    pub timeout: Duration,
    /// How many bytes of the answer's body to keep.
    pub excerpt_limit: usize,
    /// Whether what the answer's body says matters, rather than its beginning for people to read.
    pub needs_whole: bool,
}

impl DeliveryRequest {
    /// A request with no headers, an empty body, ten seconds of time and an excerpt of 1 KiB.
    pub fn new(
        subscription: SubscriptionId,
        document: DocumentUrl,
        version: Version,
        action: Action,
        method: Method,
        url: impl Into<String>,
    ) -> Self {
        Self {
            subscription,
            document,
            version,
            action,
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            timeout: Duration::from_secs(10),
            excerpt_limit: 1024,
            needs_whole: false,
        }
    }
}

impl fmt::Debug for DeliveryRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may carry the client's credentials, the body its data: neither is for logs.
        f.debug_struct("DeliveryRequest")
            .field("subscription", &self.subscription)
            .field("document", &self.document)
            .field("version", &self.version)
            .field("action", &self.action)
            .field("method", &self.method)
            .field("url", &self.url)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}

/// What became of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryOutcome {
    /// Whether the request may have left: if not, the client certainly did not see it.
    pub sent: bool,
    /// The answer, or why there is none.
    pub reply: Reply,
    /// Whether the excerpt is all of the answer's body.
    pub whole: bool,
    /// How long it took.
    pub duration: Duration,
    /// Which parts of that the transport can tell apart; none, if it does not say.
    pub phases: AttemptPhases,
}

impl DeliveryOutcome {
    /// The client answered with `status`, and without a body.
    pub fn answered(status: u16) -> Self {
        let reply = Reply::Answered { status, retry_after: None, excerpt: Bytes::new() };
        let (duration, phases) = (Duration::ZERO, AttemptPhases::default());
        Self { sent: true, reply, whole: true, duration, phases }
    }

    /// No answer came; `sent` tells whether the request may have left.
    pub fn failed(kind: FailureKind, message: impl Into<String>, sent: bool) -> Self {
        Self {
            sent,
            reply: Reply::Failed { kind, message: message.into() },
            whole: false,
            duration: Duration::ZERO,
            phases: AttemptPhases::default(),
        }
    }

    /// The same outcome with the time it took.
    #[must_use]
    pub fn after(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// The same outcome with the parts of its time that are known.
    #[must_use]
    pub fn in_phases(mut self, phases: AttemptPhases) -> Self {
        self.phases = phases;
        self
    }
}

/// The answer to an attempt, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// The client answered.
    Answered {
        /// Its status code.
        status: u16,
        /// When it wants to be asked again.
        retry_after: Option<RetryAfter>,
        /// The beginning of its body.
        excerpt: Bytes,
    },
    /// No answer came.
    Failed {
        /// What kind of failure.
        kind: FailureKind,
        /// What happened, in words, with addresses and rules named.
        message: String,
    },
}

/// When a client wants to be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryAfter {
    /// After this time.
    Delay(Duration),
    /// At this time.
    At(Timestamp),
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The name did not resolve.
    Dns,
    /// No connection could be made.
    Connect,
    /// The connection could not be secured.
    Tls,
    /// Time ran out.
    Timeout,
    /// The connection broke, or what came over it was no HTTP.
    Broken,
    /// Our own rules forbid the address.
    Refused,
    /// The request itself cannot be made (a URL or header that became invalid).
    Unsendable,
}
