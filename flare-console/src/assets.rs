//! What pages load: styles, one small script, an icon. All of it is in the program.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Changes with what is served, so that browsers may keep it for ever: the crate's version and a count.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-2");

/// Tabler's styles, packed: every browser that can show them takes gzip.
const TABLER: &[u8] = include_bytes!("../assets/tabler.css.gz");
const STYLES: &[u8] = include_bytes!("../assets/console.css");
const SCRIPT: &[u8] = include_bytes!("../assets/live.js");
const ICON: &[u8] = include_bytes!("../assets/icon.svg");

/// Serves one of them.
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let (kind, bytes, packed) = match name.as_str() {
        "tabler.css" => ("text/css; charset=utf-8", TABLER, true),
        "console.css" => ("text/css; charset=utf-8", STYLES, false),
        "live.js" => ("text/javascript; charset=utf-8", SCRIPT, false),
        "icon.svg" => ("image/svg+xml", ICON, false),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let kept = "public, max-age=31536000, immutable";
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, kept)];
    let mut response = (headers, Bytes::from_static(bytes)).into_response();
    if packed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}
