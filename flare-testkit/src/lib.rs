#![doc = include_str!("../README.md")]
// Clauses assert: a violated contract is a failed test, and a panic is how a test says so.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod clock;
mod counting_repository;
mod delay;
pub mod delivery;
mod far_repository;
mod fault;
mod faulty_lease;
mod faulty_queue;
mod faulty_repository;
mod faulty_source;
mod http_answer;
mod http_target;
pub mod intercept;
pub mod lease;
mod name_server;
mod passing;
pub mod queue;
mod recording;
pub mod repository;
mod scripted_upkeep;
pub mod source;
mod subject;
mod suite;
mod tcp_link;
mod trials;
pub mod upkeep;
pub mod world;

pub use clock::ManualClock;
pub use counting_repository::{Calls, CountedCalls, CountingRepository, Tally};
pub use far_repository::{CopiedContent, FarRepository};
pub use fault::FaultPlan;
pub use faulty_lease::{FaultyLease, LeaseFaults};
pub use faulty_queue::{FaultyQueue, QueueFaults};
pub use faulty_repository::{FaultyRepository, RepositoryFaults};
pub use faulty_source::FaultySources;
pub use http_answer::Answer;
pub use http_target::{HttpTarget, RawRequest};
pub use name_server::{NameAnswer, NameServer};
pub use recording::{Recorded, RecordingDelivery};
pub use repository::unreadable;
pub use scripted_upkeep::ScriptedUpkeep;
pub use subject::{Fixture, Subject};
pub use suite::{Clause, run, try_clause};
pub use tcp_link::{LinkMode, TcpLink};
pub use trials::{Service, Trials};
pub use world::World;
