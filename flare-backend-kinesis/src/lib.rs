#![doc = include_str!("../README.md")]

mod config;
mod connector;
mod error;
mod guarded;
mod position;
mod shards;
mod source;

pub use config::KinesisConfig;
pub use connector::KinesisConnector;

/// The name errors carry, and the word consumers name this source by.
const BACKEND: &str = "kinesis";
