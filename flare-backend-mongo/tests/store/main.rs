//! What the stores on MongoDB do beyond their contracts: what they cost, and what they stand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod consumers;
mod cost;
mod crash;
mod explain;
mod lease;
mod lease_outage;
mod migrations;
mod queue;
mod race;
mod slots;
#[path = "../support/mod.rs"]
mod support;
mod unreadable;
mod upkeep_worlds;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    if race::is_racer() {
        return ExitCode::SUCCESS;
    }
    let all = Trials::on(Service::MONGODB);
    let all = consumers::trials(all);
    let all = cost::trials(all);
    let all = crash::trials(all);
    let all = explain::trials(all);
    let all = lease::trials(all);
    let all = lease_outage::trials(all);
    let all = migrations::trials(all);
    let all = queue::trials(all);
    let all = race::trials(all);
    let all = slots::trials(all);
    let all = unreadable::trials(all);
    let all = upkeep_worlds::trials(all);
    all.run()
}
