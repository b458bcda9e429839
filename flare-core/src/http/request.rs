//! Takes a request of the port; gives the same one as reqwest sends it, or why it cannot be sent
//! exactly as it was given. Sends nothing.

use std::net::IpAddr;

use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use reqwest::{Body, Method, Request, Url};

use crate::model;
use crate::port::DeliveryRequest;

/// A request that can be sent, and where it goes.
pub(super) struct PreparedRequest {
    pub(super) request: Request,
    /// Host and port, for messages: path and query may hold secrets.
    pub(super) target: String,
    pub(super) host: TargetHost,
}

/// How the URL names the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetHost {
    /// An address, however it was written.
    Literal(IpAddr),
    /// A name to look up.
    Name(String),
}

/// Builds the request. The refusal is one sentence without the URL's path or query.
pub(super) fn prepare(given: DeliveryRequest) -> Result<PreparedRequest, String> {
    let url = parse_url(&given.url)?;
    let host = url.host_str().ok_or("the URL has no host")?;
    let target = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let host = match bare.parse() {
        Ok(address) => TargetHost::Literal(address),
        Err(_) => TargetHost::Name(host.to_owned()),
    };
    let mut request = Request::new(method(given.method)?, url);
    *request.headers_mut() = headers(&given)?;
    *request.body_mut() = Some(Body::from(given.body));
    Ok(PreparedRequest { request, target, host })
}

fn method(method: model::Method) -> Result<Method, String> {
    Method::from_bytes(method.as_str().as_bytes()).map_err(|error| error.to_string())
}

fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("the URL is invalid: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the URL is neither http nor https".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a user or password; send credentials as a header".to_owned());
    }
    if !is_kept(text, &url) {
        return Err("the URL's path or query would be rewritten: it has dot segments or \
             characters that must be percent-encoded"
            .to_owned());
    }
    Ok(url)
}

/// Whether path and query go over the wire as they were given.
fn is_kept(text: &str, url: &Url) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let rest = rest.split('#').next().unwrap_or(rest);
    let given = rest.find(['/', '?']).map_or("", |start| &rest[start..]);
    let (path, query) = match given.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (given, None),
    };
    let path = if path.is_empty() { "/" } else { path };
    // An apostrophe in a query is always sent encoded; it means the same.
    let query = query.map(|query| query.replace('\'', "%27"));
    path == url.path() && query.as_deref() == url.query()
}

fn headers(given: &DeliveryRequest) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &given.headers {
        let wrong = |what| format!("the header {name:?} {what}");
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("has a name that cannot be sent"))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| wrong("has a value that cannot be sent"))?;
        if parsed == TRANSFER_ENCODING {
            return Err(wrong("must not be given: the body is sent as it is"));
        }
        if parsed == CONTENT_LENGTH {
            if value.as_bytes() != given.body.len().to_string().as_bytes() {
                return Err(wrong("is not the length of the body"));
            }
            continue;
        }
        headers.try_append(parsed, value).map_err(|_| "there are too many headers".to_owned())?;
    }
    if !given.body.is_empty() || given.method != model::Method::Get {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(given.body.len()));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::model::{Action, DocumentUrl, Revision, SubscriptionId, Version};

    fn request(url: &str) -> DeliveryRequest {
        DeliveryRequest::new(
            SubscriptionId::from_bytes([1; 16]),
            DocumentUrl::parse("https://origin.example/1").unwrap(),
            Version::live(Revision::new(1)),
            Action::Create,
            model::Method::Post,
            url,
        )
    }

    fn wrong(request: DeliveryRequest) -> String {
        prepare(request).err().unwrap()
    }

    #[test]
    fn odd_literals_are_the_address_they_are_dialled_as() {
        for (host, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("0x7f.0.0.1", "127.0.0.1"),
            ("0177.0.0.1", "127.0.0.1"),
            ("%31%32%37.0.0.1", "127.0.0.1"),
            ("①②⑦.0.0.1", "127.0.0.1"),
            ("127。0。0。1", "127.0.0.1"),
            ("0", "0.0.0.0"),
            ("[::1]", "::1"),
            ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
            ("[0:0:0:0:0:ffff:7f00:1]", "::ffff:127.0.0.1"),
        ] {
            let prepared = prepare(request(&format!("http://{host}:8080/x"))).unwrap();
            let literal = TargetHost::Literal(address.parse().unwrap());
            assert_eq!(prepared.host, literal, "{host}");
        }
        for name in ["localhost", "client.example", "client.example.", "127.0.0.1.nip.io"] {
            let prepared = prepare(request(&format!("https://{name}/"))).unwrap();
            assert_eq!(prepared.host, TargetHost::Name(name.to_owned()));
        }
    }

    #[test]
    fn urls_are_sent_as_given_or_not_at_all() {
        for url in [
            "http://h",
            "http://h/",
            "http://h?q",
            "https://h:8443/a/b;c=1,2/%7Bx%7D/(a)*!$&'?x=y&z=%20/?:@",
            "http://h/a//b/",
            "HTTP://H/A",
            "http://h:80/",
            "http://h/?",
            "http://h/?q='a'",
            "http://h/a#fragment",
            "http://h/%2F%41",
        ] {
            assert!(prepare(request(url)).is_ok(), "{url}");
        }
        for (url, reason) in [
            ("", "the URL is invalid"),
            ("/path", "the URL is invalid"),
            ("http://", "the URL is invalid"),
            ("http://[::1", "the URL is invalid"),
            ("http://h:99999/", "the URL is invalid"),
            ("ftp://h/", "neither http nor https"),
            ("http://user:secret@h/", "user or password"),
            ("http://h/a/../b", "rewritten"),
            ("http://h/a/%2e%2E/b", "rewritten"),
            ("http://h/./a", "rewritten"),
            ("http://h/a b", "rewritten"),
            ("http://h/a\\b", "rewritten"),
            ("http://h/ä?token=1", "rewritten"),
            ("http:/h/a", "rewritten"),
        ] {
            let message = wrong(request(url));
            assert!(message.contains(reason), "{url}: {message}");
            assert!(!message.contains("token") && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn headers_are_sent_as_given_or_not_at_all() {
        let with = |name: &str, value: &str| {
            let mut request = request("http://h/");
            request.headers = vec![(name.to_owned().into(), value.to_owned())];
            request.body = Bytes::from_static(b"12345");
            request
        };
        for (name, value, reason) in [
            ("bad name", "x", "has a name that cannot be sent"),
            ("", "x", "has a name that cannot be sent"),
            ("x", "secret\r\nInjected: 1", "has a value that cannot be sent"),
            ("Transfer-Encoding", "chunked", "must not be given"),
            ("Content-Length", "6", "is not the length of the body"),
        ] {
            let message = wrong(with(name, value));
            assert!(message.contains(reason) && !message.contains("secret"), "{message}");
        }
        let prepared = prepare(with("Content-Length", "5")).unwrap();
        assert_eq!(prepared.request.headers().get_all(CONTENT_LENGTH).iter().count(), 1);
        let mut many = request("http://h/");
        many.headers = (0..40_000).map(|n| (format!("x-{n}").into(), String::new())).collect();
        assert!(wrong(many).contains("too many headers"));
    }

    #[test]
    fn the_target_names_host_and_port_only() {
        let prepared = prepare(request("https://h.example:8443/secret?token=1")).unwrap();
        assert_eq!(prepared.target, "h.example:8443");
        assert_eq!(prepare(request("https://[::1]/x")).unwrap().target, "[::1]");
    }
}
