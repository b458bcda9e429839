//! Names are looked up without the host's threads, once for all, and those that no server answers
//! for cost nobody else anything. The name servers are real ones, on 127.0.0.1.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flare_core::http::{HttpConfig, HttpDelivery};
use flare_core::port::{Delivery, FailureKind, SystemClock};
use flare_testkit::{NameAnswer, NameServer};
use tokio::runtime::Builder;

use crate::server::{Answer, Server};
use crate::time::pause;
use crate::{answer, delivery, failure, local, post};

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Knows everything below `live.test` to be here for a minute, and nothing of `nobody.test`; keeps
/// silent about the rest.
fn name_server() -> NameServer {
    NameServer::start(|name| match name {
        brief if brief.ends_with("brief.live.test") => NameAnswer::At(vec![HERE], 0),
        live if live.ends_with("live.test") => NameAnswer::At(vec![HERE], 60),
        "metadata.test" => NameAnswer::At(vec![[169, 254, 169, 254].into()], 60),
        "nobody.test" => NameAnswer::Unknown(60),
        "broken.test" => NameAnswer::Failure,
        _ => NameAnswer::Silence,
    })
}

/// Settings by which every attempt needs a connection, and so an address.
fn asking(server: &NameServer) -> HttpConfig {
    local().name_servers([server.address()]).idle_per_host(0)
}

/// 600 attempts at names that nobody answers for, under way.
async fn crowd(delivery: &HttpDelivery) -> Vec<tokio::task::JoinHandle<()>> {
    let attempt = |number: usize| {
        let delivery = delivery.clone();
        tokio::spawn(async move {
            let request = post(format!("http://client{number}.mute.test/"));
            failure(delivery.attempt(request).await);
        })
    };
    let crowd = (0..600).map(attempt).collect();
    tokio::task::yield_now().await;
    crowd
}

/// How long so many attempts take, one after the other, at twenty clients.
async fn healthy(delivery: &HttpDelivery, port: u16, names: &str) -> Duration {
    #[allow(clippy::disallowed_methods, reason = "this measures")]
    let started = Instant::now();
    for number in 0..100 {
        let url = format!("http://client{}.{names}:{port}/", number % 20);
        answer(delivery.attempt(post(url)).await);
    }
    started.elapsed()
}

#[test]
fn names_that_do_not_resolve_cost_others_nothing_and_leave_the_host_s_threads_free() {
    // A host whose blocking threads are few.
    let runtime =
        Builder::new_multi_thread().worker_threads(2).max_blocking_threads(1).enable_all().build();
    runtime.unwrap().block_on(async {
        let (clients, names) = (Server::start(Answer::ok("")).await, name_server());
        let delivery = delivery(asking(&names));
        let port = clients.address().port();
        // What is known about these is good for a second: they are asked for again and again.
        healthy(&delivery, port, "brief.live.test").await;
        pause(1_100).await;
        let alone = healthy(&delivery, port, "brief.live.test").await;
        pause(1_100).await;

        let crowd = crowd(&delivery).await;
        let blocking = tokio::task::spawn_blocking(|| ());
        let asked = names.questions().len();
        let beside = healthy(&delivery, port, "brief.live.test").await;
        assert!(blocking.is_finished(), "the host's thread is taken");
        assert!(crowd.iter().any(|attempt| !attempt.is_finished()), "they were all there");
        let again =
            names.questions()[asked..].iter().filter(|asked| asked.contains("brief")).count();
        assert!(again >= 40, "their names were not asked for again but {again} times");
        // A busy machine takes its share; had each of them to wait for one of the others' turns, it
        // would be 6 s.
        assert!(beside < alone * 5 + Duration::from_secs(4), "{beside:?} instead of {alone:?}");
        // Names that nobody has heard of may wait a little among so many.
        healthy(&delivery, port, "new.live.test").await;
        for attempt in crowd {
            attempt.await.unwrap();
        }
    });
}

#[tokio::test]
async fn a_name_is_asked_for_once_for_all_attempts_and_remembered() {
    let (clients, names) = (Server::start(Answer::ok("")).await, name_server());
    let delivery = delivery(asking(&names));
    let url = format!("http://client.live.test:{}/", clients.address().port());
    let attempts = (0..50).map(|_| delivery.attempt(post(url.clone())));
    futures::future::join_all(attempts).await.into_iter().for_each(|outcome| drop(answer(outcome)));
    answer(delivery.attempt(post(url.to_uppercase().replace("HTTP", "http"))).await);
    assert_eq!(clients.connections(), 51, "every attempt needed an address");
    let mut questions = names.questions();
    questions.sort();
    questions.dedup();
    assert_eq!(questions, ["A client.live.test", "AAAA client.live.test"]);
    assert!(names.questions().len() <= 4, "{:?}", names.questions());
}

#[tokio::test]
async fn a_name_without_addresses_is_explained_and_remembered_too() {
    let names = name_server();
    let delivery = delivery(asking(&names).connect_timeout(Duration::from_secs(2)));
    let server = names.address();
    for (host, expected) in [
        ("nobody.test", "nobody.test does not resolve: there is no such name".to_owned()),
        (
            "broken.test",
            format!(
                "broken.test does not resolve: the name server {server} answered \"Server Failure\""
            ),
        ),
    ] {
        for _ in 0..2 {
            let outcome = delivery.attempt(post(format!("http://{host}/?token=secret"))).await;
            let (kind, sent, message) = failure(outcome);
            assert_eq!((kind, sent), (FailureKind::Dns, false), "{message}");
            assert!(message.ends_with(&expected), "{message}");
        }
    }
    let asked = |name: &str| names.questions().iter().filter(|asked| asked.ends_with(name)).count();
    assert!(asked("nobody.test") <= 2, "{:?}", names.questions());
    let outcome = delivery.attempt(post("http://mute.test/")).await;
    assert!(outcome.duration < Duration::from_secs(2), "{outcome:?}");
    let (kind, sent, message) = failure(outcome);
    assert_eq!((kind, sent), (FailureKind::Dns, false), "{message}");
    assert!(message.contains("mute.test does not resolve: "), "{message}");
    assert!(message.contains("name server") && message.contains("answer"), "{message}");
}

#[tokio::test]
async fn remembered_addresses_are_judged_like_new_ones() {
    let names = name_server();
    let delivery = delivery(asking(&names));
    for _ in 0..2 {
        let (kind, sent, message) =
            failure(delivery.attempt(post("http://metadata.test/latest")).await);
        assert_eq!((kind, sent), (FailureKind::Refused, false), "{message}");
        assert!(message.starts_with("metadata.test resolves to 169.254.169.254"), "{message}");
    }
    // One memory serves deliveries with guards of their own: what is remembered is no verdict.
    let clients = Server::start(Answer::ok("")).await;
    let url = format!("http://client.live.test:{}/", clients.address().port());
    let closed = HttpConfig::new().name_servers([names.address()]);
    let closed = HttpDelivery::new(closed, Arc::new(SystemClock::new())).unwrap();
    for _ in 0..2 {
        assert_eq!(failure(closed.attempt(post(url.clone())).await).0, FailureKind::Refused);
    }
    assert_eq!(clients.connections(), 0);
}

#[tokio::test]
async fn a_second_server_is_asked_if_the_first_is_silent() {
    let mute = NameServer::start(|_| NameAnswer::Silence);
    let (clients, names) = (Server::start(Answer::ok("")).await, name_server());
    let config = local().name_servers([mute.address(), names.address()]);
    let url = format!("http://client.live.test:{}/", clients.address().port());
    answer(delivery(config).attempt(post(url)).await);
}
