//! The example on MongoDB, run as a user would, where there is a server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, ExitCode};

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    Trials::on(Service::MONGODB)
        .test("the_second_node_goes_on", the_second_node_goes_on)
        .test("without_a_server_it_says_so", without_a_server_it_says_so)
        .run()
}

fn mongo_node(uri: &str, database: &str) -> (bool, String, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mongo-node"));
    let output = program.arg(database).env("FLARE_MONGODB_URI", uri).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

async fn the_second_node_goes_on(uri: String) {
    let database = format!("flare-mongo-node-{}", std::process::id());
    // Twice: it leaves nothing behind that would be in its own way.
    let runs = [mongo_node(&uri, &database), mongo_node(&uri, &database)];
    let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
    client.database(&database).drop().await.unwrap();
    for (success, printed, errors) in runs {
        assert!(success, "{printed}\n{errors}");
        let mut rest = printed.lines();
        for part in [
            "node 1 runs on database",
            "users/ada at 1: created",
            "users/bob at 1: created",
            "-> client told: create http://api.example.com/users/ada (Ada)",
            "-> client told: create http://api.example.com/users/bob (Bob)",
            "node 1 is drained",
            "users/ada at 2: updated",
            "users/ada at 3: updated",
            "users/bob at 1: unchanged",
            "node 2 runs",
            "-> client told: update http://api.example.com/users/ada (Ada, Countess of Lovelace)",
            "node 2 is drained",
            "The client has the newest version of every document.",
        ] {
            assert!(
                rest.any(|line| line.contains(part)),
                "{part:?} is missing, or out of order:\n{printed}"
            );
        }
        assert_eq!(printed.matches("client told").count(), 3, "{printed}");
    }
}

async fn without_a_server_it_says_so(_uri: String) {
    let (success, printed, errors) =
        mongo_node("mongodb://127.0.0.1:1/?connectTimeoutMS=100", "nowhere");
    assert!(!success && printed.is_empty(), "{printed}");
    assert!(errors.contains("Connection refused"), "{errors}");
}
