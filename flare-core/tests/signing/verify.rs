//! Takes a request's headers; gives what a receiver with the public library makes of it.

use std::borrow::Borrow;

use http::{HeaderMap, HeaderName, HeaderValue};
use standardwebhooks::{Webhook, WebhookError};

/// The headers as a receiver's framework has them.
pub(crate) fn header_map<N: Borrow<str>>(headers: &[(N, String)]) -> HeaderMap {
    let pairs = headers.iter().map(|(name, value)| {
        let name = HeaderName::from_bytes(name.borrow().as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    });
    pairs.collect()
}

pub(crate) fn verify(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), WebhookError> {
    Webhook::new(secret).unwrap().verify(body, headers)
}

#[track_caller]
pub(crate) fn assert_refused(secret: &str, headers: &HeaderMap, body: &[u8]) {
    let refused = verify(secret, headers, body);
    assert!(matches!(refused, Err(WebhookError::InvalidSignature)), "{refused:?}");
}
