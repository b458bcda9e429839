//! Takes a row's document and its subscription; gives the request that tells the client. Pure.

mod batch;

use bytes::Bytes;

use super::settings::Settings;
use super::sign::signature;
use crate::model::{
    Action, Document, DocumentUrl, Escape, Invalid, MissingValue, Notification, Resource,
    Subscription, SubscriptionId, Target, Telling, Timestamp, webhook_id,
};
use crate::port::DeliveryRequest;

pub(crate) use self::batch::{AROUND, compose_batch};

/// Headers that are Flare's own, at most.
const OWN_HEADERS: usize = 7;

/// The request that tells a client what was decided about `document`.
pub(crate) fn compose(
    settings: &Settings,
    resource: &Resource,
    subscription: &Subscription,
    document: &Document,
    telling: Telling,
    now: Timestamp,
) -> Result<DeliveryRequest, Invalid> {
    let (spec, action) = (&subscription.spec, telling.action);
    let mut told = notification(resource, document, telling);
    let revision = told.shown_revision();
    let params = resource.endpoint.matches(&document.key.url).unwrap_or_default();
    let lookup = |name: &str| match name {
        "revision" => Some(revision.as_str()),
        name => params.get(name),
    };
    let data = spec.data().map(|data| data.render(lookup)).transpose().map_err(missing)?;
    told = told.data(data.as_deref());

    let template = spec.request_for(action);
    let url = template.url.ok_or_else(nowhere)?.render(lookup).map_err(missing)?;
    let mut request = DeliveryRequest::new(
        subscription.id,
        document.key.url.clone(),
        document.version,
        action,
        template.method,
        url,
    );
    request.body = told.body(spec.content());
    request.timeout = spec.delivery().timeout().unwrap_or(settings.timeout);
    request.excerpt_limit = settings.excerpt_limit;
    request.headers.reserve(template.headers.iter().count() + OWN_HEADERS);
    for (name, values) in template.headers.iter() {
        for value in values {
            let value = value.render(Escape::Header, lookup).map_err(missing)?;
            request.headers.push((name.to_owned().into(), value));
        }
    }
    if template.headers.get("content-type").is_none() {
        request.headers.push(("content-type".into(), "application/json".to_owned()));
    }
    let id = id_of(subscription.id, &document.key.url, telling);
    let timestamp = now.unix_seconds().to_string();
    if let Some(signing) = spec.signing() {
        let signature = signature(signing, &id, &timestamp, &request.body)?;
        request.headers.push(("webhook-signature".into(), signature));
    }
    let own = [
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("flare-action", action.as_str().to_owned()),
        ("flare-revision", revision),
    ];
    request.headers.extend(own.map(|(name, value)| (name.into(), value)));
    if let Some(trace) = &document.trace {
        request.headers.push(("traceparent".into(), trace.as_str().to_owned()));
    }
    Ok(request)
}

/// The envelope, with its id, that tells a client what was decided about `document` among others.
pub(crate) fn envelop(
    resource: &Resource,
    subscription: &Subscription,
    document: &Document,
    telling: Telling,
) -> Result<Bytes, Invalid> {
    let told = notification(resource, document, telling);
    let revision = told.shown_revision();
    let params = resource.endpoint.matches(&document.key.url).unwrap_or_default();
    let lookup = |name: &str| match name {
        "revision" => Some(revision.as_str()),
        name => params.get(name),
    };
    let data = subscription.spec.data().map(|data| data.render(lookup));
    let data = data.transpose().map_err(missing)?;
    let id = id_of(subscription.id, &document.key.url, telling);
    let told = told.data(data.as_deref()).webhook_id(&id);
    Ok(told.body(subscription.spec.content().enveloped()))
}

/// What the client is told, without what the filter keeps from it.
fn notification<'a>(
    resource: &'a Resource,
    document: &'a Document,
    telling: Telling,
) -> Notification<'a> {
    let told = Notification::new(&resource.change, document, telling.action);
    if telling.withholds { told.withhold_content() } else { told }
}

/// What a notification is known by.
pub(crate) fn id_of(subscription: SubscriptionId, url: &DocumentUrl, telling: Telling) -> String {
    let target = match telling.action {
        Action::Delete => Target::Absent,
        Action::Create | Action::Update => Target::Present,
    };
    webhook_id(subscription, url, telling.version, target, telling.round)
}

/// Of a client that only pulls nothing can be demanded; its URL may have gone after that was done.
fn nowhere() -> Invalid {
    Invalid::new("endpoint.url", "is not there, so there is nowhere to send it")
}

fn missing(missing: MissingValue) -> Invalid {
    Invalid::new("endpoint", format!("has a placeholder {{{}}} without value", missing.name()))
}
