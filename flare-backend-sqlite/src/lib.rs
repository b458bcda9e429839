#![doc = include_str!("../README.md")]

mod backend;
mod blocking;
mod codec;
mod config;
mod connection;
mod engine;
mod error;
mod fault;
mod file;
mod holders;
mod lease;
mod queue;
mod repository;
mod schema;
mod time;
mod upkeep;

pub use backend::SqliteBackend;
pub use config::SqliteConfig;
pub use lease::SqliteLease;
pub use queue::SqliteQueue;
pub use repository::SqliteRepository;
#[doc(hidden)]
pub use schema::Migration;
pub use upkeep::SqliteUpkeep;

/// The name errors carry.
const BACKEND: &str = "sqlite";
