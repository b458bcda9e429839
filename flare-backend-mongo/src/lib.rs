#![doc = include_str!("../README.md")]

mod backend;
mod bulk;
mod commands;
mod config;
mod connection;
mod error;
mod lease;
mod many;
mod places;
mod queue;
mod read;
mod record;
mod repository;
mod schema;
mod server_clock;
mod unreadable;
mod upkeep;

pub use backend::MongoBackend;
pub use commands::Commands;
pub use config::{MongoConfig, ReadFrom, Reads, Writes};
pub use lease::MongoLease;
pub use queue::MongoQueue;
pub use repository::MongoRepository;
#[doc(hidden)]
pub use schema::Migration;
pub use upkeep::MongoUpkeep;

/// The name errors carry.
const BACKEND: &str = "mongodb";
