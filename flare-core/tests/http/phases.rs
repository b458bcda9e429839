//! Which parts of an attempt's time are told apart.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_core::http::{HttpDelivery, Resolver};
use flare_core::model::Timestamp;
use flare_core::port::Delivery;
use flare_testkit::ManualClock;

use crate::server::{Answer, Server};
use crate::{delivery, local, post};

/// Knows every name to be here, after forty milliseconds.
#[derive(Debug)]
struct Slow(ManualClock);

#[async_trait]
impl Resolver for Slow {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.0.advance(Duration::from_millis(40)).await;
        Ok(vec![[127, 0, 0, 1].into()])
    }
}

#[tokio::test]
async fn looking_up_and_connecting_are_told_of_the_attempt_that_did_it() {
    let server = Server::start(Answer::ok("")).await;
    let clock = ManualClock::new(Timestamp::from_unix_seconds(1_700_000_000));
    let resolver = Arc::new(Slow(clock.clone()));
    let delivery = HttpDelivery::with_resolver(local(), Arc::new(clock), resolver).unwrap();
    let url = format!("http://client.example:{}/", server.address().port());
    let first = delivery.attempt(post(url.clone())).await;
    assert!(first.sent, "{first:?}");
    // The clock stands still but for the look-up.
    assert_eq!(first.phases.dns, Some(Duration::from_millis(40)), "{first:?}");
    assert_eq!(first.phases.connect, Some(Duration::ZERO), "{first:?}");
    assert_eq!(first.phases.tls, None, "it is not secured: {first:?}");
    assert_eq!(first.phases.first_byte, Some(Duration::ZERO), "{first:?}");
    assert_eq!(first.duration, Duration::from_millis(40));
    let second = delivery.attempt(post(url)).await;
    assert_eq!(
        (second.phases.dns, second.phases.connect),
        (None, None),
        "the connection was there"
    );
    assert_eq!(second.phases.first_byte, Some(Duration::ZERO), "{second:?}");
}

#[tokio::test]
async fn an_attempt_without_an_answer_tells_of_none() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = delivery(local()).attempt(post(format!("http://{closed}/"))).await;
    assert!(!refused.sent, "{refused:?}");
    assert_eq!((refused.phases.connect, refused.phases.first_byte), (None, None), "{refused:?}");
}
