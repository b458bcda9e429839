#![doc = include_str!("../README.md")]

mod backup;
mod bind;
mod brokers;
mod cli;
mod client;
mod compose;
pub mod config;
mod descriptors;
mod etcd;
mod failure;
mod filter;
mod logging;
mod metering;
mod otlp;
mod postgres;
#[cfg(feature = "profile")]
mod profile;
mod serve;
mod signals;
mod sqlite;
mod stall;
mod start;
mod status;
mod stores;
mod table;
mod upkeep;
pub mod version;
mod watch;

pub use cli::run;
pub use serve::{Limits, serve};
