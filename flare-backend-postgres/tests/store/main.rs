//! What the contracts do not say of PostgreSQL: transactions of a host's own, locks, and who may go first.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "it is a test"
)]

mod connections;
mod consumers;
mod isolation;
mod locks;
mod moves;
mod notices;
mod order;
mod plain_sql;
mod queue_elsewhere;
mod rights;
#[cfg(feature = "sqlx")]
mod sqlx_host;
#[path = "../support/mod.rs"]
mod support;
mod transactions;
mod watch;
mod watch_cost;
mod watch_faults;

use std::process::ExitCode;

use flare_testkit::{Service, Trials};

fn main() -> ExitCode {
    let run = |service: Service| {
        let all = Trials::on(service);
        let all = connections::trials(all);
        let all = consumers::trials(all);
        let all = locks::trials(all);
        let all = plain_sql::trials(all);
        let all = queue_elsewhere::trials(all);
        let all = transactions::trials(all);
        #[cfg(feature = "sqlx")]
        let all = sqlx_host::trials(all);
        let all = isolation::trials(all);
        let all = moves::trials(all);
        let all = notices::trials(all);
        let all = order::trials(all);
        let all = rights::trials(all);
        let all = watch::trials(all);
        let all = watch_cost::trials(all);
        watch_faults::trials(all).run()
    };
    let pooled = || notices::pooled(connections::pooled(Trials::on(Service::PGBOUNCER))).run();
    let all = [run(Service::POSTGRESQL), run(Service::POSTGRESQL_15), pooled()];
    if all == [ExitCode::SUCCESS; 3] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
