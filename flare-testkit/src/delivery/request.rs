//! D1 and D2: one call is one request, just as it was given.

use bytes::Bytes;
use flare_core::model::Method;
use flare_core::port::Delivery;

use super::bench::request;
use crate::{Answer, HttpTarget, Subject};

/// A redirect is an answer like any other.
pub async fn d1_redirects_are_not_followed(subject: Subject<dyn Delivery>) {
    let elsewhere = HttpTarget::start(Answer::status(200)).await;
    for status in [301, 302, 303, 307, 308] {
        let target = HttpTarget::start(Answer::redirect(status, elsewhere.url("/"))).await;
        target.on("/self", Answer::redirect(status, "/other"));
        subject.post(target.url("/")).await;
        subject.post(target.url("/self")).await;
        assert_eq!(target.requests().len(), 2, "{status}: one request per call");
    }
    assert_eq!(elsewhere.requests().len(), 0, "no redirect is followed");
}

/// Whatever goes wrong, the client sees one request.
pub async fn d1_a_failure_is_not_retried(subject: Subject<dyn Delivery>) {
    let failures = [
        Answer::status(503).header("Retry-After", "0"),
        Answer::status(408),
        Answer::status(421),
        Answer::status(425),
        Answer::close(),
        Answer::cut(),
        Answer::raw("no HTTP"),
    ];
    for answer in failures {
        let target = HttpTarget::start(answer.clone()).await;
        subject.post(target.url("/")).await;
        assert_eq!(target.requests().len(), 1, "{answer:?}");
    }
}

/// Nor is a request that went out on a connection kept from before, and closed just then.
pub async fn d1_a_broken_kept_connection_is_not_retried(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200)).await;
    target.on("/broken", Answer::close());
    for method in [Method::Post, Method::Get, Method::Put, Method::Delete] {
        subject.post(target.url("/fine")).await;
        let before = target.requests().len();
        let mut request = request(&subject, target.url("/broken"));
        request.method = method;
        subject.deliver(request).await;
        assert_eq!(target.requests().len(), before + 1, "{method:?}");
    }
}

/// Every method is sent, with a body or without.
pub async fn d2_methods_are_sent_as_given(subject: Subject<dyn Delivery>) {
    let methods = [
        (Method::Get, "GET"),
        (Method::Post, "POST"),
        (Method::Put, "PUT"),
        (Method::Patch, "PATCH"),
        (Method::Delete, "DELETE"),
    ];
    for (method, name) in methods {
        for body in ["", "{\"a\":1}"] {
            let target = HttpTarget::start(Answer::status(200)).await;
            let mut request = request(&subject, target.url("/"));
            request.method = method;
            request.body = Bytes::from_static(body.as_bytes());
            subject.deliver(request).await;
            let seen = target.requests().remove(0);
            assert_eq!((seen.method.as_str(), &seen.body[..]), (name, body.as_bytes()));
        }
    }
}

/// Path and query arrive as they were written, whatever they could also be written as.
pub async fn d2_urls_are_sent_as_given(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200)).await;
    let urls = [
        "/",
        "/a/b/",
        "/a%2Fb/%c3%BC/%7Euser",
        "/double//slash",
        "/x;v=1,2/@me:you/~a-b_c.d!$&'()*+,=",
        "/q?",
        "/q?a=1&b=&&c",
        "/q?next=http://x.example.com/?y&z=%20+%2B",
    ];
    for url in urls {
        subject.post(target.url(url)).await;
    }
    let seen: Vec<_> = target.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(seen, urls);
}

/// Every header arrives as often as it was given, with its value; none is there twice by the
/// transport's doing.
pub async fn d2_headers_are_sent_as_given(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200)).await;
    let headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", "somebody/1.0"),
        ("Accept", "text/plain"),
        ("X-Many", "one"),
        ("webhook-id", "msg_1"),
        ("X-Many", "two, three"),
        ("x-many", "one"),
        ("X-Empty", ""),
        ("X-Odd", "a;b=\"c d\" (e) <f>"),
        ("Authorization", "Bearer s3cr3t=="),
    ];
    let mut request = request(&subject, target.url("/"));
    request.headers = headers.map(|(name, value)| (name.into(), value.into())).to_vec();
    request.body = Bytes::from_static(b"{}");
    subject.deliver(request).await;
    let seen = target.requests().remove(0);
    for (name, _) in headers {
        let same = headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let given: Vec<_> = same.map(|(_, value)| *value).collect();
        assert_eq!(seen.values(name), given, "{name}");
    }
    assert_eq!(seen.values("host").len(), 1);
}

/// Bodies arrive byte for byte, with their length, never in chunks.
pub async fn d2_bodies_are_sent_as_given(subject: Subject<dyn Delivery>) {
    let target = HttpTarget::start(Answer::status(200)).await;
    let bodies = [
        Bytes::from_static(b"x"),
        Bytes::from_iter(0..=u8::MAX),
        Bytes::from_static(b"\r\n\r\n0\r\n\r\n"),
        Bytes::from(vec![b'z'; 1 << 20]),
    ];
    for body in &bodies {
        let mut request = request(&subject, target.url("/"));
        request.body = body.clone();
        subject.deliver(request).await;
    }
    let seen = target.requests();
    assert_eq!(seen.len(), bodies.len());
    for (seen, body) in seen.iter().zip(&bodies) {
        assert!(seen.body == *body, "{} bytes of {}", seen.body.len(), body.len());
        assert_eq!(seen.values("content-length"), [body.len().to_string()]);
        assert_eq!(seen.values("transfer-encoding"), [""; 0]);
    }
}
