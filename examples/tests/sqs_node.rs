//! The example on MongoDB and SQS, run as a user would, where there are both servers.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::process::{Command, ExitCode};

use flare_backend_sqs::{SqsConfig, SqsQueue};
use flare_core::port::Queue;
use flare_testkit::{Service, Trials};
use futures::TryStreamExt;

fn main() -> ExitCode {
    Trials::on(Service::SQS)
        .test("a_deleted_queue_is_not_missed", a_deleted_queue_is_not_missed)
        .test("without_a_server_it_says_so", without_a_server_it_says_so)
        .run()
}

fn sqs_node(endpoint: &str, name: &str) -> (bool, String, String) {
    let mongodb = std::env::var("FLARE_TEST_MONGODB_URI").expect("it needs MongoDB beside SQS");
    let mut program = Command::new(env!("CARGO_BIN_EXE_sqs-node"));
    program.arg(name).env("FLARE_MONGODB_URI", mongodb).env("AWS_ENDPOINT_URL_SQS", endpoint);
    for (key, value) in [
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_MAX_ATTEMPTS", "1"),
    ] {
        program.env(key, value);
    }
    let output = program.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

async fn a_deleted_queue_is_not_missed(endpoint: String) {
    let name = format!("sqs-node-{}", std::process::id());
    // Twice: it leaves nothing behind that would be in its own way.
    let runs = [sqs_node(&endpoint, &name), sqs_node(&endpoint, &name)];
    tidy_up(&endpoint, &name).await;
    for (success, printed, errors) in runs {
        assert!(success, "{printed}\n{errors}");
        let mut rest = printed.lines();
        for part in [
            "the node runs: documents in database",
            "users/ada at 1: created",
            "-> client told: create http://api.example.com/users/ada (Ada)",
            "somebody deletes queue",
            "users/ada at 2: updated",
            "users/bob at 1: created",
            "-> client told: create http://api.example.com/users/bob (Bob)",
            "-> client told: update http://api.example.com/users/ada (Ada King)",
            "The client has the newest version of every document.",
            "requests to SQS",
        ] {
            assert!(
                rest.any(|line| line.contains(part)),
                "{part:?} is missing, or out of order:\n{printed}"
            );
        }
        assert_eq!(printed.matches("client told").count(), 3, "{printed}");
    }
}

async fn tidy_up(endpoint: &str, name: &str) {
    let uri = std::env::var("FLARE_TEST_MONGODB_URI").expect("it needs MongoDB beside SQS");
    let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
    client.database(name).drop().await.unwrap();
    let config = SqsConfig::new().prefix(name).endpoint(endpoint).region("us-east-1");
    let queue = SqsQueue::connect(config.credentials("test", "test")).await.unwrap();
    let left: Vec<_> = queue.list().try_collect().await.unwrap();
    for left in left {
        queue.delete(&left).await.unwrap();
    }
}

async fn without_a_server_it_says_so(_endpoint: String) {
    let (success, printed, errors) = sqs_node("http://127.0.0.1:1", "nowhere");
    assert!(!success && printed.is_empty(), "{printed}");
    assert!(errors.contains("sqs") && errors.contains("connect"), "{errors}");
}
