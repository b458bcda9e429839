//! Takes real processes on a real etcd and MongoDB, and breaks them; gives the figures of every round, or
//! the promise that did not hold, with its evidence and the seed.
//!
//! Three nodes share 300 lanes under a steady load, each reaching etcd through a proxy of its own. A
//! round does one thing to them ([`faults`]), waits until all is well again, and looks at what the
//! client was told ([`client`]) and at what is stored ([`rows`]). `scripts/chaos [rounds]` runs many of
//! them; among the tests there is one of each kind.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test of real programs, in real time"
)]

mod client;
mod coordination;
mod driver;
mod faults;
mod fleet;
mod judge;
mod load;
mod losses;
mod node;
mod report;
mod rows;
mod stores;
mod world;

use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flare_testkit::{Service, Trials};

use crate::faults::Kind;

const USAGE: &str = "\
usage: chaos run [ROUNDS] [--seed N] [--busy]
       chaos coordination [SECONDS]

  run            so many rounds (25), in an order that follows from the seed; on a machine that is busy with
                 other things times and duplicates are shown, not judged
  coordination   what 100 and 10,000 subscriptions cost etcd, for so long at rest and under load (60)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.split_first() {
        // For the driver itself, whose nodes are processes of their own.
        Some((&"node", rest)) => node::main(rest),
        Some((&"run", rest)) => match options(rest) {
            Some(options) => driver::main(&options),
            None => wrong(),
        },
        Some((&"coordination", rest)) => match rest.first().map_or(Ok(60), |it| it.parse()) {
            Ok(seconds) => coordination::main(&[100, 10_000], Duration::from_secs(seconds)),
            Err(_) => wrong(),
        },
        _ => Trials::on(Service::ETCD).test("one_round_of_each_kind", one_round_of_each_kind).run(),
    }
}

/// What a run is to be.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) seed: u64,
    /// The machine does other things as well, so that times say little.
    pub(crate) busy: bool,
}

fn wrong() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn options(arguments: &[&str]) -> Option<Options> {
    let (mut rounds, mut seed, mut busy) = (25, None, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match *argument {
            "--busy" => busy = true,
            "--seed" => seed = Some(arguments.next()?.parse().ok()?),
            number => rounds = number.parse().ok()?,
        }
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    Some(Options { rounds, seed: seed.unwrap_or_else(now), busy })
}

/// The stores are the driver's own, as it kills one of them; the service only says that there is etcd.
async fn one_round_of_each_kind(_: String) {
    let program = std::env::current_exe().unwrap();
    let rounds = Kind::ALL.len().to_string();
    let run = move || Command::new(program).args(["run", &rounds, "--busy"]).status();
    let status = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    assert!(status.success(), "see above");
}
