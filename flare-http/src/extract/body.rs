//! Takes the body of a request as it streams in; gives its bytes, or refuses them at the limit.
//! Never holds more than the limit allows.

use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::layer::Reading;
use crate::options::State;
use crate::problem::Problem;
use crate::wire::object::Object;
use crate::wire::operation::Nothing;

/// A body that says it is JSON; whether it is, the reader finds out.
pub(crate) struct JsonBody(pub(crate) Bytes);

/// The body of an operation: JSON, or nothing at all.
pub(crate) struct Operation(pub(crate) Option<Bytes>);

impl FromRequest<State> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        let json = says_json(request.headers());
        if !json {
            return Err(unsupported());
        }
        read(request, state.options().body_limit).await.map(Self)
    }
}

impl FromRequest<State> for Operation {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &State) -> Result<Self, Problem> {
        let json = says_json(request.headers());
        let bytes = read(request, state.options().body_limit).await?;
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
            Some(bytes) => parse::<Nothing>(&bytes).map(|Nothing {}| ()),
        }
    }
}

/// Reads JSON into a DTO; a refusal names the field's path.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let refuse = |field: Option<String>, error: serde_json::Error| {
        let problem = Problem::new(StatusCode::BAD_REQUEST).detail(error.to_string());
        match field {
            Some(field) => problem.field(field),
            None => problem,
        }
    };
    let Object(value) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        refuse(Some(path).filter(|path| path != "."), error.into_inner())
    })?;
    json.end().map_err(|error| refuse(None, error))?;
    Ok(value)
}

async fn read(request: Request, limit: usize) -> Result<Bytes, Problem> {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let announced = announced.and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let (parts, body) = request.into_parts();
    let reading = parts.extensions.get::<Reading>();
    reading.inspect(|reading| reading.begin());
    let collected = Limited::new(body, limit).collect().await;
    reading.inspect(|reading| reading.end());
    collected.map(|whole| whole.to_bytes()).map_err(|error| {
        match error.downcast_ref::<LengthLimitError>() {
            Some(_) => too_large(limit),
            None => Problem::new(StatusCode::BAD_REQUEST).detail("the body ended before its end"),
        }
    })
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
