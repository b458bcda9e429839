//! The `flare` program with its queues on SQS: what it makes there, and what it leaves to others.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use common::inbox::Inbox;
use common::{PATIENCE, Server, flare, id, request, run};
use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::port::{Queue, QueueName};
use flare_testkit::{Answer, HttpTarget, Service, Trials};
use futures::TryStreamExt;

const ADA: &str = "/documents/http://api.example.com/users/ada";

fn main() -> ExitCode {
    Trials::on(Service::SQS)
        .test("setup_makes_the_queues_and_cleanup_what_is_too_many", setup_and_cleanup)
        .test("a_change_travels_through_sqs", a_change_travels_through_sqs)
        .test("another_placement", another_placement_is_set_up_and_cleaned_up)
        .test("a_server_that_cannot_be_reached", a_server_that_cannot_be_reached)
        .test("secrets_are_never_printed", secrets_are_never_printed)
        .test("documents_come_from_a_queue", documents_come_from_a_queue)
        .run()
}

/// Queues that nobody else uses.
struct Scratch {
    endpoint: String,
    prefix: String,
}

impl Scratch {
    fn new(endpoint: &str, name: &str) -> Self {
        let prefix = format!("server-{name}-{}", std::process::id());
        Self { endpoint: endpoint.to_owned(), prefix }
    }

    /// Flags that name these queues, beside a repository in memory unless others say where.
    fn flags(&self, others: &[&str]) -> Vec<String> {
        let table = [
            "--set=repository.engine=memory".to_owned(),
            "--set=queue.engine=sqs".to_owned(),
            format!("--set=queue.sqs.endpoint={}", self.endpoint),
            format!("--set=queue.sqs.prefix={}", self.prefix),
            "--set=queue.sqs.region=us-east-1".to_owned(),
            "--set=queue.sqs.key=test".to_owned(),
            "--set=queue.sqs.secret=test".to_owned(),
            "--set=queue.sqs.slots=3".to_owned(),
        ];
        table.into_iter().chain(others.iter().map(|flag| (*flag).to_owned())).collect()
    }

    async fn queue(&self) -> SqsQueue {
        let config = SqsConfig::new().prefix(&self.prefix).endpoint(&self.endpoint);
        let config = config.region("us-east-1").credentials("test", "test");
        SqsQueue::connect(config).await.unwrap()
    }

    async fn queues(&self) -> Vec<QueueName> {
        let mut queues: Vec<_> = self.queue().await.list().try_collect().await.unwrap();
        queues.sort();
        queues
    }

    async fn remove(&self) {
        let queue = self.queue().await;
        for name in self.queues().await {
            queue.delete(&name).await.unwrap();
        }
    }
}

async fn setup_and_cleanup(endpoint: String) {
    let scratch = Scratch::new(&endpoint, "setup");
    let (code, out, err) = run(flare(&["setup", "queue", "--plan"]).args(scratch.flags(&[])));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("queue (sqs):") && out.contains("5 to create"), "{out}");
    assert_eq!(scratch.queues().await, [], "a plan changes nothing");

    let (code, _, err) = run(flare(&["setup", "queue", "--yes"]).args(scratch.flags(&[])));
    assert_eq!(code, 0, "{err}");
    let slots = [0, 1, 2].map(QueueName::Slot);
    let all = [QueueName::Partition, QueueName::Spread].into_iter().chain(slots);
    assert_eq!(scratch.queues().await, all.collect::<Vec<_>>());

    let (code, out, err) = run(flare(&["setup", "queue", "--plan"]).args(scratch.flags(&[])));
    assert_eq!((code, out.contains("nothing to set up")), (0, true), "{out}{err}");
    // Subscriptions of a repository in memory cannot be seen, so nothing is called superfluous.
    let fewer = scratch.flags(&["--set=queue.sqs.slots=1"]);
    let (code, _, err) = run(flare(&["cleanup", "queue", "--yes"]).args(fewer));
    assert_eq!((code, scratch.queues().await.len()), (0, 5), "{err}");
    scratch.remove().await;
}

async fn a_change_travels_through_sqs(endpoint: String) {
    for placement in ["shared", "isolated"] {
        let scratch = Scratch::new(&endpoint, placement);
        let client = HttpTarget::start(Answer::status(204)).await;
        let place = format!("--set=queue.sqs.placement={placement}");
        let flags = scratch.flags(&[&place]);
        let server = Server::start(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        server.subscribe(&client.url(""));
        assert_eq!(server.put(ADA, r#"{"revision":1}"#).0, 202);
        is_told(&client, &server).await;
        let lanes = |queue: &QueueName| matches!(queue, QueueName::Lane(_));
        let own = scratch.queues().await.iter().filter(|queue| lanes(queue)).count();
        assert_eq!(own, usize::from(placement == "isolated"), "{placement}");
        drop(server);
        scratch.remove().await;
    }
}

/// Waits until a client was told something.
#[allow(clippy::disallowed_methods, reason = "another process's time is real")]
async fn is_told(client: &HttpTarget, server: &Server) {
    let until = Instant::now() + PATIENCE;
    while client.requests().is_empty() {
        assert!(Instant::now() < until, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// As the README says: change it, set up, restart, clean up.
async fn another_placement_is_set_up_and_cleaned_up(endpoint: String) {
    let uri = std::env::var("FLARE_TEST_MONGODB_URI").expect("it needs MongoDB beside SQS");
    let scratch = Scratch::new(&endpoint, "moves");
    let stored = [
        "--set=repository.engine=mongodb".to_owned(),
        "--set=lease.engine=mongodb".to_owned(),
        format!("--set=repository.mongodb.uri={uri}"),
        format!("--set=repository.mongodb.database={}", scratch.prefix),
        "--set=repository.mongodb.timeout=60s".to_owned(),
    ];
    let flags = |placement: &str| {
        let place = format!("--set=queue.sqs.placement={placement}");
        let all = stored.iter().chain([&place]).map(String::as_str);
        scratch.flags(&all.collect::<Vec<_>>())
    };
    let command = |words: &[&str], placement| run(flare(words).args(flags(placement)));
    let (code, _, err) = command(&["setup", "--yes"], "shared");
    assert_eq!(code, 0, "{err}");
    let shared = flags("shared");
    let server = Server::start(&shared.iter().map(String::as_str).collect::<Vec<_>>());
    server.subscribe("http://127.0.0.1:9/nobody");
    drop(server);

    let (code, out, err) = command(&["setup", "--yes"], "isolated");
    assert!(code == 0 && out.contains("1 to create"), "{out}{err}");
    assert_eq!(scratch.queues().await.len(), 6);
    let (_, out, _) = command(&["cleanup", "--plan"], "isolated");
    assert!(out.contains("queue (sqs): nothing"), "{out}");
    let (code, out, err) = command(&["cleanup", "--yes"], "shared");
    assert!(code == 0 && out.contains("1 to delete"), "{out}{err}");
    assert_eq!(scratch.queues().await.len(), 5);

    scratch.remove().await;
    let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
    client.database(&scratch.prefix).drop().await.unwrap();
}

async fn a_server_that_cannot_be_reached(_endpoint: String) {
    let scratch = Scratch::new("http://127.0.0.1:1", "nowhere");
    let (code, out, err) =
        run(flare(&["start"]).args(scratch.flags(&["--set=queue.sqs.timeout=1s"])));
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.contains("[queue.sqs]"), "{err}");
}

async fn secrets_are_never_printed(endpoint: String) {
    let scratch = Scratch::new(&endpoint, "secret");
    let secret = "--set=queue.sqs.secret=very-secret";
    for (command, more) in [("config", ""), ("start", "--set=queue.sqs.slots=0")] {
        let more = [secret, more].into_iter().filter(|flag| !flag.is_empty()).collect::<Vec<_>>();
        let (_, out, err) = run(flare(&[command]).args(scratch.flags(&more)));
        assert!(!out.contains("very-secret") && !err.contains("very-secret"), "{out}{err}");
    }
}

/// What the server knows of a user.
fn user(name: &str) -> String {
    format!("/documents/http://api.example.com/users/{name}")
}

async fn documents_come_from_a_queue(endpoint: String) {
    let inbox = Inbox::new(&endpoint, "sqs");
    let server = inbox.server(&[]);
    let users = server.users();
    let source = |at: &str| inbox.source_at(at);
    let (status, refused) = server.consume(&users, &source("http://169.254.169.254"));
    assert!(status == 400 && refused.contains("sqs.endpoint"), "{status}: {refused}");
    assert!(refused.contains("or list it in consumers.aws.endpoints"), "{refused}");

    let (status, consumer) = server.consume(&users, &source(&endpoint));
    assert_eq!(status, 201, "{consumer}");
    let path = format!("/consumers/{}", id(&consumer));
    inbox.send(r#"{"id":"ada","name":"Ada","revision":1}"#);
    inbox.send(r#"{"id":"ada","name":"Ada","revision":1}"#);
    inbox.send(r#"{"id":"bob","name":"Bob","revision":1}"#);
    inbox.send("no user at all");
    for name in ["ada", "bob"] {
        server.until(&user(name), |status, _| status == 200);
    }
    // Each is counted when it happens.
    let counts = ["received\":4", "accepted\":2", "unchanged\":1", "rejected\":1", "\"active\""];
    server.until(&format!("{path}/status"), |_, body| counts.iter().all(|it| body.contains(it)));

    let (status, paused) = request(server.addr, "POST", &format!("{path}/pause"), "");
    assert!(status == 200 && paused.contains(r#""paused""#), "{status}: {paused}");
    server.until("/status", |_, body| body.contains(r#""consumers":0"#));
    inbox.send(r#"{"id":"eve","name":"Eve","revision":1}"#);
    // Others get it now, also where SQS still answered a poll and its message was given back.
    inbox.take_and_return("eve");
    assert_eq!(server.get(&user("eve")).0, 404, "{}", server.log());
    let (_, counted) = server.get(&format!("{path}/status"));
    assert!(counted.contains(r#""received":4"#), "{counted}");

    let (status, resumed) = request(server.addr, "POST", &format!("{path}/resume"), "");
    assert!(status == 200 && resumed.contains(r#""active""#), "{status}: {resumed}");
    server.until(&user("eve"), |status, _| status == 200);
}
