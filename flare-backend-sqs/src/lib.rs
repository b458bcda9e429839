#![doc = include_str!("../README.md")]

mod client;
mod codec;
mod config;
mod dead_letters;
mod error;
mod names;
mod queue;

pub use config::SqsConfig;
pub use queue::SqsQueue;

/// The name errors carry.
const BACKEND: &str = "sqs";
