#![doc = include_str!("../README.md")]

mod answered;
mod batches;
mod client;
mod codec;
mod config;
mod credentials;
mod dead_letters;
mod error;
mod guarded;
mod held;
mod names;
mod queue;
mod requests;
mod source;

pub use config::SqsConfig;
pub use queue::SqsQueue;
pub use requests::SqsRequests;
pub use source::SqsConnector;

/// The name errors carry.
const BACKEND: &str = "sqs";
