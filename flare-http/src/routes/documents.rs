//! Takes requests about documents; gives what the handle says. The document's URL is the rest of
//! the request's own path, which nobody may have tidied up before.

use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::IntoResponse;
use flare_core::model::{DocumentChange, TraceContext};

use super::answer::{Answer, json};
use crate::extract::JsonBody;
use crate::options::State;
use crate::problem::Problem;
use crate::wire::document::{DocumentPath, DocumentView};

const CHANGE: HeaderName = HeaderName::from_static("flare-change");
const REVISION: HeaderName = HeaderName::from_static("flare-revision");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const BELOW: &str = "/documents/";
/// How long to stay away from a node that takes no documents: another one does at once.
const ELSEWHERE: Duration = Duration::from_secs(1);

/// Reads the newest version of a document.
#[utoipa::path(get, operation_id = "readDocument", path = "/documents/{url}", tag = "documents", params(DocumentPath),
    responses((status = 200, description = "There it is", body = DocumentView<'_>)))]
pub(crate) async fn read(Shared(state): Shared<State>, uri: Uri) -> Answer {
    let document = state.flare().document(&document_url(&uri, BELOW)?).await?;
    let resource = state.flare().resource(document.key.resource).await?;
    json(StatusCode::OK, &DocumentView::new(&document, &resource)?)
}

/// Hands over a new version of a document, which is kept byte for byte.
#[utoipa::path(put, operation_id = "putDocument", path = "/documents/{url}", tag = "documents", params(DocumentPath,
        ("traceparent" = Option<String>, Header, nullable = false,
            description = "The W3C trace clients are told of")),
    request_body(content = Object, description = "The document: a JSON object with its revision",
        example = json!({"name": "Ada", "updatedAt": "2024-05-01T10:00:00Z"})),
    responses((status = 202, description = "Stored, or already known: Flare-Change tells",
        headers(("Flare-Change" = String, description = "created, updated, unchanged or stale")))))]
pub(crate) async fn put(
    Shared(state): Shared<State>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody(body, _room): JsonBody,
) -> Answer {
    let url = document_url(&uri, BELOW)?;
    ingests(&state)?;
    accepted(state.flare().put_traced(&url, body, trace(&headers)).await?)
}

/// Says that a document is gone.
#[utoipa::path(delete, operation_id = "deleteDocument", path = "/documents/{url}", tag = "documents", params(DocumentPath,
        ("Flare-Revision" = Option<String>, Header, nullable = false,
            description = "As of this revision; without, as of the newest one stored"),
        ("traceparent" = Option<String>, Header, nullable = false,
            description = "The W3C trace clients are told of")),
    responses((status = 202, description = "Deleted, or already known: Flare-Change tells",
        headers(("Flare-Change" = String, description = "deleted, unchanged or stale")))))]
pub(crate) async fn delete(Shared(state): Shared<State>, uri: Uri, headers: HeaderMap) -> Answer {
    let url = document_url(&uri, BELOW)?;
    let revision = headers.get(REVISION).map(|value| value.to_str()).transpose();
    let revision = revision
        .map_err(|_| Problem::invalid("Flare-Revision", "must be a revision as Flare shows it"))?;
    ingests(&state)?;
    accepted(state.flare().delete_traced(&url, revision, trace(&headers)).await?)
}

/// Whether documents are taken here, and not only worked.
fn ingests(state: &State) -> Result<(), Problem> {
    if state.flare().member().roles().ingests {
        return Ok(());
    }
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE)
        .detail("this node takes no documents: hand them to another one of the cluster")
        .retry_after(ELSEWHERE))
}

fn accepted(change: DocumentChange) -> Answer {
    Ok((StatusCode::ACCEPTED, [(CHANGE, change.as_str())]).into_response())
}

/// The trace of a request; one that is not valid starts nothing and harms nothing.
fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get(TRACEPARENT)?.to_str().ok()?.parse().ok()
}

/// The rest of the path: as it is if it is a URL already, else percent-decoded once.
pub(super) fn document_url(uri: &Uri, below: &str) -> Result<String, Problem> {
    let rest = uri.path().strip_prefix(below).unwrap_or_default();
    let starts = |scheme: &str| {
        rest.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    if starts("http://") || starts("https://") {
        return Ok(rest.to_owned());
    }
    decode(rest).ok_or_else(|| Problem::invalid("url", "must be percent-encoded UTF-8"))
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_taken_raw_or_decoded_once() {
        for (path, url) in [
            ("/documents/http://a.example/u/1", Some("http://a.example/u/1")),
            ("/documents/https://a.example//u/%2F%20", Some("https://a.example//u/%2F%20")),
            ("/documents/HTTP://a.example/u%2f1", Some("HTTP://a.example/u%2f1")),
            ("/documents/http%3A%2F%2Fa.example%2Fu%2F1", Some("http://a.example/u/1")),
            ("/documents/http:%2f%2fa.example/u/%2520", Some("http://a.example/u/%20")),
            ("/documents/http%3A//a.example/u/1?x=1", Some("http://a.example/u/1")),
            ("/documents/%ff", None),
            ("/documents/%4", None),
            ("/documents/%zz", None),
            ("/documents/%+1", None),
        ] {
            let found = document_url(&path.parse().unwrap(), BELOW);
            assert_eq!(found.ok().as_deref(), url, "{path}");
        }
    }
}
