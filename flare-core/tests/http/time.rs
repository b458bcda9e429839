//! An attempt ends in time, wherever it is, and knows whether anything can have been sent.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::http::{HttpDelivery, Resolver};
use flare_core::model::Timestamp;
use flare_core::port::{Clock, Delivery, DeliveryRequest, FailureKind, SystemClock};
use flare_testkit::ManualClock;
use tokio::net::TcpListener;

use crate::server::{Answer, Server};
use crate::{delivery, failure, local, post};

/// Waits a little, in real time.
pub(crate) async fn pause(millis: u64) {
    let clock = SystemClock::new();
    clock.sleep_until(clock.now() + Duration::from_millis(millis)).await;
}

fn hurried(url: String, millis: u64) -> DeliveryRequest {
    let mut request = post(url);
    request.timeout = Duration::from_millis(millis);
    request
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_a_timeout_that_was_sent() {
    for text in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n"] {
        let server = Server::start(Answer::Hang(text.to_owned())).await;
        let outcome = delivery(local()).attempt(hurried(server.url("/?t=secret"), 150)).await;
        assert!(outcome.duration >= Duration::from_millis(150), "{outcome:?}");
        assert!(outcome.duration < Duration::from_secs(5), "{outcome:?}");
        let (kind, sent, message) = failure(outcome);
        assert_eq!((kind, sent), (FailureKind::Timeout, true), "{text:?}");
        assert_eq!(message, format!("{}: no answer within 150ms", server.address()));
    }
}

#[tokio::test]
async fn once_the_status_is_there_a_body_that_stalls_changes_nothing() {
    let head = |status: u16| format!("HTTP/1.1 {status} It\r\ncontent-length: 5\r\n\r\n");
    for (status, body) in [(200, ""), (200, "ab"), (410, "gon"), (503, "bus")] {
        // Whether the attempt has more time than a body is given, or less.
        for timeout in [150, 60_000] {
            let server = Server::start(Answer::Hang(head(status) + body)).await;
            let outcome = delivery(local()).attempt(hurried(server.url("/"), timeout)).await;
            assert!(outcome.duration < Duration::from_secs(20), "{outcome:?}");
            assert_eq!(crate::answer(outcome), (status, body.to_owned()));
        }
    }
}

#[tokio::test]
async fn once_the_excerpt_is_full_nothing_is_waited_for() {
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".to_owned();
    let server = Server::start(Answer::Hang(text)).await;
    let mut request = hurried(server.url("/"), 5_000);
    request.excerpt_limit = 2;
    let outcome = delivery(local()).attempt(request).await;
    assert!(outcome.duration < Duration::from_secs(4), "{outcome:?}");
    assert_eq!(crate::answer(outcome), (200, "ab".to_owned()));
}

#[tokio::test]
async fn a_handshake_that_hangs_has_sent_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    for (connect, attempt, message) in [
        (100, 5_000, "no connection within 100ms"),
        (5_000, 100, "no connection within the attempt's time"),
    ] {
        let delivery = delivery(local().connect_timeout(Duration::from_millis(connect)));
        let outcome = delivery.attempt(hurried(url.clone(), attempt)).await;
        assert!(outcome.duration < Duration::from_secs(3), "{outcome:?}");
        let (kind, sent, told) = failure(outcome);
        assert_eq!((kind, sent), (FailureKind::Timeout, false), "{told}");
        assert!(told.contains(message), "{told}");
    }
}

#[derive(Debug)]
struct NeverResolves;

#[async_trait]
impl Resolver for NeverResolves {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_lookup_that_hangs_has_sent_nothing() {
    let clock = Arc::new(SystemClock::new());
    let delivery = HttpDelivery::with_resolver(local(), clock, Arc::new(NeverResolves)).unwrap();
    let outcome = delivery.attempt(hurried("http://slow.example/".to_owned(), 100)).await;
    let (kind, sent, message) = failure(outcome);
    assert_eq!((kind, sent), (FailureKind::Timeout, false), "{message}");
    assert!(message.starts_with("slow.example: "), "{message}");
}

#[tokio::test]
async fn time_is_the_clock_s_and_nobody_else_s() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let hour = Duration::from_secs(3600);
    let server = Server::start(Answer::Hang(String::new())).await;
    let waiting = HttpDelivery::new(local(), Arc::new(clock.clone())).unwrap();
    let mut request = post(server.url("/"));
    request.timeout = hour;
    let attempt = tokio::spawn(async move { waiting.attempt(request).await });
    while server.requests().is_empty() {
        pause(5).await;
    }
    clock.advance(hour).await;
    let outcome = attempt.await.unwrap();
    assert_eq!((outcome.duration, failure(outcome).1), (hour, true));

    let config = local().connect_timeout(hour);
    let resolver = Arc::new(NeverResolves);
    let lost = HttpDelivery::with_resolver(config, Arc::new(clock.clone()), resolver).unwrap();
    let mut request = post("http://slow.example/");
    request.timeout = hour * 2;
    let attempt = tokio::spawn(async move { lost.attempt(request).await });
    while clock.sleepers() < 2 {
        pause(5).await;
    }
    clock.advance(hour).await;
    let (kind, sent, message) = failure(attempt.await.unwrap());
    assert_eq!((kind, sent), (FailureKind::Timeout, false));
    assert_eq!(message, "slow.example: no connection within 1h");
}

#[tokio::test]
async fn setting_the_wall_clock_ends_no_attempt_and_keeps_none_alive() {
    let day = Duration::from_secs(86_400);
    for (start, set) in
        [(Timestamp::EPOCH, Timestamp::EPOCH + day), (Timestamp::EPOCH + day, Timestamp::EPOCH)]
    {
        let clock = ManualClock::new(start);
        let server = Server::scripted(|number| match number {
            0 => Answer::Hang(String::new()),
            _ => Answer::ok(""),
        })
        .await;
        let delivery = HttpDelivery::new(local(), Arc::new(clock.clone())).unwrap();
        let waiting = delivery.clone();
        let request = hurried(server.url("/"), 10_000);
        let attempt = tokio::spawn(async move { waiting.attempt(request).await });
        while server.requests().is_empty() {
            pause(5).await;
        }
        clock.set_wall(set);
        // Another attempt is made from beginning to end, so the first had its turns.
        crate::answer(delivery.attempt(hurried(server.url("/"), 10_000)).await);
        assert!(!attempt.is_finished(), "nothing has passed but a time of day");
        clock.advance(Duration::from_secs(10)).await;
        assert_eq!(failure(attempt.await.unwrap()).0, FailureKind::Timeout);

        // Nor does it move the end of what is still connecting.
        let config = local().connect_timeout(Duration::from_secs(5));
        let clock_of_it = Arc::new(clock.clone());
        let lost =
            HttpDelivery::with_resolver(config, clock_of_it, Arc::new(NeverResolves)).unwrap();
        let request = hurried("http://slow.example/".to_owned(), 10_000);
        let attempt = tokio::spawn(async move { lost.attempt(request).await });
        while clock.sleepers() < 2 {
            pause(5).await;
        }
        clock.set_wall(start);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!attempt.is_finished());
        clock.advance(Duration::from_secs(5)).await;
        let (kind, sent, message) = failure(attempt.await.unwrap());
        assert_eq!((kind, sent), (FailureKind::Timeout, false));
        assert_eq!(message, "slow.example: no connection within 5s");
    }
}

#[tokio::test]
async fn no_time_at_all_is_a_timeout() {
    let server = Server::start(Answer::ok("")).await;
    let (kind, _, message) = failure(delivery(local()).attempt(hurried(server.url("/"), 0)).await);
    assert_eq!(kind, FailureKind::Timeout, "{message}");
}

#[test]
fn settings_without_sense_are_named() {
    for (config, field) in [
        (local().connect_timeout(Duration::ZERO), "connect_timeout"),
        (local().idle_timeout(Duration::MAX), "idle_timeout"),
        (local().proxy("not a url with secret"), "proxy"),
        (local().proxy("socks5://user:secret@proxy:1080"), "proxy"),
        (local().roots_pem("secret"), "roots_pem"),
        (local().identity_pem("secret"), "identity_pem"),
    ] {
        let error = HttpDelivery::new(config, Arc::new(SystemClock::new())).unwrap_err();
        assert_eq!(error.field(), Some(field), "{error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}
