//! Rounds in which something is killed while a host commits and a node tells its client. In the end what a host was told
//! is committed is there; its client holds exactly what is there, was never told what was not committed, and of no order
//! what is older than it knew.

use std::time::{Duration, Instant};

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{Answer, HttpTarget, Trials};

use crate::books::{Books, TABLES, drawn, held};
use crate::change::told;
use crate::process::{Process, Role};
use crate::shop::Shop;
use crate::support::Scratch;

/// How long a lease holds unless its settings say otherwise.
const LEASE_TIME: Duration = Duration::from_secs(15);
/// Longer than it takes until something is told, also by a node that waits for the lease of the one before it, and of
/// what that one was about to tell.
const PATIENCE: Duration = Duration::from_secs(120);
/// A host rests so long after each transaction where others are killed several times: else it commits some thousands
/// each time while the node waits for its lease.
const REST: u64 = 20;

/// Adds what is tried here.
pub(crate) fn trials(all: Trials) -> Trials {
    let all = all.of("rounds").test("a_host_of_tokio_postgres_that_is_killed", host_of_tokio);
    let all = if cfg!(feature = "sqlx") {
        all.test("a_host_of_sqlx_that_is_killed", host_of_sqlx)
    } else {
        all
    };
    let all = all.test("a_node_that_is_killed", node);
    let all = match std::env::var("FLARE_CRASH_PSQL") {
        Ok(_) => all.test("a_psql_that_is_killed", host_of_psql),
        Err(_) => all,
    };
    match std::env::var("FLARE_CRASH_SERVER") {
        Ok(_) => all.test("a_server_that_is_killed", server),
        Err(_) => all,
    }
}

/// What is killed each round.
#[derive(Clone, Copy, PartialEq)]
enum Killed {
    Host,
    Node,
    Server,
}

async fn host_of_tokio(uri: String) {
    rounds(uri, "tokio", Killed::Host).await;
}

async fn host_of_sqlx(uri: String) {
    rounds(uri, "sqlx", Killed::Host).await;
}

async fn host_of_psql(uri: String) {
    rounds(uri, "psql", Killed::Host).await;
}

async fn node(uri: String) {
    rounds(uri, "tokio", Killed::Node).await;
}

async fn server(uri: String) {
    rounds(uri, "tokio", Killed::Server).await;
}

fn asked(name: &str, otherwise: i64) -> i64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[allow(clippy::disallowed_methods, reason = "real processes run in real time")]
async fn rounds(uri: String, by: &str, killed: Killed) {
    let (many, kills) = (asked("FLARE_CRASH_ORDERS", 400), asked("FLARE_CRASH_KILLS", 3));
    let clock = SystemClock::new();
    let scratch = Scratch::new(&uri);
    let client = HttpTarget::start(Answer::status(204)).await;
    {
        let backend = PostgresBackend::connect(scratch.config()).await.unwrap();
        let (flare, runtime) = Flare::builder(backend).allow("127.0.0.0/8").build().unwrap();
        runtime.unused();
        let orders = NewResource::new("http://shop.example/orders/{id}").change_field("rev");
        let orders = flare.create_resource(orders).await.unwrap();
        let spec = SubscriptionSpec::post(client.url("/{id}/{revision}"));
        flare.create_subscription(orders.id, spec).await.unwrap();
    }
    scratch.run(TABLES).await;
    let rest = if killed != Killed::Host && kills > 1 { REST } else { 0 };
    let (name, schema) = (by.to_owned(), scratch.name.clone());
    let role = Role { name, uri: uri.clone(), schema, seed: 18, many, rest };
    let node_role = Role { name: "node".to_owned(), ..role.clone() };
    let mut node = Process::start(&node_role);
    let mut random = fastrand::Rng::with_seed(18);
    let mut shop = Shop::open(role.clone());
    // What is newer than this was told by the node as it is now, and by none before it.
    let mut before = 0;
    let (mut pause, mut behind) = (Duration::ZERO, Duration::ZERO);
    for kill in 1..=kills {
        // Further along each time, the first one too: there is something to disturb, and something left to go on with.
        while shop.orders() < many * kill / (kills + 1) {
            clock.sleep(Duration::from_millis(20)).await;
        }
        until_newer(&client, before).await;
        clock.sleep(Duration::from_micros(random.u64(..300_000))).await;
        match killed {
            Killed::Host => shop.kill(),
            Killed::Node => {
                drop(node);
                before = drawn(&role).await;
                node = Process::start(&node_role);
            }
            Killed::Server => {
                let command = std::env::var("FLARE_CRASH_SERVER").unwrap();
                let ended =
                    tokio::process::Command::new("sh").arg("-c").arg(&command).status().await;
                assert!(ended.unwrap().success(), "{command}");
                let back = Instant::now();
                before = drawn(&role).await;
                until_newer(&client, before).await;
                pause = pause.max(back.elapsed());
                if kill == kills {
                    let books = Books::read(&role).await;
                    until("all that was committed", || books.are_known_from(&told(&client))).await;
                    behind = back.elapsed();
                }
            }
        }
    }
    // The node's lease may have had to lapse before it was taken up again.
    assert!(pause <= LEASE_TIME, "nothing was told for {pause:?} of a server that was back");
    while shop.orders() < many {
        clock.sleep(Duration::from_millis(20)).await;
    }
    let said = shop.close();
    let books = Books::read(&role).await;
    books.hold(&said.committed);
    let began = Instant::now();
    let told = loop {
        let told = told(&client);
        books.agree_with(&told);
        if held(&told) == books.orders {
            break told;
        }
        assert!(began.elapsed() <= PATIENCE, "told {:?}\nof {:?}", held(&told), books.orders);
        clock.sleep(Duration::from_millis(100)).await;
    };
    eprintln!(
        "{by}: {} orders committed, {} transactions taken back, {kills} kills: {} commits that no host heard of, {} \
         orders in the end, {} requests, told {:?} after the last commit at most, after a server was back a pause of \
         {pause:?} at most, and behind for {behind:?} the last time",
        said.orders,
        said.taken_back,
        books.history.len() - said.committed.len(),
        books.orders.len(),
        told.len(),
        began.elapsed()
    );
    drop(node);
}

/// Waits until the client is told of a newer version.
async fn until_newer(client: &HttpTarget, than: i64) {
    let newer = || told(client).iter().any(|change| change.version > than);
    until("a version that is newer", newer).await;
}

#[allow(clippy::disallowed_methods, reason = "real processes run in real time")]
async fn until(what: &str, is_told: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_told() {
        SystemClock::new().sleep(Duration::from_millis(50)).await;
        assert!(since.elapsed() <= PATIENCE, "{what} is not told for {PATIENCE:?}");
    }
}
