#![doc = include_str!("../README.md")]

mod codec;
mod config;
mod error;
mod lease;
mod members;
mod upkeep;

pub use config::EtcdConfig;
pub use lease::EtcdLease;
pub use upkeep::EtcdUpkeep;

/// The name errors carry.
const BACKEND: &str = "etcd";
