#![doc = include_str!("../README.md")]

mod client;
mod codec;
mod config;
mod error;
mod queue;

pub use config::SqsConfig;
pub use queue::SqsQueue;

/// The name errors carry.
const BACKEND: &str = "sqs";
