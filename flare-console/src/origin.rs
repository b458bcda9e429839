//! Takes a request that changes something; gives why it is refused if another site's page may have sent it.

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use flare_http::Problem;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what may be forged: browsers say where a form stood. Reading is never refused, as it changes nothing.
pub(crate) fn check(method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let passes = match (text(&FETCH_SITE), text(&ORIGIN)) {
        // What a person sent without any page, or a page of ours.
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        // A browser says it only where the connection is safe, and the page's own origin always.
        (None, Some(origin)) => {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            let host = text(&HOST).filter(|host| !host.is_empty());
            authority.zip(host).is_some_and(|(its, ours)| its.eq_ignore_ascii_case(ours))
        }
        (None, None) => false,
    };
    if passes {
        return Ok(());
    }
    let detail = "This was not sent from a page of this console, so it was not done. If it was, a proxy in \
                  between changes the Host header: have it pass that on.";
    Err(Problem::new(StatusCode::FORBIDDEN).detail(detail))
}

/// Whether the page that was sent stood on https.
pub(crate) fn is_secure(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(method: Method, given: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.insert(*name, value.parse().unwrap());
        }
        check(&method, &headers).is_ok()
    }

    #[test]
    fn only_our_own_pages_change_anything() {
        for (given, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://a"), ("host", "a")], false),
            (&[("origin", "http://a:80"), ("host", "a:80")], true),
            (&[("origin", "https://A"), ("host", "a")], true),
            (&[("origin", "http://a:81"), ("host", "a:80")], false),
            (&[("origin", "null"), ("host", "a")], false),
            (&[("origin", "http://"), ("host", "")], false),
            (&[("origin", "http://a")], false),
            (&[("host", "a")], false),
            (&[], false),
        ] {
            for method in [Method::POST, Method::PUT, Method::DELETE] {
                assert_eq!(passes(method.clone(), given), expected, "{method} {given:?}");
            }
            assert!(passes(Method::GET, given) && passes(Method::HEAD, given));
        }
    }
}
