#![doc = include_str!("../README.md")]
// Clauses assert: a violated contract is a failed test, and a panic is how a test says so.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod clock;
mod counting_repository;
mod delay;
mod delegate;
pub mod delivery;
mod far_repository;
mod fault;
mod faulty_lease;
mod faulty_queue;
mod faulty_repository;
mod http_answer;
mod http_target;
pub mod lease;
mod name_server;
mod passing;
pub mod queue;
mod recording;
pub mod repository;
mod scripted_upkeep;
mod subject;
mod suite;
mod trials;
pub mod upkeep;

pub use clock::ManualClock;
pub use counting_repository::{Calls, CountingRepository, Tally};
pub use far_repository::FarRepository;
pub use fault::FaultPlan;
pub use faulty_lease::FaultyLease;
pub use faulty_queue::FaultyQueue;
pub use faulty_repository::FaultyRepository;
pub use http_answer::Answer;
pub use http_target::{HttpTarget, RawRequest};
pub use name_server::{NameAnswer, NameServer};
pub use recording::{Recorded, RecordingDelivery};
pub use repository::unreadable;
pub use scripted_upkeep::ScriptedUpkeep;
pub use subject::{Fixture, Subject};
pub use suite::{Clause, run, try_clause};
pub use trials::{Service, Trials};
