//! The guard acts on the address that is dialled: literals, names, and names that change.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use flare_core::http::{Guard, HttpConfig, HttpDelivery, Resolver};
use flare_core::port::{Delivery, FailureKind, SystemClock};

use crate::server::{Answer, Server};
use crate::{answer, delivery, failure, local, post};

/// Gives one answer after the other, and the last one for ever.
#[derive(Debug)]
struct Scripted {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let answers = Mutex::new(answers.iter().rev().map(parse).collect());
        Arc::new(Self { answers, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Resolver for Scripted {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() })
    }
}

fn resolving(config: HttpConfig, resolver: Arc<Scripted>) -> HttpDelivery {
    HttpDelivery::with_resolver(config, Arc::new(SystemClock::new()), resolver).unwrap()
}

#[tokio::test]
async fn literals_are_judged_however_they_are_written() {
    let server = Server::start(Answer::ok("")).await;
    let port = server.address().port();
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "[64:ff9b::7f00:1]",
        "169.254.169.254",
        "10.0.0.1",
        "①②⑦.0.0.1",
    ] {
        let request = post(format!("http://{host}:{port}/?token=secret"));
        let (kind, sent, message) = failure(delivery(HttpConfig::new()).attempt(request).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{host}: {message}");
        assert!(message.contains("Guard::allow"), "{host}: {message}");
        assert!(!message.contains("secret"), "{message}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn our_own_machine_s_name_is_refused_like_its_address() {
    let server = Server::start(Answer::ok("")).await;
    let port = server.address().port();
    for host in ["localhost", "LOCALHOST"] {
        let request = post(format!("http://{host}:{port}/"));
        let (kind, sent, message) = failure(delivery(HttpConfig::new()).attempt(request).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{host}: {message}");
        assert!(message.contains("localhost") && message.contains("loopback"), "{message}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_is_refused_if_all_its_addresses_are() {
    let resolver = Scripted::new(&[&["169.254.169.254", "10.0.0.1"]]);
    let delivery = resolving(HttpConfig::new(), resolver.clone());
    let hosts = ["metadata.example", "localtest.example.", "localhost."];
    for host in hosts {
        let request = post(format!("https://{host}/?token=secret"));
        let (kind, sent, message) = failure(delivery.attempt(request).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{message}");
        let expected = format!("{host} resolves to 169.254.169.254: 169.254.169.254 is a cloud");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.contains("169.254.169.254/32 in Guard::allow"), "{message}");
    }
    assert_eq!(resolver.asked(), hosts);
}

#[tokio::test]
async fn of_several_addresses_only_those_that_pass_are_dialled() {
    let server = Server::start(Answer::ok("")).await;
    let port = server.address().port();
    let trap = Server::at(([127, 0, 0, 2], port).into(), None, |_| Answer::ok("")).await;
    let resolver = Scripted::new(&[&["127.0.0.2", "10.0.0.1", "127.0.0.1"]]);
    let delivery = resolving(local(), resolver);
    answer(delivery.attempt(post(format!("http://both.example:{port}/"))).await);
    assert_eq!((server.connections(), trap.connections()), (1, 0));
}

#[tokio::test]
async fn a_name_that_changes_between_check_and_use_gains_nothing() {
    let server = Server::start(Answer::Close(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_owned(),
    ))
    .await;
    let port = server.address().port();
    let trap = Server::at(([127, 0, 0, 2], port).into(), None, |_| Answer::ok("")).await;
    // Asked once it is allowed; asked again it leads elsewhere.
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let delivery = resolving(local(), resolver.clone());
    let url = format!("http://rebind.example:{port}/");
    answer(delivery.attempt(post(url.clone())).await);
    assert_eq!(resolver.asked().len(), 1, "one lookup is judged and dialled");
    for _ in 0..3 {
        let (kind, sent, message) = failure(delivery.attempt(post(url.clone())).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{message}");
    }
    assert_eq!((server.requests().len(), trap.connections()), (1, 0));
}

#[tokio::test]
async fn what_is_denied_stays_closed() {
    let server = Server::start(Answer::ok("")).await;
    let guard = Guard::default().allow("127.0.0.1").unwrap().deny("127.0.0.0/8").unwrap();
    let delivery = delivery(HttpConfig::new().guard(guard));
    let (kind, _, message) = failure(delivery.attempt(post(server.url("/"))).await);
    assert_eq!(kind, FailureKind::Refused);
    assert!(message.contains("127.0.0.0/8, which Guard::deny refuses"), "{message}");
}

#[tokio::test]
async fn a_name_without_address_is_a_dns_failure() {
    let delivery = resolving(HttpConfig::new(), Scripted::new(&[&[]]));
    let outcome = delivery.attempt(post("http://nobody.example/?token=secret")).await;
    let (kind, sent, message) = failure(outcome);
    assert_eq!((kind, sent), (FailureKind::Dns, false), "{message}");
    assert!(message.contains("nobody.example has no address"), "{message}");
    // The system's resolver, whatever network there is: this name never exists (RFC 6761).
    let outcome = crate::delivery(HttpConfig::new()).attempt(post("http://a.invalid/")).await;
    let (kind, sent, message) = failure(outcome);
    assert_eq!((kind, sent), (FailureKind::Dns, false), "{message}");
}
