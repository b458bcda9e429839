//! What the pipeline promises, shown by whole Flares on memory and simulated time: a file or a folder
//! for each thing that could break it. One program, so that it is linked once.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

mod audit;
mod backfill;
mod batches;
mod beside;
mod busy;
mod consumers;
mod dead_letters;
mod deletes;
mod deletes_resource;
mod dependable;
mod expiry;
mod far_queue;
#[cfg(feature = "filter")]
mod filters;
mod first_hour;
mod intervals;
mod journey;
mod long_times;
#[cfg(feature = "metrics")]
mod metrics;
mod moves;
mod node;
mod overview;
mod ownership;
mod passive;
mod passive_races;
mod queue_jobs;
mod queues;
mod quiet;
mod round_trips;
mod stages;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod suspended;
mod unreadable;
mod wall_clock;
