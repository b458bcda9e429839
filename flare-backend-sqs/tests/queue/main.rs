//! The queue on SQS keeps its contract, and the limits of SQS. Most trials wait most of the time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

macro_rules! trials {
    ($all:expr; $($name:ident),* $(,)?) => {
        $all$(.test(stringify!($name), $name))*
    };
}

mod conformance;
mod dead_letters;
mod fifo;
mod limits;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let all = Trials::on(Service::SQS).at_a_time(16);
    let all = conformance::trials(all);
    let all = dead_letters::trials(all);
    let all = fifo::trials(all);
    let all = limits::trials(all);
    all.run()
}
