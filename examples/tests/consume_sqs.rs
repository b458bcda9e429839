//! The example that pulls from SQS, run as a user would, where there is a server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, ExitCode};

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    Trials::on(Service::SQS).test("what_is_sent_is_told", what_is_sent_is_told).run()
}

async fn what_is_sent_is_told(endpoint: String) {
    let queue = format!("consume-sqs-{}", std::process::id());
    // Twice: it leaves nothing behind that would be in its own way.
    for _ in 0..2 {
        let mut program = Command::new(env!("CARGO_BIN_EXE_consume-sqs"));
        program.arg(&queue).env("AWS_ENDPOINT_URL_SQS", &endpoint);
        for (key, value) in [
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
        ] {
            program.env(key, value);
        }
        let output = program.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}\n{errors}");
        let mut rest = printed.lines();
        for part in [
            "orders are pulled from queue",
            "\"placed\"",
            "-> client told: create http://shop.example/orders/1 (tea)",
            "\"changed\"",
            "-> client told: update http://shop.example/orders/1 (green tea)",
            "\"changed\"",
            "an order without an id",
            "\"cancelled\"",
            "-> client told: delete http://shop.example/orders/1",
            "kept as a reject",
            "3 accepted, 1 unchanged, 1 rejected",
            "The client has heard of everything that was in the queue.",
        ] {
            let found = rest.any(|line| line.contains(part));
            assert!(found, "{part:?} is missing, or out of order:\n{printed}");
        }
        assert_eq!(printed.matches("client told").count(), 3, "{printed}");
    }
}
