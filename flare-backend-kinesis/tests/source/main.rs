//! Streams of Kinesis keep the contract of sources, also while shards are split and places expire. Most trials wait
//! most of the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod conformance;
mod resharding;
mod scripted;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    // The emulator of SQS has Kinesis, too.
    let all = Trials::on(Service::SQS).at_a_time(4);
    let all = conformance::trials(all);
    let all = resharding::trials(all);
    let all = scripted::trials(all);
    all.run()
}
