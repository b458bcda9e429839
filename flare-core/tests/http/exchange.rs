//! What goes over the wire, and what is made of what comes back.

use std::time::Duration;

use bytes::Bytes;
use flare_core::model::Method;
use flare_core::port::{Delivery, FailureKind, Reply, RetryAfter};

use crate::server::{Answer, Server};
use crate::{answer, delivery, failure, local, post};

#[tokio::test]
async fn the_request_goes_out_as_given_and_nothing_else_does() {
    let server = Server::start(Answer::ok("thanks")).await;
    let mut request = post(server.url("/hook/%7Ba%7D/(1);v=2?x=%20y&x='"));
    request.headers = [("Content-Type", "application/json"), ("X-A", "1"), ("X-A", "2")]
        .map(|(name, value)| (name.into(), value.to_owned()))
        .to_vec();
    request.body = Bytes::from_static(b"{\"id\":1}");
    assert_eq!(answer(delivery(local()).attempt(request).await), (200, "thanks".to_owned()));
    let expected = format!(
        "POST /hook/%7Ba%7D/(1);v=2?x=%20y&x=%27 HTTP/1.1\r\n\
         content-type: application/json\r\n\
         x-a: 1\r\n\
         x-a: 2\r\n\
         content-length: 8\r\n\
         accept: */*\r\n\
         user-agent: flare/{}\r\n\
         host: {}\r\n\
         \r\n\
         {{\"id\":1}}",
        env!("CARGO_PKG_VERSION"),
        server.address(),
    );
    assert_eq!(server.requests(), [expected]);
}

#[tokio::test]
async fn an_empty_body_has_a_length_too_unless_it_is_a_get() {
    let server = Server::start(Answer::ok("")).await;
    let delivery = delivery(local());
    for (method, length) in [
        (Method::Get, None),
        (Method::Post, Some("0")),
        (Method::Put, Some("0")),
        (Method::Patch, Some("0")),
        (Method::Delete, Some("0")),
    ] {
        let mut request = post(server.url("/"));
        request.method = method;
        request.headers = vec![("user-agent".into(), "mine".to_owned())];
        answer(delivery.attempt(request).await);
        let seen = server.requests().pop().unwrap();
        let found = seen.lines().find_map(|line| line.strip_prefix("content-length: "));
        assert_eq!(found, length, "{seen}");
        assert!(seen.starts_with(&format!("{method} / HTTP/1.1")), "{seen}");
        assert!(seen.contains("user-agent: mine\r\n") && !seen.contains("flare/"), "{seen}");
        assert!(!seen.contains("transfer-encoding"), "{seen}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer() {
    let elsewhere = Server::start(Answer::ok("")).await;
    let location = elsewhere.url("/");
    let text = format!("HTTP/1.1 307 Go\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
    let server = Server::start(Answer::Keep(text)).await;
    assert_eq!(answer(delivery(local()).attempt(post(server.url("/"))).await).0, 307);
    assert_eq!((server.requests().len(), elsewhere.connections()), (1, 0));
}

#[tokio::test]
async fn a_wish_is_reported() {
    let text = "HTTP/1.1 503 Busy\r\nretry-after: 17\r\ncontent-length: 0\r\n\r\n";
    let server = Server::start(Answer::Keep(text.to_owned())).await;
    let outcome = delivery(local()).attempt(post(server.url("/"))).await;
    assert!(outcome.duration > Duration::ZERO, "{outcome:?}");
    let Reply::Answered { retry_after, .. } = outcome.reply else { panic!("{outcome:?}") };
    assert_eq!(retry_after, Some(RetryAfter::Delay(Duration::from_secs(17))));
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_the_limit_and_left() {
    for head in ["", "content-length: 9999999999\r\n"] {
        let server = Server::start(Answer::Flood(format!("HTTP/1.1 200 OK\r\n{head}\r\n"))).await;
        let mut request = post(server.url("/"));
        request.excerpt_limit = 100;
        let (status, excerpt) = answer(delivery(local()).attempt(request).await);
        assert_eq!((status, excerpt.as_str()), (200, "x".repeat(100).as_str()));
        // The connection is closed, so the flood ends: two looks in a row see the same.
        let mut before = u64::MAX;
        while before != server.flooded() {
            before = server.flooded();
            crate::time::pause(50).await;
        }
    }
}

#[tokio::test]
async fn the_settings_bound_the_excerpt_too() {
    let server = Server::start(Answer::ok("0123456789")).await;
    let delivery = delivery(local().excerpt_limit(4));
    assert_eq!(answer(delivery.attempt(post(server.url("/"))).await).1, "0123");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_broken_and_was_sent() {
    for text in [
        "",
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "this is not HTTP\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let server = Server::start(Answer::Close(text.to_owned())).await;
        let outcome = delivery(local()).attempt(post(server.url("/?token=secret"))).await;
        let (kind, sent, message) = failure(outcome);
        assert_eq!((kind, sent), (FailureKind::Broken, true), "{text:?}: {message}");
        assert!(message.starts_with(&server.address().to_string()), "{message}");
        assert!(!message.contains("secret"), "{message}");
        assert_eq!(server.requests().len(), 1, "{text:?}: never sent twice");
    }
}

#[tokio::test]
async fn once_the_status_is_there_a_body_that_breaks_off_changes_nothing() {
    for (text, status, excerpt) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345", 200, "12345"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n", 200, ""),
        ("HTTP/1.1 410 Gone\r\ncontent-length: 10\r\n\r\n1", 410, "1"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n3\r\n", 200, "12345"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno length", 200, ""),
    ] {
        let server = Server::start(Answer::Close(text.to_owned())).await;
        let outcome = delivery(local()).attempt(post(server.url("/"))).await;
        assert_eq!(answer(outcome), (status, excerpt.to_owned()), "{text:?}");
        assert_eq!(server.requests().len(), 1, "{text:?}: never sent twice");
    }
}

#[tokio::test]
async fn a_body_until_close_is_whole_once_it_closes() {
    let server = Server::start(Answer::Close("HTTP/1.1 200 OK\r\n\r\nbye".to_owned())).await;
    let outcome = delivery(local()).attempt(post(server.url("/"))).await;
    assert_eq!(answer(outcome), (200, "bye".to_owned()));
}

#[tokio::test]
async fn where_nobody_listens_nothing_is_sent() {
    let address = Server::start(Answer::ok("")).await.address();
    crate::time::pause(20).await;
    let url = format!("http://{address}/?token=secret");
    let (kind, sent, message) = failure(delivery(local()).attempt(post(url)).await);
    assert_eq!((kind, sent), (FailureKind::Connect, false), "{message}");
    assert!(message.contains("refused") && !message.contains("secret"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_sent_exactly_is_not_sent() {
    let server = Server::start(Answer::ok("")).await;
    let mut smuggling = post(server.url("/"));
    smuggling.headers = vec![("x".into(), "a\r\nb: c".to_owned())];
    let requests =
        [post("nowhere"), post(server.url("/a/../b")), post(server.url("/a b")), smuggling];
    for request in requests {
        let (kind, sent, message) = failure(delivery(local()).attempt(request).await);
        assert_eq!((kind, sent), (FailureKind::Unsendable, false), "{message}");
    }
    let long = post(server.url(&format!("/{}", "a".repeat(70_000))));
    let (kind, sent, message) = failure(delivery(local()).attempt(long).await);
    assert_eq!((kind, sent), (FailureKind::Unsendable, false), "{message}");
    assert!(message.len() < 1000, "{}", message.len());
    assert_eq!(server.connections(), 0);
}
