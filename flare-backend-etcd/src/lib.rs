#![doc = include_str!("../README.md")]

#[cfg(feature = "client")]
mod codec;
mod config;
#[cfg(feature = "client")]
mod error;
#[cfg(feature = "client")]
mod lease;
#[cfg(feature = "client")]
mod members;
#[cfg(feature = "client")]
mod options;
#[cfg(feature = "client")]
mod upkeep;

pub use config::EtcdConfig;
#[cfg(feature = "client")]
pub use lease::EtcdLease;
#[cfg(feature = "client")]
pub use upkeep::EtcdUpkeep;

/// The name errors carry.
#[cfg(feature = "client")]
const BACKEND: &str = "etcd";
