//! Takes the envelopes of many notifications and their subscription; gives the one request that tells the
//! client of all of them, signed as one. Pure.

use bytes::Bytes;

use super::{OWN_HEADERS, missing, nowhere};
use crate::model::{Action, Document, Escape, Invalid, Subscription, Telling, Timestamp, batch_id};
use crate::pipeline::compose::id_of;
use crate::pipeline::settings::Settings;
use crate::pipeline::sign::signature;
use crate::port::DeliveryRequest;

/// What is around the envelopes.
const BEGIN: &[u8] = b"{\"notifications\":[";
const END: &[u8] = b"]}";
/// Bytes of a body beside its envelopes, one comma each included.
pub(crate) const AROUND: usize = BEGIN.len() + END.len();

/// Bytes of an answer that names one notification, and of one that names none.
const NAMED: usize = 64;
const ANSWER: usize = 1_024;

/// The request that tells a client of several documents: the first of them, and the envelope of each.
pub(crate) fn compose_batch(
    settings: &Settings,
    subscription: &Subscription,
    told: &[(&Document, Telling)],
    envelopes: &[Bytes],
    now: Timestamp,
) -> Result<DeliveryRequest, Invalid> {
    let Some((first, telling)) = told.first() else {
        return Err(Invalid::new("delivery.batch", "has nothing to tell"));
    };
    let spec = &subscription.spec;
    // It is the same for all actions, and without placeholders.
    let template = spec.request_for(Action::Create);
    let nothing = |_: &str| None;
    let url = template.url.ok_or_else(nowhere)?.render(nothing).map_err(missing)?;
    let document = first.key.url.clone();
    let (version, action, method) = (telling.version, telling.action, template.method);
    let mut request = DeliveryRequest::new(subscription.id, document, version, action, method, url);
    request.body = enclose(envelopes);
    request.timeout = spec.delivery().timeout().unwrap_or(settings.timeout);
    request.needs_whole = true;
    request.excerpt_limit = settings.excerpt_limit.max(ANSWER + told.len() * NAMED);
    request.headers.reserve(template.headers.iter().count() + OWN_HEADERS);
    for (name, values) in template.headers.iter() {
        for value in values {
            let value = value.render(Escape::Header, nothing).map_err(missing)?;
            request.headers.push((name.to_owned().into(), value));
        }
    }
    if template.headers.get("content-type").is_none() {
        request.headers.push(("content-type".into(), "application/json".to_owned()));
    }
    let id = |(document, telling): &(&Document, Telling)| {
        id_of(subscription.id, &document.key.url, *telling)
    };
    let id = batch_id(subscription.id, &told.iter().map(id).collect::<Vec<_>>());
    let timestamp = now.unix_seconds().to_string();
    if let Some(signing) = spec.signing() {
        let signature = signature(signing, &id, &timestamp, &request.body)?;
        request.headers.push(("webhook-signature".into(), signature));
    }
    let own = [
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("flare-action", "batch".to_owned()),
    ];
    request.headers.extend(own.map(|(name, value)| (name.into(), value)));
    // A request has one trace: the first there is among them.
    if let Some(trace) = told.iter().find_map(|(document, _)| document.trace.as_ref()) {
        request.headers.push(("traceparent".into(), trace.as_str().to_owned()));
    }
    Ok(request)
}

fn enclose(envelopes: &[Bytes]) -> Bytes {
    let length = AROUND + envelopes.iter().map(|envelope| envelope.len() + 1).sum::<usize>();
    let mut body = Vec::with_capacity(length);
    body.extend_from_slice(BEGIN);
    for (position, envelope) in envelopes.iter().enumerate() {
        if position > 0 {
            body.push(b',');
        }
        body.extend_from_slice(envelope);
    }
    body.extend_from_slice(END);
    body.into()
}
