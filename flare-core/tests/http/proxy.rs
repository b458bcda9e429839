//! The proxy that was configured is used, and no other.

use std::process::Command;

use flare_core::http::HttpConfig;
use flare_core::port::{Delivery, FailureKind};

use crate::server::{Answer, Server};
use crate::{answer, delivery, failure, local, post};

#[tokio::test]
async fn a_configured_proxy_gets_everything_and_is_not_judged() {
    let proxy = Server::start(Answer::ok("by proxy")).await;
    let url = format!("http://user:hunter2@{}", proxy.address());
    let delivery = delivery(HttpConfig::new().proxy(url));
    let outcome = delivery.attempt(post("http://client.example/hook?x=1")).await;
    assert_eq!(answer(outcome), (200, "by proxy".to_owned()));
    let seen = proxy.requests().pop().unwrap();
    assert!(seen.starts_with("POST http://client.example/hook?x=1 HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains("proxy-authorization: Basic dXNlcjpodW50ZXIy\r\n"), "{seen}");
    assert!(seen.contains("host: client.example\r\n"), "{seen}");
    assert!(!format!("{delivery:?}").contains("hunter2"));
}

#[tokio::test]
async fn behind_a_proxy_literals_and_localhost_are_still_judged() {
    let proxy = Server::start(Answer::ok("")).await;
    let delivery = delivery(HttpConfig::new().proxy(format!("http://{}", proxy.address())));
    for url in ["http://127.0.0.1/", "http://169.254.169.254/", "http://localhost:8080/"] {
        let (kind, sent, message) = failure(delivery.attempt(post(url)).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{message}");
    }
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn a_tunnel_the_proxy_refuses_has_sent_nothing() {
    let no = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n".to_owned();
    let proxy = Server::start(Answer::Close(no)).await;
    let delivery = delivery(HttpConfig::new().proxy(format!("http://{}", proxy.address())));
    let outcome = delivery.attempt(post("https://client.example/?token=secret")).await;
    let (kind, sent, message) = failure(outcome);
    assert_eq!((kind, sent), (FailureKind::Connect, false), "{message}");
    assert!(!message.contains("secret"), "{message}");
    assert!(proxy.requests()[0].starts_with("CONNECT client.example:443 HTTP/1.1\r\n"));
}

const TARGET: &str = "FLARE_TEST_TARGET";

/// The environment of a process is read-only here, so a second process gets another one.
#[tokio::test(flavor = "multi_thread")]
async fn the_environment_s_proxies_are_ignored() {
    let proxy = Server::start(Answer::ok("by proxy")).await;
    let server = Server::start(Answer::ok("direct")).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "proxy::child_delivers_to_the_target"]).env(TARGET, server.url("/"));
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        child.env(name, format!("http://{}", proxy.address()));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((server.requests().len(), proxy.connections()), (1, 0));
}

#[tokio::test]
async fn child_delivers_to_the_target() {
    // Outside of the test above there is no target, and nothing to do.
    let Ok(target) = std::env::var(TARGET) else { return };
    assert_eq!(answer(delivery(local()).attempt(post(target)).await).1, "direct");
}
