//! What may happen to a file and to those who use it: no room, no rights, damage, disappearance, processes that
//! are killed, power that is cut. Each is a clear error or nothing at all, and nothing accepted is lost.
//!
//! A program with its own `main`, as some of these need processes that can be killed, or that see another disk.
//! `scripts/chaos sqlite` runs many [`rounds`] of it; among the tests there are a few.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test of real processes, in real time"
)]

mod children;
mod corrupt;
mod denied;
mod full;
mod host;
mod moved;
mod power;
mod record;
mod refused;
mod rounds;
#[path = "../support/mod.rs"]
mod support;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

const USAGE: &str = "usage: faults rounds [ROUNDS] [--seed N] [--busy] [--alone]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        // Processes of their own, started by the tests.
        ["host", path, name, first] => host::main(path, name, first.parse().unwrap()),
        ["full", folder] => full::within(folder.as_ref()),
        ["open", path] => denied::open(path.as_ref()),
        ["rounds", ref rest @ ..] => match rounds::Wish::of(rest) {
            Some(wish) => rounds::main(&wish),
            None => {
                eprintln!("{USAGE}");
                ExitCode::from(2)
            }
        },
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

/// A test each; one that panics fails.
fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("a_full_disk_is_told_and_work_goes_on_when_there_is_room", full::is_told),
        trial("a_file_that_may_not_be_written_is_told_with_its_owner", denied::file),
        trial("a_directory_that_may_not_be_written_is_told", denied::directory),
        trial("a_damaged_page_is_told_and_others_are_used_on", corrupt::one_page),
        trial("a_damaged_header_is_no_file_of_ours", corrupt::header),
        trial("nothing_is_accepted_into_a_file_that_was_deleted", moved::deleted),
        trial("a_file_that_is_put_back_is_used_on", moved::put_back),
        trial("nothing_is_accepted_into_a_log_that_was_deleted", moved::log_deleted),
        trial("another_process_that_ends_takes_no_log_away", moved::others_end),
        trial("a_newer_schema_is_refused", refused::newer),
        trial("a_database_of_something_else_is_refused", refused::foreign),
        trial("a_file_system_that_machines_share_is_refused", refused::shared),
        trial("a_file_that_another_machine_has_open_is_refused", refused::held_elsewhere),
        trial("what_was_not_synced_when_the_power_went_takes_nothing_with_it", power::log_tail),
        trial("what_clients_were_told_before_the_power_went_is_told_alike", power::outcomes),
        trial("a_checkpoint_that_was_cut_takes_nothing_with_it", power::checkpoint),
        trial("a_process_that_is_killed_loses_nothing", rounds::alone),
        trial("one_of_two_processes_that_is_killed_loses_nothing", rounds::of_two),
    ]
}
