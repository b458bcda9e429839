#![doc = include_str!("../README.md")]

mod backend;
mod codec;
mod config;
mod connection;
mod error;
mod fault;
mod lease;
mod notices;
mod pages;
mod pulse;
mod queue;
mod repository;
mod schema;
mod tls;
mod upkeep;

pub use backend::PostgresBackend;
pub use config::PostgresConfig;
pub use connection::HostTransaction;
pub use lease::PostgresLease;
pub use queue::PostgresQueue;
pub use repository::{PostgresRepository, PreparedPut};
pub use upkeep::PostgresUpkeep;

/// The name errors carry.
const BACKEND: &str = "postgresql";
