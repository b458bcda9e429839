#![doc = include_str!("../README.md")]

mod codec;
mod config;
mod error;
mod lease;
mod members;

pub use config::EtcdConfig;
pub use lease::EtcdLease;

/// The name errors carry.
const BACKEND: &str = "etcd";
