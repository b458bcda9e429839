//! `HttpDelivery` over real sockets on 127.0.0.1, against servers that answer as scripted.
#![cfg(feature = "http")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "all of this is a test")]

mod conformance;
mod exchange;
mod guard;
mod names;
mod phases;
mod pool;
mod proxy;
mod server;
mod time;
mod tls;

use std::sync::Arc;

use flare_core::http::{Guard, HttpConfig, HttpDelivery};
use flare_core::model::{Action, DocumentUrl, Method, Revision, SubscriptionId, Version};
use flare_core::port::{DeliveryOutcome, DeliveryRequest, FailureKind, Reply, SystemClock};

/// Settings that may reach this machine.
fn local() -> HttpConfig {
    HttpConfig::new().guard(Guard::default().allow("127.0.0.1").unwrap())
}

fn delivery(config: HttpConfig) -> HttpDelivery {
    HttpDelivery::new(config, Arc::new(SystemClock::new())).unwrap()
}

fn post(url: impl Into<String>) -> DeliveryRequest {
    DeliveryRequest::new(
        SubscriptionId::from_bytes([1; 16]),
        DocumentUrl::parse("https://origin.example/users/1").unwrap(),
        Version::live(Revision::new(1)),
        Action::Create,
        Method::Post,
        url,
    )
}

#[track_caller]
fn answer(outcome: DeliveryOutcome) -> (u16, String) {
    assert!(outcome.sent, "{outcome:?}");
    match outcome.reply {
        Reply::Answered { status, excerpt, .. } => {
            (status, String::from_utf8(excerpt.to_vec()).unwrap())
        }
        other => panic!("no answer but {other:?}"),
    }
}

/// The kind of a failure, whether the request may have left, and the message.
#[track_caller]
fn failure(outcome: DeliveryOutcome) -> (FailureKind, bool, String) {
    match outcome.reply {
        Reply::Failed { kind, message } => (kind, outcome.sent, message),
        other => panic!("no failure but {other:?}"),
    }
}
