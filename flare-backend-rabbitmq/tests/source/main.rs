//! Queues of RabbitMQ keep the contract of sources, and what goes wrong there is told for what it is. Most trials
//! wait most of the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod conformance;
mod losses;
mod refusals;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let all = Trials::on(Service::RABBITMQ).at_a_time(4);
    let all = conformance::trials(all);
    let all = refusals::trials(all);
    let all = losses::trials(all);
    all.run()
}
