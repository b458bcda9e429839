//! Real processes on a real server, killed: what a host committed reaches its client, and nothing else does. And ten of
//! them at the same documents, which never wait for each other in a circle.
//!
//! The tests make a few rounds. `FLARE_CRASH_ORDERS` and `FLARE_CRASH_KILLS` ask for more, `FLARE_CRASH_PSQL=1` for a
//! host that is `psql`, and `FLARE_CRASH_SERVER` for a command that ends the server and brings it, or another, back:
//! see `scripts/prove postgresql`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "it is a test"
)]

mod books;
mod change;
mod circles;
mod contender;
mod host;
mod node;
mod process;
mod rounds;
mod shop;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    if let Some(role) = process::role() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            match role.name.as_str() {
                "node" => node::run(role).await,
                "contender" => contender::run(role).await,
                _ => host::run(role).await,
            }
        });
        return ExitCode::SUCCESS;
    }
    circles::trials(rounds::trials(Trials::on(Service::POSTGRESQL))).run()
}
