//! The `flare` program on a real MongoDB: what it keeps, and what it says when it cannot.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::print_stderr, reason = "a scratch database that stays is worth a line")]

mod common;

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{PATIENCE, Server, flare, run};
use flare_testkit::{Answer, HttpTarget, Service, Trials};
use mongodb::bson::{Document, Uuid, doc};
use serde_json::Value;

/// Everything in one database.
const ENGINES: [&str; 6] = [
    "--set",
    "repository.engine=mongodb",
    "--set",
    "queue.engine=mongodb",
    "--set",
    "lease.engine=mongodb",
];

const ADA: &str = "/documents/http://api.example.com/users/ada";

fn main() -> ExitCode {
    Trials::on(Service::MONGODB)
        .test("a_killed_server_goes_on_where_it_was", a_killed_server_goes_on_where_it_was)
        .test("a_server_that_drains_leaves_the_lanes", a_server_that_drains_leaves_the_lanes)
        .test("a_plan_changes_nothing_and_setup_does_what_it_says", setup)
        .test("cleanup_asks_and_removes_what_is_nobodys", cleanup)
        .test("engines_can_be_mixed", engines_can_be_mixed)
        .test("a_database_that_is_not_set_up", a_database_that_is_not_set_up)
        .test("a_server_that_cannot_be_reached", a_server_that_cannot_be_reached)
        .test("passwords_are_never_printed", passwords_are_never_printed)
        .run()
}

/// A database that nobody else uses; dropped with it.
struct Scratch {
    uri: String,
    name: String,
}

impl Scratch {
    fn new(uri: &str, name: &str) -> Self {
        #[allow(clippy::disallowed_methods, reason = "a name that no earlier run used")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        Self { uri: uri.to_owned(), name: format!("flare-server-{name}-{now}") }
    }

    fn set_up(uri: &str, name: &str) -> Self {
        let scratch = Self::new(uri, name);
        let (code, _, err) = scratch.flare(&["setup", "--yes"]);
        assert_eq!(code, 0, "{err}");
        scratch
    }

    /// Runs a command on this database, with all parts in it.
    fn flare(&self, arguments: &[&str]) -> (i32, String, String) {
        let patience = ["--set", "repository.mongodb.timeout=60s"];
        let others: Vec<&str> = ENGINES.into_iter().chain(patience).collect();
        run(flare(arguments).args(self.flags(&others)))
    }

    /// Flags that name this database, besides others.
    fn flags(&self, others: &[&str]) -> Vec<String> {
        let table = [
            format!("--set=repository.mongodb.uri={}", self.uri),
            format!("--set=repository.mongodb.database={}", self.name),
        ];
        table.into_iter().chain(others.iter().map(|flag| (*flag).to_owned())).collect()
    }

    async fn database(&self) -> mongodb::Database {
        mongodb::Client::with_uri_str(&self.uri).await.unwrap().database(&self.name)
    }

    async fn collections(&self) -> Vec<String> {
        self.database().await.list_collection_names().await.unwrap()
    }

    fn start(&self, others: &[&str]) -> Server {
        let mut flags = self.flags(others);
        // Tests share their machine, so a call may take long.
        for key in ["repository.mongodb.timeout", "http.server.timeout"] {
            flags.push(format!("--set={key}=60s"));
        }
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
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                client.database(&name).drop().await
            })
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("could not drop {}: {error}", self.name);
        }
    }
}

/// What the client was told so far: action and revision.
fn told(client: &HttpTarget) -> Vec<(String, i64)> {
    let bodies = client.requests().into_iter().map(|request| request.body);
    bodies
        .map(|body| {
            let told: Value = serde_json::from_slice(&body).unwrap();
            (told["action"].as_str().unwrap().to_owned(), told["revision"].as_i64().unwrap())
        })
        .collect()
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

/// Waits until it is stored that the client has everything. A server that is killed before has to be
/// in doubt, and would say `create` again.
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
    let server = scratch.start(&ENGINES);
    let subscription = server.subscribe(&client.url(""));
    assert_eq!(server.put(ADA, r#"{"revision":1,"name":"Ada"}"#).0, 202);
    hears(&client, "create", 1, &server).await;
    settles(&server, &subscription).await;
    assert_eq!(server.get("/health/ready").0, 200, "{}", server.log());
    // Dropping kills it: nothing is drained, and its leases are still its own.
    drop(server);

    let server = scratch.start(&ENGINES);
    let (status, document) = server.get(ADA);
    assert_eq!(status, 200, "{document}");
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!((&document["revision"], &document["content"]["name"]), (&1.into(), &"Ada".into()));
    let (status, shown) = server.get(&subscription);
    assert_eq!(status, 200, "{shown}");
    assert_eq!(server.put(ADA, r#"{"revision":2}"#).0, 202);
    hears(&client, "update", 2, &server).await;
}

async fn a_server_that_drains_leaves_the_lanes(uri: String) {
    let scratch = Scratch::set_up(&uri, "drain");
    let client = HttpTarget::start(Answer::status(204)).await;
    let mut first = scratch.start(&ENGINES);
    first.subscribe(&client.url(""));
    assert_eq!(first.put(ADA, r#"{"revision":1}"#).0, 202);
    hears(&client, "create", 1, &first).await;
    // A second one takes changes, and works once the first is gone.
    let second = scratch.start(&ENGINES);
    assert_eq!(second.put(ADA, r#"{"revision":2}"#).0, 202);
    hears(&client, "update", 2, &first).await;
    first.terminate();
    assert!(first.wait().success(), "{}", first.log());
    assert!(!first.log().contains("lost"), "{}", first.log());
    assert_eq!(second.put(ADA, r#"{"revision":3}"#).0, 202);
    hears(&client, "update", 3, &second).await;
    assert_eq!(told(&client).len(), 3, "nothing was told twice: {:?}", told(&client));
}

async fn setup(uri: String) {
    let scratch = Scratch::new(&uri, "setup");
    let (code, shown, err) = scratch.flare(&["setup", "--plan"]);
    assert_eq!(code, 0, "{err}");
    assert!(shown.contains("+ create") && shown.contains("flare_rows"), "{shown}");
    assert!(shown.contains("Plan: "), "{shown}");
    // Nobody is there to ask, so nothing is done.
    let (code, _, err) = scratch.flare(&["setup"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--yes"), "{err}");
    assert!(scratch.collections().await.is_empty(), "a plan changes nothing");

    let (code, _, err) = scratch.flare(&["setup", "repository", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let made = scratch.collections().await;
    assert!(made.contains(&"flare_rows".to_owned()), "{made:?}");
    assert!(!made.contains(&"flare_messages".to_owned()), "only the part that was named: {made:?}");
    let (code, _, err) = scratch.flare(&["setup", "--yes"]);
    assert_eq!(code, 0, "{err}");
    let (code, shown, _) = scratch.flare(&["setup", "--json"]);
    assert_eq!(code, 0);
    let plan: Value = serde_json::from_str(&shown).unwrap();
    assert!(!shown.contains("\"kind\""), "nothing is left to do: {plan}");
}

async fn cleanup(uri: String) {
    let scratch = Scratch::set_up(&uri, "cleanup");
    let rows = scratch.database().await.collection::<Document>("flare_rows");
    // Of a subscription of long ago that is not there.
    let long_ago = Uuid::parse_str("00000000-0000-7000-8000-000000000001").unwrap();
    let id = doc! { "subscription": long_ago, "url": "http://api.example.com/users/ada" };
    rows.insert_one(doc! { "_id": id }).await.unwrap();
    let (code, shown, err) = scratch.flare(&["cleanup", "--plan"]);
    assert_eq!(code, 0, "{err}");
    assert!(shown.contains("- delete") && shown.contains(&long_ago.to_string()), "{shown}");
    assert_eq!(scratch.flare(&["cleanup"]).0, 2);
    assert_eq!(rows.count_documents(doc! {}).await.unwrap(), 1, "not without confirmation");
    let (code, _, err) = scratch.flare(&["cleanup", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(rows.count_documents(doc! {}).await.unwrap(), 0);
}

async fn engines_can_be_mixed(uri: String) {
    let scratch = Scratch::set_up(&uri, "mixed");
    let client = HttpTarget::start(Answer::status(204)).await;
    let mixed = ["queue.engine=memory", "lease.engine=memory", "cluster.exclusive=true"];
    let flags: Vec<&str> =
        ENGINES[..2].iter().copied().chain(mixed.iter().flat_map(|it| ["--set", it])).collect();
    let mut server = scratch.start(&flags);
    server.subscribe(&client.url(""));
    assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
    hears(&client, "create", 1, &server).await;
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
}

/// Runs `flare start` to its end, which has to be a failure in one line; gives its code and that.
fn refused(flags: &[String]) -> (i32, String) {
    let (code, out, err) = run(flare(&["start", "--addr", "127.0.0.1:0"]).args(flags));
    assert_eq!((out.as_str(), err.lines().count()), ("", 1), "{err}");
    (code, err)
}

async fn a_database_that_is_not_set_up(uri: String) {
    let scratch = Scratch::new(&uri, "bare");
    for engines in [&ENGINES[..], &ENGINES[..2]] {
        let (code, said) = refused(&scratch.flags(engines));
        assert_eq!(code, 1);
        assert!(said.contains("is not set up") && said.contains("flare setup"), "{said}");
    }
}

async fn a_server_that_cannot_be_reached(_uri: String) {
    let nobody = HttpTarget::refusing().await.replace("http://", "mongodb://ada:secret-word@");
    let flags = [
        format!("--set=repository.mongodb.uri={nobody}"),
        "--set=repository.mongodb.timeout=1s".to_owned(),
    ];
    let flags: Vec<_> = flags.into_iter().chain(ENGINES.map(str::to_owned)).collect();
    #[allow(clippy::disallowed_methods, reason = "another process's time is real")]
    let before = Instant::now();
    let (code, said) = refused(&flags);
    assert!(before.elapsed() < Duration::from_secs(20), "{:?}", before.elapsed());
    assert_eq!(code, 1);
    assert!(said.contains("is it running? repository.mongodb.uri says where"), "{said}");
    assert!(!said.contains("secret-word"), "{said}");
}

async fn passwords_are_never_printed(uri: String) {
    let place = uri.strip_prefix("mongodb://").unwrap();
    let table = |pairs: &[&str]| pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>();
    for (table, expected, says) in [
        // Nobody is called that here.
        (table(&[&format!("uri=mongodb://ada:secret-word@{place}")]), 1, "denied"),
        (table(&[&format!("uri={uri}"), "username=ada", "password=secret-word"]), 1, "denied"),
        // What parsers like to quote: not percent-encoded, no port, no value of that option.
        (table(&["uri=mongodb://ada:secret-word/@db/"]), 2, "percent-encoded"),
        (table(&["uri=mongodb://ada:secret-word?@db/"]), 2, "percent-encoded"),
        (table(&["uri=mongodb://ada:secret-word@127.0.0.1:port"]), 2, "no MongoDB address"),
        (table(&["uri=mongodb://db/?authMechanismProperties=secret-word"]), 2, "mongodb.uri"),
    ] {
        let flags = table.iter().map(|pair| format!("--set=repository.mongodb.{pair}"));
        let more = ["--set=repository.mongodb.timeout=5s"].into_iter().chain(ENGINES);
        let flags: Vec<_> = flags.chain(more.map(str::to_owned)).collect();
        let (code, said) = refused(&flags);
        assert_eq!(code, expected, "{said}");
        assert!(said.contains(says) && !said.contains("secret-word"), "{said}");
        let (code, shown, _) = run(flare(&["config"]).args(&flags));
        assert_eq!(code, 0);
        assert!(shown.contains("***") && !shown.contains("secret-word"), "{shown}");
    }
    // Without secrets the reason is shown.
    let flags =
        ["--set=repository.mongodb.uri=mongodb://db/?tls=perhaps"].into_iter().chain(ENGINES);
    let (code, said) = refused(&flags.map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(code, 2);
    assert!(said.contains("repository.mongodb.uri") && said.contains("tls"), "{said}");
}
