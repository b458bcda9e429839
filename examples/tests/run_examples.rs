//! Every example is run as a user would, and says what it promises to.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

/// Far beyond what an example takes, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

#[allow(clippy::disallowed_methods, reason = "a program that hangs must fail in real time")]
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, work).await.expect("the example ends by itself")
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs a program to its end; gives the lines it printed.
async fn lines_of(program: &str, arguments: &[&str]) -> Vec<String> {
    let run = async { command(program).args(arguments).output().await };
    let Output { status, stdout, stderr } = in_time(run).await.unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{printed}\n{errors}");
    printed.lines().map(str::to_owned).collect()
}

/// The lines expected come in this order, others in between.
fn assert_in_order(lines: &[String], expected: &[&str]) {
    let mut rest = lines.iter();
    for part in expected {
        assert!(
            rest.any(|line| line.contains(part)),
            "{part:?} is missing, or out of order:\n{}",
            lines.join("\n")
        );
    }
}

fn count(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

#[tokio::test]
async fn quickstart() {
    let lines = lines_of(env!("CARGO_BIN_EXE_quickstart"), &[]).await;
    assert_in_order(
        &lines,
        &[
            "resource      http://api.example.com/users/{id}",
            "subscription  POST http://127.0.0.1:",
            "users/ada at 2024-05-01T10:00:00Z: created",
            "-> client told: create http://api.example.com/users/ada (Ada)",
            "users/bob at 2024-05-01T10:00:01Z: created",
            "-> client told: create http://api.example.com/users/bob (Bob)",
            "users/ada at 2024-05-01T10:00:02Z: updated",
            "-> client told: update http://api.example.com/users/ada (Ada Lovelace)",
            "users/ada at 2024-05-01T12:00:02+02:00: unchanged",
            "users/ada at 2024-05-01T10:00:00Z: stale",
            "delete  http://api.example.com/users/bob: deleted",
            "-> client told: delete http://api.example.com/users/bob",
            "-> client is down, misses: update http://api.example.com/users/ada (Ada King)",
            "the client is back",
            "-> client told: update http://api.example.com/users/ada (Ada, Countess of Lovelace)",
            "create_resource: invalid: endpoint",
            "put_document: invalid: updatedAt",
            "Every client has the newest version of every document.",
        ],
    );
    // Four changes while it was down, one notification.
    assert_eq!(count(&lines, "-> client told:"), 5, "{}", lines.join("\n"));
}

#[tokio::test]
async fn embed_in_axum() {
    let lines = lines_of(env!("CARGO_BIN_EXE_embed-in-axum"), &["--demo"]).await;
    assert_in_order(
        &lines,
        &[
            "POST /listeners",
            "400 Bad Request",
            "POST /listeners",
            "201 Created",
            "PUT /users/ada",
            "200 OK",
            "-> client told: create https://accounts.example.com/users/ada (Ada)",
            "PUT /users/ada",
            "-> client told: update https://accounts.example.com/users/ada (Ada Lovelace)",
            "PUT /users/bob%20o",
            "-> client told: create https://accounts.example.com/users/bob%20o (Bob)",
            "DELETE /users/ada",
            "204 No Content",
            "-> client told: delete https://accounts.example.com/users/ada",
            "404 Not Found",
            "the demo ends",
            "accounts are closed",
            "Flare is drained",
        ],
    );
}

#[cfg(unix)]
#[tokio::test]
async fn embed_in_axum_drains_on_ctrl_c() {
    let mut host = command(env!("CARGO_BIN_EXE_embed-in-axum"))
        .arg("127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(host.stdout.take().unwrap());
    let run = async {
        let mut line = String::new();
        while !line.contains("ctrl-c ends it") {
            line.clear();
            assert!(printed.read_line(&mut line).await.unwrap() > 0, "it ended too early");
        }
        let id = host.id().unwrap().to_string();
        assert!(command("kill").args(["-INT", &id]).status().await.unwrap().success());
        let mut rest = String::new();
        printed.read_to_string(&mut rest).await.unwrap();
        (host.wait().await.unwrap(), rest)
    };
    let (status, rest) = in_time(run).await;
    assert!(status.success(), "{status}");
    assert!(rest.contains("accounts are closed\nFlare is drained"), "{rest}");
}

#[tokio::test]
async fn pull_client() {
    let lines = lines_of(env!("CARGO_BIN_EXE_pull-client"), &[]).await;
    assert_in_order(
        &lines,
        &[
            "users/ada at 3: updated",
            "-> pulled: create http://api.example.com/users/ada (Ada King): success",
            "1 taken, 0 refused, 0 returned, 0 expired",
            "-> pulled: create http://api.example.com/users/bob (Bob): return",
            "0 taken, 0 refused, 1 returned, 0 expired",
            "-> pulled: create http://api.example.com/users/bob (Bob): success",
            "-> pulled: delete http://api.example.com/users/ada",
            "1 taken, 0 refused, 0 returned, 0 expired",
            "0 changes wait for it.",
        ],
    );
    // Three changes while it was away, one notification.
    assert_eq!(count(&lines, "-> pulled:"), 4, "{}", lines.join("\n"));
}

#[tokio::test]
async fn signed_webhooks() {
    let lines = lines_of(env!("CARGO_BIN_EXE_signed-webhooks"), &[]).await;
    assert_in_order(
        &lines,
        &[
            r#"/hook, signing {"secrets":1}"#,
            "users/ada: created",
            "-> verified: create http://api.example.com/users/ada (Ada)",
            "webhook-signature: v1,",
            "a genuine signature, another body: answered 401",
            "-> refused: signature invalid",
            "signed with a guessed secret: answered 401",
            "-> refused: signature invalid",
            "not signed at all: answered 401",
            "-> refused: missing header signature",
            r#"/hook, signing {"secrets":2}"#,
            "-> verified by an instance that knows the old secret: create",
            "-> verified by an instance that knows the new secret: create",
            "The receiver believed what Flare sent, and nothing else.",
        ],
    );
    assert_eq!(count(&lines, "whsec_"), 0, "{}", lines.join("\n"));
}

#[tokio::test]
async fn custom_backend() {
    let lines = lines_of(env!("CARGO_BIN_EXE_custom-backend"), &[]).await;
    assert_in_order(
        &lines,
        &[
            "users/ada: created",
            "-> client told: create http://api.example.com/users/ada (Ada)",
            "-> client told: create http://api.example.com/users/eve (Eve)",
            "the queue of changes to spread is gone",
            "users/ada: updated",
            "-> client told: update http://api.example.com/users/ada (Ada King)",
            "queues Flare made for itself: partition, ",
        ],
    );
}
