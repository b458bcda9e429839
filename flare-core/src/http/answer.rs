//! Takes the head of an answer; gives its status, its wish, and the beginning of its body. Reads
//! no more of the body than that, apart from a little that lets the connection live on. Once there
//! is a status nothing can fail any more: a body that stalls or breaks off is a short excerpt, and
//! is not said to be whole.

use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt;
use futures::future::{Either, select};
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::retry_after;
use crate::port::{Clock, DeliveryOutcome, Reply, RetryAfter};

/// How long the beginning of a body may take once the status is there: the excerpt is for people, and
/// the client's other notifications wait for it.
const BODY_TIME: Duration = Duration::from_secs(1);

/// How much of an answer is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes that are kept.
    pub(super) excerpt: usize,
    /// Bytes behind them that are thrown away.
    pub(super) drain: usize,
    /// Whether all of it matters.
    pub(super) whole: bool,
    /// What is left of the attempt's time.
    pub(super) time: Duration,
}

/// Reads what is wanted of an answer, and lets go of the rest.
pub(super) async fn read(
    mut response: Response,
    limits: Limits,
    clock: &dyn Clock,
) -> DeliveryOutcome {
    let status = response.status().as_u16();
    let wish = wish(response.headers());
    let mut excerpt = BytesMut::new();
    let read = {
        let reading = std::pin::pin!(begin(&mut response, limits, &mut excerpt));
        let time = if limits.whole { limits.time } else { limits.time.min(BODY_TIME) };
        match select(reading, clock.sleep(time)).await {
            Either::Left((ended, _)) => Some(ended),
            Either::Right(_) => None,
        }
    };
    // One that is late would be late with the rest too: its connection is closed.
    if read.is_some() {
        drain(response, limits.drain);
    }
    let mut outcome = DeliveryOutcome::answered(status);
    outcome.whole = read == Some(true);
    outcome.reply = Reply::Answered { status, retry_after: wish, excerpt: excerpt.freeze() };
    outcome
}

fn wish(headers: &HeaderMap) -> Option<RetryAfter> {
    retry_after::parse(headers.get(RETRY_AFTER)?.to_str().ok()?)
}

/// Reads a body up to the limit, its end, or wherever it breaks off; gives whether that was its end. One
/// that matters is read until it is known whether it goes on behind the limit.
async fn begin(response: &mut Response, limits: Limits, excerpt: &mut BytesMut) -> bool {
    while excerpt.len() < limits.excerpt || limits.whole {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            end => return end.is_ok(),
        };
        let wanted = chunk.len().min(limits.excerpt - excerpt.len());
        excerpt.extend_from_slice(&chunk[..wanted]);
        if wanted < chunk.len() {
            return false;
        }
    }
    false
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
