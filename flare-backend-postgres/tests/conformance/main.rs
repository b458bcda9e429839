//! The ports on PostgreSQL keep every clause of their contracts, on the newest and on the oldest server, and through
//! PgBouncer.

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
    // Two programs in one: each server has its own trials, and the same names.
    let run = |service: Service| {
        let all = Trials::on(service).at_a_time(4);
        let all = lease::trials(all);
        let all = queue::trials(all);
        let all = repository::trials(all);
        upkeep::trials(all).run()
    };
    // Behind a pooler, where no statement is remembered and none may count on its connection.
    let pooled = || {
        let all = Trials::on(Service::PGBOUNCER).at_a_time(4);
        let all = lease::trials(all);
        upkeep::trials(repository::pooled(queue::trials(all))).run()
    };
    let all = [run(Service::POSTGRESQL), run(Service::POSTGRESQL_15), pooled()];
    if all == [ExitCode::SUCCESS; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
