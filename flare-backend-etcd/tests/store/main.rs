//! Leases on etcd: their contract, and what they stand.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod conformance;
mod lease;
mod outage;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod users;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let all = Trials::on(Service::ETCD);
    let all = conformance::trials(all);
    let all = lease::trials(all);
    let all = outage::trials(all);
    let all = tls::trials(all);
    let all = users::trials(all);
    all.run()
}
