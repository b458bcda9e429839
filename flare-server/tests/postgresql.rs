//! The `flare` program on a real PostgreSQL: what it keeps, and what it says when it cannot.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stderr, reason = "a scratch schema that stays is worth a line")]

mod common;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{PATIENCE, Server, flare, run};
use flare_testkit::{Answer, HttpTarget, Service, Trials};
use serde_json::Value;

const ENGINE: &str = "--set=repository.engine=postgresql";
const ADA: &str = "/documents/http://api.example.com/users/ada";

fn main() -> ExitCode {
    Trials::on(Service::POSTGRESQL)
        .test("a_killed_server_goes_on_where_it_was", a_killed_server_goes_on_where_it_was)
        .test("a_plan_changes_nothing_and_setup_does_what_it_says", setup)
        .test("engines_can_be_mixed", engines_can_be_mixed)
        .test("a_schema_that_is_not_set_up", a_schema_that_is_not_set_up)
        .test("a_server_that_cannot_be_reached", a_server_that_cannot_be_reached)
        .run()
}

/// A schema that nobody else uses; dropped with it.
struct Scratch {
    uri: String,
    name: String,
}

impl Scratch {
    fn new(uri: &str, name: &str) -> Self {
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        Self { uri: uri.to_owned(), name: format!("flare_server_{name}_{now}") }
    }

    fn set_up(uri: &str, name: &str) -> Self {
        let scratch = Self::new(uri, name);
        let (code, _, err) = scratch.flare(&["setup", "--yes"]);
        assert_eq!(code, 0, "{err}");
        scratch
    }

    fn flare(&self, arguments: &[&str]) -> (i32, String, String) {
        run(flare(arguments).args(self.flags(&[ENGINE])))
    }

    /// Flags that name this schema, besides others. Tests share their machine, so a call may take long.
    fn flags(&self, others: &[&str]) -> Vec<String> {
        let table = [
            format!("--set=repository.postgresql.uri={}", self.uri),
            format!("--set=repository.postgresql.schema={}", self.name),
            "--set=repository.postgresql.timeout=60s".to_owned(),
        ];
        table.into_iter().chain(others.iter().map(|flag| (*flag).to_owned())).collect()
    }

    fn start(&self, others: &[&str]) -> Server {
        let mut flags = self.flags(others);
        flags.push("--set=http.server.timeout=60s".to_owned());
        Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let (uri, name) = (self.uri.clone(), self.name.clone());
        // Dropping is not async, and the runtime it happens on may be ending.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let (client, connection) =
                    tokio_postgres::connect(&uri, tokio_postgres::NoTls).await?;
                tokio::spawn(connection);
                client.batch_execute(&format!("DROP SCHEMA IF EXISTS {name} CASCADE")).await
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not drop {}: {error}", self.name);
        }
    }
}

/// What the client was told so far: action and revision.
fn told(client: &HttpTarget) -> Vec<(String, i64)> {
    let read = |body: &[u8]| {
        let told: Value = serde_json::from_slice(body).unwrap();
        (told["action"].as_str().unwrap().to_owned(), told["revision"].as_i64().unwrap())
    };
    client.requests().into_iter().map(|request| read(&request.body)).collect()
}

/// Waits until the client was told this; on the way it may hear it, or what was before it, again.
#[allow(clippy::disallowed_methods, reason = "another process's time is real")]
async fn hears(client: &HttpTarget, action: &str, revision: i64, server: &Server) {
    let until = Instant::now() + PATIENCE;
    while told(client).last() != Some(&(action.to_owned(), revision)) {
        assert!(Instant::now() < until, "told {:?}\n{}", told(client), server.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until it is stored that the client has everything.
#[allow(clippy::disallowed_methods, reason = "another process's time is real")]
async fn settles(server: &Server, subscription: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let (_, status) = server.get(&format!("{subscription}/status"));
        let shown: Value = serde_json::from_str(&status).unwrap();
        if (&shown["lag"], &shown["spreading"]) == (&0.into(), &0.into()) {
            return;
        }
        assert!(Instant::now() < until, "{status}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn a_killed_server_goes_on_where_it_was(uri: String) {
    let scratch = Scratch::set_up(&uri, "kill");
    let client = HttpTarget::start(Answer::status(204)).await;
    let server = scratch.start(&[ENGINE]);
    let subscription = server.subscribe(&client.url(""));
    assert_eq!(server.put(ADA, r#"{"revision":1,"name":"Ada"}"#).0, 202);
    hears(&client, "create", 1, &server).await;
    settles(&server, &subscription).await;
    assert_eq!(server.get("/health/ready").0, 200, "{}", server.log());
    // Dropping kills it: nothing is drained, and its leases are still its own.
    drop(server);

    let server = scratch.start(&[ENGINE]);
    let (status, document) = server.get(ADA);
    assert_eq!(status, 200, "{document}");
    assert_eq!(server.put(ADA, r#"{"revision":2}"#).0, 202);
    hears(&client, "update", 2, &server).await;
}

async fn setup(uri: String) {
    let scratch = Scratch::new(&uri, "setup");
    for _ in 0..2 {
        let (code, said, err) = scratch.flare(&["setup", "--plan"]);
        assert_eq!(code, 0, "{err}");
        assert!(said.contains("repository version 1 in schema"), "{said}");
    }
    let (code, _, err) = scratch.flare(&["setup", "--yes"]);
    assert_eq!(code, 0, "{err}");
    for command in ["setup", "fixup", "cleanup"] {
        let (code, said, err) = scratch.flare(&[command, "--plan"]);
        assert_eq!(code, 0, "{err}");
        assert!(said.contains("repository (postgresql): nothing"), "{command}: {said}");
    }
}

async fn engines_can_be_mixed(uri: String) {
    let scratch = Scratch::set_up(&uri, "mixed");
    let client = HttpTarget::start(Answer::status(204)).await;
    let mixed = [
        "--set=cluster.exclusive=true",
        "--set=queue.engine=memory",
        "--set=lease.engine=memory",
        ENGINE,
    ];
    let server = scratch.start(&mixed);
    server.subscribe(&client.url(""));
    assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
    hears(&client, "create", 1, &server).await;
}

fn refused(flags: &[String]) -> (i32, String) {
    let (code, said, err) = run(flare(&["start", "--addr", "127.0.0.1:0"]).args(flags));
    (code, format!("{said}{err}"))
}

async fn a_schema_that_is_not_set_up(uri: String) {
    let scratch = Scratch::new(&uri, "bare");
    let (code, said) = refused(&scratch.flags(&[ENGINE]));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("is not set up") && said.contains("flare setup"), "{said}");
}

async fn a_server_that_cannot_be_reached(_uri: String) {
    let nobody = HttpTarget::refusing().await.replace("http://", "postgresql://ada:secret-word@");
    let flags = [
        format!("--set=repository.postgresql.uri={nobody}"),
        "--set=repository.postgresql.timeout=1s".to_owned(),
        ENGINE.to_owned(),
    ];
    let (code, said) = refused(&flags);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("is it running? repository.postgresql.uri says where"), "{said}");
    assert!(!said.contains("secret-word"), "{said}");
}
