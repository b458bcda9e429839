//! A server that is killed and comes back, on a set of services of its own: watches go on where
//! they were, and nothing that was accepted is gone.

#![allow(clippy::disallowed_methods, reason = "a real server's time passes only by waiting")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::own_server::OwnServer;
use flare_backend_mongo::{MongoConfig, MongoLease};
use flare_core::port::{KeyChange, Lease, StoreRevision, Write, Written};
use flare_testkit::Trials;
use futures::StreamExt;
use tokio::time::sleep;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    all.of("lease_outage").test("a_watch_lives_through_an_outage", a_watch_lives_through_an_outage)
}

async fn a_watch_lives_through_an_outage(_: String) {
    let server = OwnServer::start("flare-outage").await;
    let config = MongoConfig::new(&server.uri)
        .create_missing()
        .timeout(Duration::from_secs(5))
        .poll_every(Duration::from_millis(20));
    let here = MongoLease::connect(config.clone()).await.expect("the server is there");
    let there = MongoLease::connect(config).await.expect("the server is there");

    let over = AtomicBool::new(false);
    let writing = async {
        let mut accepted = BTreeMap::new();
        for round in 0.. {
            let is_over = over.load(Ordering::Relaxed);
            let (key, value) = (if is_over { "last" } else { "key" }, round.to_string());
            match there.write(Write::new(key, value.clone())).await {
                Ok(Written::At(revision)) => {
                    accepted.insert(revision, value);
                    if is_over {
                        break;
                    }
                }
                Ok(met) => panic!("nothing was expected, and yet: {met:?}"),
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
            sleep(Duration::from_millis(20)).await;
        }
        accepted
    };
    let watching = async {
        let mut watch = here.watch("", StoreRevision::default());
        let mut given = Vec::new();
        loop {
            let event = watch.next().await.expect("a watch goes on").expect("an outage is no end");
            let KeyChange::Written(entry) = event.kind else { panic!("nothing was deleted") };
            given.push((event.revision, String::from_utf8_lossy(&entry.value).into_owned()));
            if event.key == "last" {
                return given;
            }
        }
    };
    let outages = async {
        for _ in 0..2 {
            sleep(Duration::from_millis(500)).await;
            server.kill().await;
            sleep(Duration::from_millis(1500)).await;
            server.revive().await;
        }
        sleep(Duration::from_secs(1)).await;
        over.store(true, Ordering::Relaxed);
    };
    let (mut accepted, given, ()) = tokio::join!(writing, watching, outages);

    assert!(accepted.len() > 20, "{} writes were accepted", accepted.len());
    for (expected, (revision, value)) in (1..).zip(given) {
        assert_eq!(revision.get(), expected, "each change is given, and given once");
        if let Some(accepted) = accepted.remove(&revision) {
            assert_eq!(value, accepted);
        }
    }
    assert!(accepted.is_empty(), "accepted and never seen: {accepted:?}");
}
