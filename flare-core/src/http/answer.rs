//! Takes the head of an answer; gives its status, its wish, and the beginning of its body. Reads
//! no more of the body than that, apart from a little that lets the connection live on.

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use reqwest::Response;
use reqwest::header::{CONTENT_LENGTH, HeaderMap, RETRY_AFTER, TRANSFER_ENCODING};

use super::{failure, retry_after};
use crate::port::{DeliveryOutcome, Reply, RetryAfter};

/// Reads what is wanted of an answer, and lets go of the rest.
pub(super) async fn read(
    mut response: Response,
    excerpt_limit: usize,
    drain_limit: usize,
    target: &str,
) -> DeliveryOutcome {
    let status = response.status().as_u16();
    let wish = wish(response.headers());
    let excerpt = match excerpt(&mut response, excerpt_limit).await {
        Ok(excerpt) => excerpt,
        Err(error) => return failure::outcome(error, target),
    };
    drain(response, drain_limit);
    let mut outcome = DeliveryOutcome::answered(status);
    outcome.reply = Reply::Answered { status, retry_after: wish, excerpt };
    outcome
}

fn wish(headers: &HeaderMap) -> Option<RetryAfter> {
    retry_after::parse(headers.get(RETRY_AFTER)?.to_str().ok()?)
}

async fn excerpt(response: &mut Response, limit: usize) -> reqwest::Result<Bytes> {
    let headers = response.headers();
    // A body that lasts until the connection closes is complete then, even if TLS was not closed
    // politely; any other has to be as long as it says.
    let until_close =
        !headers.contains_key(CONTENT_LENGTH) && !headers.contains_key(TRANSFER_ENCODING);
    let mut excerpt = BytesMut::new();
    while excerpt.len() < limit {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let wanted = chunk.len().min(limit - excerpt.len());
                excerpt.extend_from_slice(&chunk[..wanted]);
            }
            Ok(None) => break,
            Err(error) if until_close && failure::ends_early(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(excerpt.freeze())
}

/// Takes what is there already, without waiting: if that is the end, the connection is free for
/// the next request; if not, dropping the answer closes it.
fn drain(mut response: Response, limit: usize) {
    let mut left = limit;
    while let Some(Ok(Some(chunk))) = response.chunk().now_or_never() {
        match left.checked_sub(chunk.len()) {
            Some(rest) => left = rest,
            None => break,
        }
    }
}
