//! Several nodes of a cluster in one thread, on a manual clock and memory stores: what they do when
//! nodes join, leave, die, freeze or are cut off, one thing at a time (`scenarios`, `leaving`,
//! `shedding`, `clocks`, `costs`) and all at once in seeded histories. Looked at after every step: no slot is worked by
//! two nodes, and epochs only rise.
//!
//! A failing history prints its seed. Replay it with
//! `FLARE_HISTORY_SEED=<seed> cargo test -p flare-core --test cluster -- --nocapture`;
//! run more of them with `FLARE_HISTORIES=<count>`, the same ones again with
//! `FLARE_HISTORIES_FROM=<first>`, which every run prints.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "it is a test")]

mod clocks;
mod costs;
mod gate;
mod histories;
mod leaving;
#[path = "../histories/pool.rs"]
mod pool;
mod scenarios;
mod sharing;
mod shedding;
mod slots;
mod stores;
mod worker;
mod world;
