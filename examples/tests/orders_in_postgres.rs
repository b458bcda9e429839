//! The example on PostgreSQL, run as a user would, where there is a server.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::{Command, ExitCode};

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    Trials::on(Service::POSTGRESQL)
        .test("what_is_committed_is_told", what_is_committed_is_told)
        .run()
}

async fn what_is_committed_is_told(uri: String) {
    let schema = format!("flare_orders_example_{}", std::process::id());
    // Twice: it leaves nothing behind that would be in its own way.
    for _ in 0..2 {
        let mut program = Command::new(env!("CARGO_BIN_EXE_orders-in-postgres"));
        let output = program.arg(&schema).env("FLARE_POSTGRESQL_URI", &uri).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}\n{errors}");
        let mut rest = printed.lines();
        for part in [
            "_orders is watched",
            "INSERT INTO orders",
            "-> client told: create http://shop.example/orders/1 (tea)",
            "-> client told: create http://shop.example/orders/2 (milk)",
            "UPDATE orders",
            "-> client told: update http://shop.example/orders/1 (green tea)",
            "BEGIN; UPDATE orders",
            "DELETE FROM orders",
            "-> client told: delete http://shop.example/orders/2",
            "TRUNCATE orders",
            "-> client told: delete http://shop.example/orders/1",
            "The client has heard of everything that was committed.",
        ] {
            let found = rest.any(|line| line.contains(part));
            assert!(found, "{part:?} is missing, or out of order:\n{printed}");
        }
        assert!(!printed.contains("coffee)"), "{printed}");
        assert_eq!(printed.matches("client told").count(), 5, "{printed}");
    }
}
