//! Whole Flares on SQS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod journey;
mod outage;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let all = Trials::on(Service::SQS);
    let all = journey::trials(all);
    let all = outage::trials(all);
    all.run()
}
