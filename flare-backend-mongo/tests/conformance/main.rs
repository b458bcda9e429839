//! The ports on MongoDB keep every clause of their contracts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod lease;
mod queue;
mod repository;
#[path = "../support/mod.rs"]
mod support;
mod upkeep;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let all = Trials::on(Service::MONGODB);
    let all = lease::trials(all);
    let all = queue::trials(all);
    let all = repository::trials(all);
    let all = upkeep::trials(all);
    all.run()
}
