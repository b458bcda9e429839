//! Takes the body of a request as it streams in; gives its bytes, or refuses them at the limit.
//! Never holds more than the limit allows, nor all bodies together more than theirs.

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::bodies::BodyRoom;
use crate::layer::Reading;
use crate::options::State;
use crate::problem::{Problem, RETRY_LATER};
use crate::wire::json::read as read_json;
use crate::wire::operation::Nothing;

/// A body that says it is JSON; whether it is, the reader finds out. Its room is to be kept until the
/// request is answered.
pub(crate) struct JsonBody(pub(crate) Bytes, pub(crate) BodyRoom);

/// The body of an operation: JSON, or nothing at all.
pub(crate) struct Operation(pub(crate) Option<Bytes>);

impl FromRequest<State> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        let json = says_json(request.headers());
        if !json {
            return Err(unsupported());
        }
        let (bytes, room) = read(request, state).await?;
        Ok(Self(bytes, room))
    }
}

impl FromRequest<State> for Operation {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        let json = says_json(request.headers());
        // What an operation takes is small, and read before it is done.
        let (bytes, _room) = read(request, state).await?;
        match bytes.is_empty() {
            true => Ok(Self(None)),
            false if json => Ok(Self(Some(bytes))),
            false => Err(unsupported()),
        }
    }
}

impl Operation {
    /// Insists on nothing, or on an object without fields.
    pub(crate) fn empty(self) -> Result<(), Problem> {
        match self.0 {
            None => Ok(()),
            Some(bytes) => Ok(read_json::<Nothing>(&bytes).map(|Nothing {}| ())?),
        }
    }
}

async fn read(request: Request, state: &State) -> Result<(Bytes, BodyRoom), Problem> {
    let limit = state.options().body_limit;
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let announced = announced.and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let mut room = state.bodies().begin();
    let least = announced.and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    if !room.fits(least) {
        return Err(full());
    }
    let (parts, body) = request.into_parts();
    let reading = parts.extensions.get::<Reading>();
    reading.inspect(|reading| reading.begin());
    let collected = collect(Limited::new(body, limit), limit, &mut room).await;
    reading.inspect(|reading| reading.end());
    Ok((collected?, room))
}

/// Reads a body to its end, as far as there is room for it.
async fn collect(
    mut body: Limited<Body>,
    limit: usize,
    room: &mut BodyRoom,
) -> Result<Bytes, Problem> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => too_large(limit),
            None => Problem::new(StatusCode::BAD_REQUEST).detail("the body ended before its end"),
        })?;
        // What is no data is a trailer, which means nothing here.
        let Ok(data) = frame.into_data() else { continue };
        if !room.grow(data.len()) {
            return Err(full());
        }
        if first.is_empty() {
            // Most bodies come in one piece, which need not be copied.
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Too many bodies are being read, or wait to be stored.
fn full() -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS)
        .detail("too many bytes of other requests are in memory")
        .retry_after(RETRY_LATER)
}

fn too_large(limit: usize) -> Problem {
    let detail = format!("the body must be at most {limit} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE).detail(detail)
}

fn unsupported() -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        .field("Content-Type")
        .detail("must be application/json")
}

/// Whether the body is said to be JSON: `application/json`, or any `application/…+json`.
fn says_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}
