//! What a node costs the server while nothing happens: one look for everything it waits for, however much that is.
//! It reads the server's own counters, which others that work on it show in, so `scripts/run-tests` runs it alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "it is a test")]

#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};
use flare_testkit::{RecordingDelivery, Service, Trials};

use crate::support::{OwnDatabase, connect};

/// On the newest server alone: the counters of an older one say no more.
fn main() -> ExitCode {
    Trials::on(Service::POSTGRESQL).test("a_node_that_waits_asks_once_a_poll", idle).run()
}

/// A node alone waits for all slots. In a database of its own, as the server counts for a whole one. Of several windows
/// one has to be even: the server adds its vacuum to some, and what connections did before.
async fn idle(uri: String) {
    const WINDOW: Duration = Duration::from_secs(10);
    const WINDOWS: usize = 9;
    const POLL: Duration = Duration::from_millis(200);
    let database = OwnDatabase::new(&uri).await;
    let client = connect(&uri).await;
    let config = PostgresConfig::new(&database.uri).create_missing().poll_every(POLL);
    let backend = PostgresBackend::connect(config).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (_flare, runtime) = Flare::builder(backend).delivery(delivery as _).build().unwrap();
    let running = runtime.spawn();
    let clock = SystemClock::new();
    let commits = async || -> i64 {
        let sql = "SELECT xact_commit FROM pg_stat_database WHERE datname = $1";
        client.query_one(sql, &[&database.name]).await.unwrap().get(0)
    };
    // Beside the polls: the keep-alives, the jobs, the meter.
    let polls = WINDOW.as_millis() / POLL.as_millis();
    let most = i64::try_from(polls * 2).unwrap();
    // Fewer are counted only where some are counted later.
    let polls_done = most / 4;
    let mut seen = Vec::new();
    let mut before = commits().await;
    for _ in 0..WINDOWS {
        clock.sleep(WINDOW).await;
        let now = commits().await;
        let asked = now - before;
        before = now;
        seen.push(asked);
        // The first is while the node takes its slots; what connections do is counted up to ten seconds later.
        if seen.len() > 2 && (polls_done..most).contains(&asked) {
            break;
        }
    }
    drop(running);
    let even = seen.iter().skip(2).any(|asked| (polls_done..most).contains(asked));
    assert!(even, "{seen:?} transactions in {WINDOW:?} each, of {polls} polls");
}
