//! A server that is killed and comes back, on a set of services of its own: watches go on where
//! they were, and nothing that was accepted is gone.

#![allow(clippy::disallowed_methods, reason = "a real server's time passes only by waiting")]
#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flare_backend_mongo::{MongoConfig, MongoLease};
use flare_core::port::{EventKind, Lease, StoreRevision, Write, Written};
use flare_testkit::{Service, Trials};
use futures::StreamExt;
use tokio::time::sleep;

fn main() -> ExitCode {
    Trials::on(Service::MongoDb)
        .test("a_watch_lives_through_an_outage", a_watch_lives_through_an_outage)
        .run()
}

/// A server that only this trial uses, and may kill.
struct Services {
    state: PathBuf,
}

impl Services {
    async fn up() -> Self {
        let name = format!("flare-outage-{}", std::process::id());
        let services = Self { state: std::env::temp_dir().join(name) };
        services.run("up", "mongodb").await;
        services
    }

    async fn uri(&self) -> String {
        // export FLARE_TEST_MONGODB_URI='mongodb://…'
        let line = self.run("env", "mongodb").await;
        line.split('\'').nth(1).expect("an address").to_owned()
    }

    async fn run(&self, command: &'static str, service: &'static str) -> String {
        let state = self.state.clone();
        let run = tokio::task::spawn_blocking(move || run(&state, command, service));
        run.await.expect("the script does it")
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        run(&self.state, "down", "mongodb");
        std::fs::remove_dir_all(&self.state).expect("it is ours");
    }
}

fn run(state: &Path, command: &str, service: &str) -> String {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/services"))
        .args([command, service])
        .env("FLARE_SERVICES_DIR", state)
        .env_remove(Service::MongoDb.variable())
        .output()
        .expect("the script is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn a_watch_lives_through_an_outage(_: String) {
    let services = Services::up().await;
    let config = MongoConfig::new(services.uri().await)
        .create_missing()
        .timeout(Duration::from_secs(1))
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
                Ok(Written::At(revision)) => drop(accepted.insert(revision, value)),
                Ok(met) => panic!("nothing was expected, and yet: {met:?}"),
                Err(error) => assert!(error.is_temporary(), "{error:?}"),
            }
            if is_over {
                break;
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
            let EventKind::Written(entry) = event.kind else { panic!("nothing was deleted") };
            given.push((event.revision, String::from_utf8_lossy(&entry.value).into_owned()));
            if event.key == "last" {
                return given;
            }
        }
    };
    let outages = async {
        for _ in 0..2 {
            sleep(Duration::from_millis(500)).await;
            services.run("kill", "mongodb").await;
            sleep(Duration::from_millis(1500)).await;
            services.run("start", "mongodb").await;
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
