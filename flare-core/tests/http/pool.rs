//! Connections are used again, never in the way of each other, and never to send twice.

use std::time::Duration;

use flare_core::port::{Delivery, FailureKind};
use futures::future::join_all;

use crate::server::{Answer, Server};
use crate::time::pause;
use crate::{answer, delivery, failure, local, post};

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::start(Answer::ok("thanks")).await;
    let delivery = delivery(local());
    for _ in 0..5 {
        answer(delivery.clone().attempt(post(server.url("/"))).await);
        pause(5).await;
    }
    assert_eq!((server.requests().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn also_when_the_excerpt_was_cut_and_the_rest_is_there() {
    let server = Server::start(Answer::ok(&"x".repeat(2000))).await;
    let delivery = delivery(local());
    for limit in [0, 1, 1999, 2000] {
        let mut request = post(server.url("/"));
        request.excerpt_limit = limit;
        assert_eq!(answer(delivery.attempt(request).await).1.len(), limit);
        pause(10).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_rest_beyond_the_drain_limit_costs_the_connection() {
    let server = Server::start(Answer::ok(&"x".repeat(2_000_000))).await;
    let delivery = delivery(local().drain_limit(1000));
    for _ in 0..2 {
        let mut request = post(server.url("/"));
        request.excerpt_limit = 10;
        answer(delivery.attempt(request).await);
        pause(10).await;
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn no_idle_connections_means_none_is_used_twice() {
    let server = Server::start(Answer::ok("")).await;
    let delivery = delivery(local().idle_per_host(0));
    for _ in 0..3 {
        answer(delivery.attempt(post(server.url("/"))).await);
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn an_idle_connection_is_let_go_in_time() {
    let server = Server::start(Answer::ok("")).await;
    let delivery = delivery(local().idle_timeout(Duration::from_millis(50)));
    answer(delivery.attempt(post(server.url("/"))).await);
    pause(200).await;
    answer(delivery.attempt(post(server.url("/"))).await);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_connection_the_client_closed_meanwhile_is_not_noticed_by_anybody() {
    let close = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned();
    let server = Server::start(Answer::Close(close)).await;
    let delivery = delivery(local());
    for count in 1..=20 {
        // It closes right after its answer without having said so.
        let outcome = delivery.attempt(post(server.url("/"))).await;
        assert_eq!(answer(outcome).0, 200);
        assert_eq!(server.requests().len(), count, "one request each");
        pause(10).await;
    }
}

#[tokio::test]
async fn a_kept_connection_that_breaks_under_a_request_is_not_tried_again() {
    let script = |number: usize| match number {
        0 => Answer::ok(""),
        _ => Answer::Close(String::new()),
    };
    let server = Server::scripted(script).await;
    let delivery = delivery(local());
    answer(delivery.attempt(post(server.url("/"))).await);
    pause(10).await;
    let (kind, sent, message) = failure(delivery.attempt(post(server.url("/"))).await);
    assert_eq!((kind, sent), (FailureKind::Broken, true), "{message}");
    assert_eq!((server.requests().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn what_hangs_holds_up_nothing_else() {
    let hanging = Server::start(Answer::Hang(String::new())).await;
    let fine = Server::start(Answer::ok("")).await;
    let delivery = delivery(local());
    let slow = join_all((0..50).map(|_| {
        let mut request = post(hanging.url("/"));
        request.timeout = Duration::from_secs(2);
        delivery.attempt(request)
    }));
    let quick = async {
        while hanging.requests().len() < 50 {
            pause(5).await;
        }
        join_all((0..100).map(|_| delivery.attempt(post(fine.url("/"))))).await
    };
    let (slow, quick) = futures::join!(slow, quick);
    for outcome in quick {
        assert!(outcome.duration < Duration::from_millis(1500), "{outcome:?}");
        assert_eq!(answer(outcome).0, 200);
    }
    for outcome in slow {
        let (kind, sent, message) = failure(outcome);
        assert_eq!((kind, sent), (FailureKind::Timeout, true), "{message}");
    }
}
