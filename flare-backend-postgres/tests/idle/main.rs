//! What a node costs the server while nothing happens: one look for everything it waits for, however many lanes that is
//! for. Each statement is counted by its text on its way to the server. It measures time, so `scripts/run-tests` runs it
//! alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

#[path = "../support/mod.rs"]
mod support;
mod wire;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use flare_backend_postgres::{PostgresBackend, PostgresConfig};
use flare_core::model::Placement;
use flare_core::port::{Clock, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{RecordingDelivery, Service, Trials};

use crate::support::Scratch;
use crate::wire::Wire;

/// On the newest server alone: an older one is asked the same.
fn main() -> ExitCode {
    Trials::on(Service::POSTGRESQL).test("a_node_that_waits_asks_once_a_poll", idle).run()
}

/// How the poll begins, for queues and keys or for one of them.
const POLLS: [&str; 2] =
    ["SELECT (SELECT array_agg(k.name) FROM", "SELECT NULL::text[], (SELECT revision"];

/// A node alone waits for all slots, and for a queue of each lane.
async fn idle(uri: String) {
    const WINDOW: Duration = Duration::from_secs(10);
    const WINDOWS: usize = 4;
    const POLL: Duration = Duration::from_millis(200);
    const SUBSCRIPTIONS: usize = 12;
    const LANES: u32 = 8;
    let scratch = Scratch::new(&uri);
    let (scheme, rest) = uri.split_once("://").unwrap();
    let (server, _) =
        rest.rsplit_once('@').map_or(rest, |(_, place)| place).split_once('/').unwrap();
    let wire = Wire::to(server.to_owned()).await;
    let rest = rest.replacen(server, &wire.address().to_string(), 1);
    let config = PostgresConfig::new(format!("{scheme}://{rest}")).schema(&scratch.name);
    let config = config.create_missing().poll_every(POLL);
    let backend = PostgresBackend::connect(config).await.unwrap();
    let delivery = Arc::new(RecordingDelivery::new(Arc::new(SystemClock::new())));
    let (flare, runtime) = Flare::builder(backend)
        .settings(Settings::default().placement(Placement::Isolated))
        .delivery(delivery as _)
        .build()
        .unwrap();
    let running = runtime.spawn();
    let users = NewResource::new("http://api.example/users/{id}").change_field("rev");
    let users = flare.create_resource(users).await.unwrap();
    for n in 0..SUBSCRIPTIONS {
        let client = SubscriptionSpec::post(format!("http://client.example/{n}"));
        let client = client.concurrency(LANES).lanes(LANES);
        flare.create_subscription(users.id, client).await.unwrap();
    }
    let clock = SystemClock::new();
    while flare.node().lanes < SUBSCRIPTIONS * LANES as usize {
        clock.sleep(POLL).await;
    }
    // The first window is while they begin.
    clock.sleep(WINDOW).await;
    wire.take();
    let polls = u64::try_from(WINDOW.as_millis() / POLL.as_millis()).unwrap();
    let mut all = 0;
    for _ in 0..WINDOWS {
        clock.sleep(WINDOW).await;
        let runs = wire.take();
        let polled = runs.iter().filter(|(sql, _)| POLLS.iter().any(|poll| sql.starts_with(poll)));
        let polled: u64 = polled.map(|(_, runs)| runs).sum();
        // One more if the window begins with one; fewer where the machine was busy.
        assert!((polls / 4..=polls + 1).contains(&polled), "{polled} polls of {polls}: {runs:#?}");
        let others = runs.values().sum::<u64>() - polled;
        eprintln!("{polled} polls of {polls}, {others} other statements");
        all += others;
    }
    // Beside the polls: the keep-alives, the jobs, the meter, what lanes look for now and then.
    let others = all / WINDOWS as u64;
    assert!(others < polls, "{others} other statements in {WINDOW:?}, of {polls} polls");
    drop(running);
}
