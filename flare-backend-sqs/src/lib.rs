#![doc = include_str!("../README.md")]

mod client;
mod codec;
mod config;
mod credentials;
mod dead_letters;
mod error;
mod names;
mod queue;
mod requests;

pub use config::SqsConfig;
pub use queue::SqsQueue;
pub use requests::SqsRequests;

/// The name errors carry.
const BACKEND: &str = "sqs";
