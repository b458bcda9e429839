//! Takes JSON as the REST interface takes it; gives what the handle takes, or the field that is wrong
//! and why. The other way round, too.

use flare_core::model::{
    Consumer, Invalid, NewConsumer, NewResource, ResourceId, Subscription, SubscriptionInput,
};
use flare_core::{Error, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Problem, shortened_field};
use crate::wire::consumer::{ConsumerInput, ConsumerView};
use crate::wire::json::read;
use crate::wire::resource::ResourceInput;
use crate::wire::subscription::{NewSubscription, SubscriptionView};

/// Reads a subscription as the REST interface does: for a host with routes, files or forms of its own.
///
/// Null means not given, but for `signing`, where it removes. A refusal names the field's full path,
/// which is empty where the whole is not a JSON object, and never shows a value.
///
/// ```
/// use flare_http::subscription_from_json;
///
/// let first = subscription_from_json(br#"{
///     "endpoint": {"url": "https://client.example/hook/{id}"},
///     "delivery": {"concurrency": 4, "ttl": "72h"},
///     "signing": {"secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
/// }"#)?.create();
/// let moved = br#"{"endpoint": {"url": "https://new.client.example/"}}"#;
/// let moved = subscription_from_json(moved)?.replace(&first);
/// assert_eq!(moved.signing(), first.signing());
///
/// let refused = subscription_from_json(br#"{"endpoint": {"url": "ftp://x/"}}"#);
/// assert_eq!(refused.unwrap_err().field(), "endpoint.url");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
pub fn subscription_from_json(bytes: &[u8]) -> Result<SubscriptionInput, Invalid> {
    from_json::<NewSubscription, _>(bytes).map_err(|invalid| match invalid.field() {
        // Reads show it, so some will send it back.
        "status" => Invalid::new("status", "is read-only"),
        _ => invalid,
    })
}

/// Reads a kind of document as the REST interface does.
///
/// ```
/// use flare_http::resource_from_json;
///
/// let users = resource_from_json(br#"{
///     "endpoint": "http://api.example.com/users/{id}",
///     "change": {"field": "updatedAt", "format": "rfc3339"}
/// }"#)?;
/// users.check()?;
/// assert_eq!(resource_from_json(b"{}").unwrap_err().to_string(), "endpoint: is required");
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
pub fn resource_from_json(bytes: &[u8]) -> Result<NewResource, Invalid> {
    from_json::<ResourceInput, _>(bytes)
}

/// Reads a consumer as the REST interface does, and the resource it names, if it names one.
///
/// ```
/// use flare_http::consumer_from_json;
///
/// let (resource, users) = consumer_from_json(br#"{
///     "resource": "0192f0e0-0000-7000-8000-000000000000",
///     "sqs": {"queue": "users"},
///     "document": {"url": "http://api.example.com/users/{/id}"}
/// }"#)?;
/// assert_eq!((resource.is_some(), users.source.kind()), (true, "sqs"));
/// # Ok::<(), flare_core::model::Invalid>(())
/// ```
pub fn consumer_from_json(bytes: &[u8]) -> Result<(Option<ResourceId>, NewConsumer), Invalid> {
    let read = |bytes| {
        let input = read::<ConsumerInput>(bytes)?;
        let resource = input.resource_given()?;
        Ok((resource, NewConsumer::try_from(input)?))
    };
    read(bytes).map_err(shortened_field)
}

/// A subscription as reads of the REST interface show it: defaults written out, secrets as how many there are.
pub fn subscription_to_json(subscription: Subscription) -> Result<String, Problem> {
    to_json(&SubscriptionView::from(subscription))
}

/// A consumer as reads of the REST interface show it.
pub fn consumer_to_json(consumer: Consumer) -> Result<String, Problem> {
    to_json(&ConsumerView::from(consumer))
}

fn to_json<T: Serialize>(value: &T) -> Result<String, Problem> {
    let written = serde_json::to_string_pretty(value);
    Ok(written.map_err(|source| Error::new(ErrorKind::Internal, "to_json").with_source(source))?)
}

fn from_json<T, M>(bytes: &[u8]) -> Result<M, Invalid>
where
    T: DeserializeOwned,
    M: TryFrom<T, Error = Invalid>,
{
    read::<T>(bytes).and_then(M::try_from).map_err(shortened_field)
}
