//! Rounds in which something is killed while a host commits and a node tells its client.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flare_backend_postgres::PostgresBackend;
use flare_core::Flare;
use flare_core::port::{Clock, SystemClock};
use flare_core::prelude::*;
use flare_testkit::{Answer, HttpTarget, Trials};

use crate::host;
use crate::process::{Process, Role};
use crate::support::{Scratch, connect};

/// How long a lease holds unless its settings say otherwise, and what promoting a standby may take beside.
const LEASE_TIME: Duration = Duration::from_secs(15);
const SLACK: Duration = Duration::from_secs(5);

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
    scratch.run(host::TABLE).await;
    let mut role = Role {
        name: by.to_owned(),
        uri: uri.clone(),
        schema: scratch.name.clone(),
        seed: 18,
        many,
    };
    let node_role = Role { name: "node".to_owned(), ..role.clone() };
    let mut node = Process::start(&node_role);
    let mut random = fastrand::Rng::with_seed(18);
    let mut host = start(&role);
    let (mut done, mut longest) = (0, Duration::ZERO);
    while done < kills {
        // Further along each time, the first one too: there is something to disturb, and something left to go on with.
        let until = many * (done + 1) / (kills + 1);
        while host::drawn(&role).await < until {
            clock.sleep(Duration::from_millis(20)).await;
            if host.is_done() {
                host = start(&role);
            }
        }
        clock.sleep(Duration::from_millis(random.u64(..300))).await;
        role.seed += 1;
        match killed {
            Killed::Host => {
                drop(host);
                host = start(&role);
            }
            Killed::Node => {
                drop(node);
                node = Process::start(&node_role);
            }
            Killed::Server => {
                let command = std::env::var("FLARE_CRASH_SERVER").unwrap();
                let began = Instant::now();
                let ended =
                    tokio::process::Command::new("sh").arg("-c").arg(&command).status().await;
                assert!(ended.unwrap().success(), "{command}");
                // What the node had sent before the server ended has arrived while the next one came up.
                let before = client.requests().len();
                while client.requests().len() == before {
                    clock.sleep(Duration::from_millis(20)).await;
                    assert!(began.elapsed() < Duration::from_secs(120), "nothing is told any more");
                }
                longest = longest.max(began.elapsed());
            }
        }
        done += 1;
    }
    if killed == Killed::Server && kills == 1 {
        // A fail-over, see `scripts/prove fail-over`: the node's lease may have to lapse before it is taken up again.
        assert!(longest <= LEASE_TIME + SLACK, "nothing was told for {longest:?}");
    }
    while host::drawn(&role).await < many || !host.is_done() {
        clock.sleep(Duration::from_millis(20)).await;
        if host.is_done() && host::drawn(&role).await < many {
            role.seed += 1;
            host = start(&role);
        }
    }
    let rows = connect(&uri).await;
    let sql = format!("SELECT id, version FROM {}.shop_orders", scratch.name);
    let rows = rows.query(&sql, &[]).await.unwrap();
    let table: BTreeMap<i64, i64> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert!(!table.is_empty());
    let began = Instant::now();
    while told(&client) != table {
        clock.sleep(Duration::from_millis(100)).await;
        let late = began.elapsed() > Duration::from_secs(120);
        assert!(!late, "told {:?}\nof {table:?}", told(&client));
    }
    eprintln!(
        "{by}: {many} transactions, {kills} kills: {} orders, {} requests, told {:?} after the last commit at most, \
         longest pause {longest:?}",
        table.len(),
        client.requests().len(),
        began.elapsed()
    );
    drop((host, node));
}

fn start(role: &Role) -> Process {
    if role.name != "psql" {
        return Process::start(role);
    }
    let mut psql = Command::new("psql");
    psql.args(["-q", "-X", "-v", "ON_ERROR_STOP=1", &role.uri]);
    let mut child = psql.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let (mut pipe, script) = (child.stdin.take().unwrap(), host::script(role));
    // What it does not take before it is killed nobody misses.
    std::thread::spawn(move || pipe.write_all(script.as_bytes()));
    Process(child)
}

/// What the client holds by the last it was told of each.
fn told(client: &HttpTarget) -> BTreeMap<i64, i64> {
    let mut held = BTreeMap::new();
    for request in client.requests() {
        let mut words = request
            .target
            .trim_start_matches('/')
            .split('/')
            .map(|word| word.parse::<i64>().unwrap());
        let (id, revision) = (words.next().unwrap(), words.next().unwrap());
        match request.values("flare-action").first() {
            Some(&"delete") => _ = held.remove(&id),
            _ => _ = held.insert(id, revision),
        }
    }
    held
}
